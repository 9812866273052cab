"""A generation that runs: an iterator of ids that can be cancelled from anywhere."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from typing import Literal

from bpe_tokenizer.errors import GenerationError, TokenizerError
from bpe_tokenizer.inference.loaded import Cancellation, LoadedModel
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.turns import Caller, Turns

__all__ = ["FinishReason", "Generation"]

FinishReason = Literal["stop", "length", "cancelled", "error"]


class Generation(Iterator[int], AsyncIterator[int]):
    """The ids that a model generates, each as soon as it is sampled; for `for` and `async for`.

    `LanguageModel.generate` makes one. It begins when the first id is asked for, and waits until the
    generations of the same model that began before it have ended. It ends by itself, by `cancel()`,
    `close()`, an error or Ctrl-C, or when nothing refers to it any more; after each of these the model can be
    used again.

    Args:
        loaded: The model.
        turns: Who may use it.
        prompt: The ids to go on from, checked.
        options: `max_new_tokens` fits into the context.

    Attributes:
        prompt_tokens: How many ids the prompt has.
        max_new_tokens: How many ids can come at most: as many as were asked for, or as the context holds.
        ids: The ids so far.
        finish_reason: Why it ended: `"stop"` (at a stop id, or the engine stopped by itself), `"length"`
            (`max_new_tokens` ids are there), `"cancelled"`, `"error"`; None before.
        stop_id: The stop id that ended it, which is not one of its ids; None if none did.
    """

    def __init__(
        self, loaded: LoadedModel, turns: Turns, prompt: Sequence[int], options: GenerationOptions
    ) -> None:
        self.prompt_tokens = len(prompt)
        self.max_new_tokens = options.max_new_tokens
        self.ids: list[int] = []
        self.finish_reason: FinishReason | None = None
        self.stop_id: int | None = None
        self._loaded = loaded
        self._turns = turns
        self._turn: Future[None] | None = None
        self._prompt = prompt
        self._options = options
        self._cancellation = Cancellation()
        self._new_ids: Iterator[int] | None = None
        # Whoever takes a step or closes has it. Re-entrant: the handler of a signal may close within a step.
        self._step = threading.RLock()
        self._is_stepping = False
        self._process = os.getpid()

    @property
    def new_tokens(self) -> int:
        """How many ids there are so far, the stop id not counted."""
        return len(self.ids)

    def cancel(self) -> None:
        """Ask it to end within a token; from any thread. Returns at once."""
        self._cancellation.cancel()

    def close(self) -> None:
        """End it, and wait until the model can be used again; from any thread."""
        if self._process != os.getpid():
            return  # The copy of a forked process: the engine's work, or the connection, is the other's.
        self.cancel()
        with self._step:
            if not self._is_stepping:
                self._finish("cancelled")

    async def aclose(self) -> None:
        """The same without blocking the loop."""
        import asyncio

        self.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self) -> Generation:
        """Return itself; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Not made as a whole, or the interpreter is ending.
        with contextlib.suppress(AttributeError, RuntimeError):
            if self.finish_reason is None:
                self.close()

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> int:
        """Return the next id.

        Raises:
            GenerationError: The engine failed; or another generation of the same model has begun in this
                thread and has not ended, so that waiting for it would last for ever.
        """
        with self._step:
            if self.finish_reason is None:
                self._wait_for_turn()
            new_id = self._take_step()
        if new_id is None:
            raise StopIteration
        return new_id

    def __aiter__(self) -> Generation:
        return self

    async def __anext__(self) -> int:
        """Return the next id without blocking the loop.

        A task that is cancelled while it waits here cancels the generation.

        Raises:
            GenerationError: As for `__next__`, with this task instead of this thread.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            if self.finish_reason is None:
                await self._wait_for_turn_in_loop()
            new_id = await loop.run_in_executor(None, self._take_step)
        except asyncio.CancelledError:
            self.cancel()
            # A thread may still be at its step: close behind it.
            loop.run_in_executor(None, self.close)
            raise
        if new_id is None:
            raise StopAsyncIteration
        return new_id

    def _wait_for_turn(self) -> None:
        caller = Caller.current()
        turn = self._ask_for_turn(lambda holder: holder.thread == caller.thread, "thread")
        try:
            turn.result()
        except CancelledError:
            return
        except BaseException:
            self._finish("cancelled")
            raise
        self._turns.holder = caller

    async def _wait_for_turn_in_loop(self) -> None:
        import asyncio

        caller = Caller.current()
        turn = self._ask_for_turn(lambda holder: holder.task is caller.task, "task")
        if not turn.done():
            await asyncio.wait([asyncio.wrap_future(turn)])
        if not turn.cancelled():
            self._turns.holder = caller

    def _ask_for_turn(self, is_caller: Callable[[Caller], bool], what: str) -> Future[None]:
        """Return the turn, asked for when it is wanted first."""
        if self._turn is None:
            turn = self._turns.take()
            holder = self._turns.holder
            if not turn.done() and holder is not None and is_caller(holder):
                self._turns.leave(turn)
                raise GenerationError(
                    f"another generation of this model has begun in this {what} and has not ended: "
                    "iterate over it to its end, or close() it first"
                )
            self._turn = turn
            self._cancellation.call(turn.cancel)
        return self._turn

    def _take_step(self) -> int | None:
        """Return the next id, or None at the end."""
        with self._step:
            if self.finish_reason is not None:
                return None
            try:
                new_id = self._next_of_engine()
            except BaseException as error:
                # An engine whose connection was closed under it by `cancel()` may well fail.
                if isinstance(error, Exception) and self._cancellation.is_cancelled:
                    self._finish("cancelled")
                    return None
                self._finish("error" if isinstance(error, Exception) else "cancelled")
                if isinstance(error, Exception) and not isinstance(error, (TokenizerError, MemoryError)):
                    raise GenerationError(f"the engine failed: {error}") from error
                raise
            return self._received(new_id)

    def _next_of_engine(self) -> int | None:
        if self._cancellation.is_cancelled:
            return None
        self._is_stepping = True
        try:
            if self._new_ids is None:
                self._new_ids = self._loaded.generate(self._prompt, self._options, self._cancellation)
            return next(self._new_ids, None)
        finally:
            self._is_stepping = False

    def _received(self, new_id: int | None) -> int | None:
        if self._cancellation.is_cancelled:
            self._finish("cancelled")
            return None
        if new_id is None:
            self._finish("stop")
            return None
        if new_id in self._options.stop_ids:
            self.stop_id = new_id
            self._finish("stop")
            return None
        self.ids.append(new_id)
        if len(self.ids) >= self.max_new_tokens:
            self._finish("length")
        return new_id

    def _finish(self, reason: FinishReason) -> None:
        """End the engine's work and the turn; what Ctrl-C kept it from, it does the next time."""
        if self.finish_reason is None:
            self.finish_reason = reason
        try:
            close = getattr(self._new_ids, "close", None)
            if close is not None:
                close()
            self._new_ids = None
        finally:
            if self._turn is not None:
                self._turns.leave(self._turn)
