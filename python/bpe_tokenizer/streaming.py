"""Streams: text that comes some at a time to ids, and ids that come some at a time to text."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.decoded import check_error_handler, to_text
from bpe_tokenizer.encoding import Encoding, recognised
from bpe_tokenizer.errors import ArgumentTypeError
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.vocabulary import Vocabulary, as_row

__all__ = ["StreamDecoder", "Streaming"]


class Streaming(Encoding):
    """The part of `BPETokenizer` that encodes what comes some at a time; see there."""

    def encode_streaming(
        self, chunks: Iterable[str], allowed_special: AllowedSpecial = "none"
    ) -> Iterator[list[int]]:
        """Encode a text that comes in chunks, and yield its ids as soon as they are certain.

        The ids are those of `encode("".join(chunks))`, however the text is cut: inside a special token, a
        contraction, a run of spaces, or between a letter and its accent. What a continuation could change is
        held back, and no more: memory is bounded by a chunk and the longest piece. (A split pattern that no
        automaton can run, and a few unusual steps of foreign files, have to see all the text between two
        special tokens.)

        Args:
            chunks: Parts of the text in order; a single `str` is one chunk.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.

        Yields:
            Ids, at least one at a time.

        Raises:
            ArgumentTypeError: A chunk is no `str`.
            NotTrainedError: There is no vocabulary yet.
            SpecialTokenError: A set names an unknown token.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low lower lowest", 258, verbose=False)
        >>> list(tokenizer.encode_streaming(["lo", "w low", "er"]))
        [[257], [32, 257, 101, 114]]
        >>> tokenizer.encode("low lower")
        [257, 32, 257, 101, 114]
        """
        stream = _EncodeStream(self, allowed_special)
        return stream.over([chunks] if isinstance(chunks, str) else chunks)

    def encode_streaming_async(
        self, chunks: AsyncIterable[str], allowed_special: AllowedSpecial = "none"
    ) -> AsyncIterator[list[int]]:
        """Encode a text whose chunks have to be waited for; otherwise as `encode_streaming`.

        >>> import asyncio
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low lower lowest", 258, verbose=False)
        >>> async def chunks():
        ...     yield "lo"
        ...     yield "w"
        >>> async def ids():
        ...     return [ids async for ids in tokenizer.encode_streaming_async(chunks())]
        >>> asyncio.run(ids())
        [[257]]
        """
        return _EncodeStream(self, allowed_special).over_async(chunks)


class _EncodeStream:
    """A text that comes in chunks, which may cut a pair of surrogates."""

    def __init__(self, tokenizer: Encoding, allowed_special: AllowedSpecial) -> None:
        snapshot = tokenizer._trained()
        special = recognised(snapshot, (), allowed_special)
        self._stream = _core.EncodeStream(snapshot.encoder, special)
        self._high = ""
        self._number = 0

    def over(self, chunks: Iterable[str]) -> Iterator[list[int]]:
        for chunk in chunks:
            if ids := self._push(chunk):
                yield ids
        if ids := self._finish():
            yield ids

    async def over_async(self, chunks: AsyncIterable[str]) -> AsyncIterator[list[int]]:
        async for chunk in chunks:
            if ids := self._push(chunk):
                yield ids
        if ids := self._finish():
            yield ids

    def _push(self, chunk: str) -> list[int]:
        if not isinstance(chunk, str):
            raise ArgumentTypeError(
                f"encode_streaming expects chunks of str, but chunk {self._number} is {type(chunk).__name__}"
            )
        self._number += 1
        text = self._high + chunk
        self._high = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return self._stream.push(text[:-1] if self._high else text)

    def _finish(self) -> list[int]:
        return self._stream.push(self._high) + self._stream.finish()


class StreamDecoder:
    """Turns ids that come some at a time into text, which never holds a part of a character.

    Everything together is the text that `decode` returns for all ids, and a step takes as long at the
    millionth id as at the first.

    Args:
        tokenizer: A `BPETokenizer`.
        skip_special_tokens: Leave special tokens out.
        errors: What to do about bytes that are not UTF-8, as in `decode`.

    Raises:
        NotTrainedError: The tokenizer has no vocabulary yet.
        OptionError: There is no such error handler.

    >>> from bpe_tokenizer import BPETokenizer
    >>> decoder = StreamDecoder(BPETokenizer().train("ab ab", 257, verbose=False))
    >>> [decoder.step(token_id) for token_id in (256, 0xC3, 0xA9)]
    ['ab', '', 'é']
    >>> decoder.step([256, 0xC3]) + decoder.flush()
    'ab\ufffd'
    """

    def __init__(
        self, tokenizer: Vocabulary, skip_special_tokens: bool = False, errors: str = "replace"
    ) -> None:
        check_error_handler(errors)
        encoder = tokenizer._trained().encoder
        self._stream = _core.DecodeStream(encoder, skip_special_tokens, errors == "replace")
        self._errors = errors

    def step(self, ids: Any) -> str:
        """Return the text that further ids complete.

        Args:
            ids: An id, a list of ids, a NumPy array or a PyTorch tensor.

        Raises:
            DecodingError: Bytes are not UTF-8, and `errors` is `"strict"`.
            UnknownIdError: An id is not in the vocabulary; then nothing was taken.
        """
        values = as_row(ids)
        row = [values] if isinstance(values, int) else values
        return to_text(self._stream.step(row), self._errors)

    def flush(self) -> str:
        """Return what is left at the end, such as a character that was not completed, and begin anew.

        Raises:
            DecodingError: Bytes are not UTF-8, and `errors` is `"strict"`.
        """
        return to_text(self._stream.finish(), self._errors)

    def decode(self, ids: Iterable[Any]) -> Iterator[str]:
        """Turn an iterable of ids, or of lists of ids, into text as it comes.

        Yields:
            Text, at least a character at a time.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", 257, verbose=False)
        >>> list(StreamDecoder(tokenizer).decode(iter([256, 0xC3, 0xA9, 33])))
        ['ab', 'é', '!']
        """
        for each in ids:
            if text := self.step(each):
                yield text
        if text := self.flush():
            yield text

    async def decode_async(self, ids: AsyncIterable[Any]) -> AsyncIterator[str]:
        """Turn ids that have to be waited for into text; otherwise as `decode`.

        >>> import asyncio
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", 257, verbose=False)
        >>> async def ids():
        ...     yield 256
        ...     yield 33
        >>> async def text():
        ...     return [text async for text in StreamDecoder(tokenizer).decode_async(ids())]
        >>> asyncio.run(text())
        ['ab', '!']
        """
        async for each in ids:
            if text := self.step(each):
                yield text
        if text := self.flush():
            yield text
