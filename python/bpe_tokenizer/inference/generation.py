"""A running generation: an iterator over ids that any thread can cancel."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from typing import Literal

from bpe_tokenizer.errors import GenerationError, TokenizerError
from bpe_tokenizer.inference.engine_model import Cancellation, EngineModel
from bpe_tokenizer.inference.fair_lock import Caller, FairLock
from bpe_tokenizer.inference.options import GenerationOptions

__all__ = ["FinishReason", "Generation"]

FinishReason = Literal["stop", "length", "cancelled", "error"]


class Generation(Iterator[int], AsyncIterator[int]):
    """The ids that a model generates, each as soon as it is sampled; for `for` and `async for`.

    `LanguageModel.generate` returns one. It starts with the request for its first id, and waits until the
    earlier generations of the same model have ended. It ends by itself, by `cancel()`, `close()`, an error or
    Ctrl-C, or when the last reference to it is dropped. After that, the model is free again.

    Args:
        engine_model: The model.
        lock: The lock of the model.
        prompt: The ids of the prompt, already checked.
        options: `max_new_tokens` fits into the context.

    Attributes:
        prompt_tokens: The number of ids in the prompt.
        max_new_tokens: The maximum number of new ids: the requested one, or what the context has room for.
        ids: The ids so far.
        finish_reason: Why it ended: `"stop"` (at a stop id, by `stop()`, or the engine stopped by itself),
            `"length"` (after `max_new_tokens` ids), `"cancelled"`, `"error"`; None before the end.
        stop_id: The stop id that ended it, which is not in `ids`; None for another end.
    """

    def __init__(
        self, engine_model: EngineModel, lock: FairLock, prompt: Sequence[int], options: GenerationOptions
    ) -> None:
        self.prompt_tokens = len(prompt)
        self.max_new_tokens = options.max_new_tokens
        self.ids: list[int] = []
        self.finish_reason: FinishReason | None = None
        self.stop_id: int | None = None
        self._engine_model = engine_model
        self._lock = lock
        self._ticket: Future[None] | None = None
        self._prompt = prompt
        self._options = options
        self._cancellation = Cancellation()
        self._new_ids: Iterator[int] | None = None
        # Held during a step and during close(). Re-entrant, because a signal handler can close within a step.
        self._step = threading.RLock()
        self._is_stepping = False
        self._process = os.getpid()

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(prompt_tokens={self.prompt_tokens}, new_tokens={self.new_tokens}, "
            f"finish_reason={self.finish_reason!r})"
        )

    @property
    def new_tokens(self) -> int:
        """The number of ids so far, without the stop id."""
        return len(self.ids)

    def cancel(self) -> None:
        """Ask it to end within a token, from any thread. Does not wait."""
        self._cancellation.cancel()

    def stop(self) -> None:
        """End it between two ids as at a stop id: its ids so far are complete."""
        with self._step:
            self._finish("stop")
            self.finish_reason = "stop"

    async def astop(self) -> None:
        """Stop it without blocking the event loop."""
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, self.stop)

    def close(self) -> None:
        """End it, from any thread, and wait until the model is free again."""
        if self._process != os.getpid():
            return  # In a forked process this is a copy: the engine or connection belongs to the parent.
        self.cancel()
        with self._step:
            if not self._is_stepping:
                self._finish("cancelled")

    async def aclose(self) -> None:
        """Close without blocking the event loop."""
        import asyncio

        self.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def __enter__(self) -> Generation:
        """Return itself; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # __init__ failed, or the interpreter is shutting down.
        with contextlib.suppress(AttributeError, RuntimeError):
            if self.finish_reason is None:
                self.close()

    def __next__(self) -> int:
        """Return the next id.

        Raises:
            GenerationError: The engine failed, or an unfinished generation of the same model in this thread
                would make this one wait for ever.
        """
        with self._step:
            if self.finish_reason is None:
                self._wait_for_lock()
            new_id = self._take_step()
        if new_id is None:
            raise StopIteration
        return new_id

    async def __anext__(self) -> int:
        """Return the next id without blocking the event loop.

        If the waiting task is cancelled, the generation is cancelled too.

        Raises:
            GenerationError: As in `__next__`, with the task instead of the thread.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            if self.finish_reason is None:
                await self._wait_for_lock_in_loop()
            new_id = await loop.run_in_executor(None, self._take_step)
        except asyncio.CancelledError:
            self.cancel()
            # A thread may still run a step: close after it.
            loop.run_in_executor(None, self.close)
            raise
        if new_id is None:
            raise StopAsyncIteration
        return new_id

    def _wait_for_lock(self) -> None:
        caller = Caller.current()
        ticket = self._request_lock(lambda holder: holder.thread == caller.thread, "thread")
        try:
            ticket.result()
        except CancelledError:
            return
        except BaseException:
            self._finish("cancelled")
            raise
        self._lock.holder = caller

    async def _wait_for_lock_in_loop(self) -> None:
        import asyncio

        caller = Caller.current()
        ticket = self._request_lock(lambda holder: holder.task is caller.task, "task")
        if not ticket.done():
            await asyncio.wait([asyncio.wrap_future(ticket)])
        if not ticket.cancelled():
            self._lock.holder = caller

    def _request_lock(self, is_caller: Callable[[Caller], bool], what: str) -> Future[None]:
        """Return the ticket of the lock. The first call requests it."""
        if self._ticket is None:
            ticket = self._lock.acquire()
            holder = self._lock.holder
            if not ticket.done() and holder is not None and is_caller(holder):
                self._lock.release(ticket)
                raise GenerationError(
                    f"another generation of this model has begun in this {what} and has not ended: "
                    "iterate over it to its end, or close() it first"
                )
            self._ticket = ticket
            self._cancellation.call(ticket.cancel)
        return self._ticket

    def _take_step(self) -> int | None:
        """Return the next id, or None at the end."""
        with self._step:
            if self.finish_reason is not None:
                return None
            try:
                new_id = self._next_of_engine()
            except BaseException as error:
                # `cancel()` may have closed the engine's connection, which then fails.
                if isinstance(error, Exception) and self._cancellation.is_cancelled:
                    self._finish("cancelled")
                    return None
                self._finish("error" if isinstance(error, Exception) else "cancelled")
                if isinstance(error, Exception) and not isinstance(error, (TokenizerError, MemoryError)):
                    raise GenerationError(f"the engine failed: {error!s:.240}") from error
                raise
            return self._received(new_id)

    def _next_of_engine(self) -> int | None:
        if self._cancellation.is_cancelled:
            return None
        self._is_stepping = True
        try:
            if self._new_ids is None:
                self._new_ids = self._engine_model.generate(self._prompt, self._options, self._cancellation)
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
        """End the engine's work and release the lock. After an interruption by Ctrl-C, call it again."""
        if self.finish_reason is None:
            self.finish_reason = reason
        try:
            close = getattr(self._new_ids, "close", None)
            if close is not None:
                close()
            self._new_ids = None
        finally:
            if self._ticket is not None:
                self._lock.release(self._ticket)
