"""The text of a language model's reply while it is generated."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator

from bpe_tokenizer.chat.stop_strings import StopStrings
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.errors import UnknownIdError, shorten
from bpe_tokenizer.inference import FinishReason, Generation
from bpe_tokenizer.streaming import StreamDecoder

__all__ = ["Reply"]


class Reply(Iterator[str], AsyncIterator[str]):
    """An iterator over the text of a reply, for `for` and `async for`. It yields whole characters only.

    `BPETokenizer.chat(..., stream=True)` returns one. The generation starts with the first request for text.

    Args:
        generation: The ids.
        decoder: Decodes them to text.
        stop: Strings that end the reply. They are not part of the text.

    Attributes:
        generation: The ids so far, the reason for their end, and the stop id.
        text: The text so far.
    """

    def __init__(self, generation: Generation, decoder: StreamDecoder, stop: Iterable[str] = ()) -> None:
        self.generation = generation
        self.text = ""
        self._decoder = decoder
        self._stops = StopStrings(stop)
        self._begin: float | None = None
        self._first: float | None = None
        self._last: float | None = None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(text={shorten(self.text)}, prompt_tokens={self.prompt_tokens}, "
            f"new_tokens={self.new_tokens}, finish_reason={self.finish_reason!r})"
        )

    @property
    def prompt_tokens(self) -> int:
        """The number of ids in the prompt."""
        return self.generation.prompt_tokens

    @property
    def new_tokens(self) -> int:
        """The number of ids generated so far."""
        return self.generation.new_tokens

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the reply ended: `"stop"`, `"length"`, `"cancelled"`, `"error"`; None before the end."""
        return self.generation.finish_reason

    @property
    def seconds_to_first_token(self) -> float | None:
        """The time to the first id; None before it arrives."""
        return None if self._first is None or self._begin is None else self._first - self._begin

    @property
    def tokens_per_second(self) -> float | None:
        """The rate of the ids after the first; None before the second arrives."""
        if self._first is None or self._last is None or self._last <= self._first or self.new_tokens < 2:
            return None
        return (self.new_tokens - 1) / (self._last - self._first)

    def summary(self) -> str:
        """Describe the length and the speed of the reply.

        >>> from bpe_tokenizer import BPETokenizer
        >>> from bpe_tokenizer.inference import LanguageModel
        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> class Silence:
        ...     vocab_size, context_length = 261, 1000
        ...     def generate(self, ids, options, cancellation):
        ...         yield from ()
        ...     def close(self):
        ...         pass
        >>> talk = [{"role": "user", "content": "Why?"}]
        >>> reply = tokenizer.chat(talk, LanguageModel(Silence()), "chatml", stream=True)
        >>> list(reply), reply.summary()
        ([], '0 tokens after a prompt of 20 (stop)')
        """
        speed = self.tokens_per_second
        rate = f", {speed:.1f} tokens/s" if speed is not None else ""
        reason = f" ({self.finish_reason})" if self.finish_reason is not None else ""
        return f"{count_noun(self.new_tokens, 'token')} after a prompt of {self.prompt_tokens}{rate}{reason}"

    def cancel(self) -> None:
        """Ask it to end within a token, from any thread. Does not wait."""
        self.generation.cancel()

    def close(self) -> None:
        """End it, and wait until the model is free again."""
        self.generation.close()

    async def aclose(self) -> None:
        """Close without blocking the event loop; `contextlib.aclosing` calls it at the end of a block."""
        await self.generation.aclose()

    def __enter__(self) -> Reply:
        """Return itself; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> str:
        """Return the text that the next ids complete.

        Raises:
            GenerationError: The engine failed.
        """
        self._started()
        for token_id in self.generation:
            text = self._received(token_id)
            if self._stops.found is not None:
                self.generation.stop()
            if text:
                return text
        if text := self._rest():
            return text
        raise StopIteration

    async def __anext__(self) -> str:
        """Return the text that the next ids complete, without blocking the event loop."""
        self._started()
        async for token_id in self.generation:
            text = self._received(token_id)
            if self._stops.found is not None:
                await self.generation.astop()
            if text:
                return text
        if text := self._rest():
            return text
        raise StopAsyncIteration

    def _started(self) -> None:
        if self._begin is None:
            self._begin = time.perf_counter()

    def _received(self, token_id: int) -> str:
        self._last = time.perf_counter()
        if self._first is None:
            self._first = self._last
        try:
            text = self._decoder.step(token_id)
        except UnknownIdError:
            # The embeddings of many models have more rows than tokens, and sampling can draw any row.
            text = self._decoder.flush() + "\ufffd"
        return self._passed(text)

    def _rest(self) -> str:
        """Return the text at the end."""
        return "" if self._stops.found is not None else self._passed(self._decoder.flush(), is_end=True)

    def _passed(self, text: str, is_end: bool = False) -> str:
        """Return the text up to a stop string, without what may begin one."""
        text = self._stops.step(text) + (self._stops.flush() if is_end else "")
        self.text += text
        return text
