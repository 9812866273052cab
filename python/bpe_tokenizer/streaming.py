"""Incremental encoding and decoding: text in chunks to ids, and ids to text as they come."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import items_in_turn
from bpe_tokenizer.decoding import Ids, check_error_handler, id_row, to_text
from bpe_tokenizer.encoding import SpecialSet
from bpe_tokenizer.errors import ArgumentTypeError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["EncodeStream", "StreamDecoder"]


class EncodeStream:
    """Encodes one text whose chunks may end between the two halves of a surrogate pair.

    Args:
        encoder: Encodes the text.
        special: The special tokens that are recognised.
    """

    def __init__(self, encoder: _core.Encoder, special: SpecialSet) -> None:
        self._stream = _core.EncodeStream(encoder, special)
        self._high_surrogate = ""
        self._chunk = 0

    def encode(self, chunks: Iterable[str]) -> Iterator[list[int]]:
        """Yield the ids of all chunks, up to the last safe cut of each."""
        if isinstance(chunks, bytes) or not isinstance(chunks, Iterable):
            raise ArgumentTypeError(
                f"encode_streaming expects an iterable of str, not {type(chunks).__name__}"
            )
        for chunk in items_in_turn(chunks):
            if ids := self._push(chunk):
                yield ids
        if ids := self._finish():
            yield ids

    def encode_numpy(self, chunks: Iterable[str]) -> Iterator[npt.NDArray[np.uint32]]:
        """Yield the same ids in arrays, of which some may be empty."""
        for chunk in chunks:
            yield self._stream.push_numpy(self._whole_characters(chunk))
        yield self._stream.push_numpy(self._high_surrogate, ends=True)

    async def encode_async(self, chunks: AsyncIterable[str]) -> AsyncIterator[list[int]]:
        """The same for an asynchronous iterable."""
        if not isinstance(chunks, AsyncIterable):
            raise ArgumentTypeError(
                f"encode_streaming_async expects an asynchronous iterable, not {type(chunks).__name__}"
            )
        async for chunk in chunks:
            if ids := self._push(chunk):
                yield ids
        if ids := self._finish():
            yield ids

    def _push(self, chunk: str) -> list[int]:
        if not isinstance(chunk, str):
            raise ArgumentTypeError(
                f"encode_streaming expects chunks of str, but chunk {self._chunk} is {type(chunk).__name__}"
            )
        self._chunk += 1
        # Nearly no chunk ends in a surrogate.
        if self._high_surrogate or chunk[-1:] >= "\ud800":
            chunk = self._whole_characters(chunk)
        return self._stream.push(chunk)

    def _whole_characters(self, chunk: str) -> str:
        """Return the next text without the first half of a surrogate pair at its end, which is kept."""
        text = self._high_surrogate + chunk
        self._high_surrogate = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return text[:-1] if self._high_surrogate else text

    def _finish(self) -> list[int]:
        return self._stream.push(self._high_surrogate, ends=True)


class StreamDecoder:
    """Decodes ids incrementally, to text that never ends inside a character.

    The texts of all steps, concatenated, are the text that `decode` returns for all ids. A step takes
    constant time per id.

    Args:
        tokenizer: A `BPETokenizer`.
        skip_special_tokens: Leave special tokens out.
        errors: The error handler for bytes that are not UTF-8, as in `decode`.

    Raises:
        ArgumentTypeError: `tokenizer` is something else.
        NotTrainedError: The tokenizer has no vocabulary yet.
        OptionError: As in `decode`.

    >>> from bpe_tokenizer import BPETokenizer
    >>> decoder = StreamDecoder(BPETokenizer().train("ab ab", 257, verbose=False))
    >>> [decoder.step(token_id) for token_id in (256, 0xC3, 0xA9)]
    ['ab', '', 'é']
    >>> decoder.step([256, 0xC3]) + decoder.flush()
    'ab\ufffd'
    """

    def __init__(
        self, tokenizer: BPETokenizer, skip_special_tokens: bool = False, errors: str = "replace"
    ) -> None:
        check_error_handler(errors)
        if not hasattr(tokenizer, "_compiled"):
            raise ArgumentTypeError(
                f"StreamDecoder takes a BPETokenizer, not {type(tokenizer).__name__}: write "
                "StreamDecoder(tokenizer), whose step(ids) decodes"
            )
        encoder = tokenizer._compiled().encoder
        self._stream = _core.DecodeStream(encoder, skip_special_tokens, errors == "replace")
        self._errors = errors
        self._skips = bool(skip_special_tokens)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(skip_special_tokens={self._skips}, errors={self._errors!r})"

    def step(self, ids: Ids) -> str:
        """Decode further ids, and return the text that they complete.

        Args:
            ids: An id, a list of ids, a NumPy array or a PyTorch tensor.

        Raises:
            DecodingError: Bytes are not UTF-8, and `errors` is `"strict"`.
            UnknownIdError: An id is not in the vocabulary; then no id was decoded.
        """
        return to_text(self._stream.step(id_row(ids)), self._errors)

    def flush(self) -> str:
        """Return the rest, such as an incomplete character, and reset the decoder.

        Raises:
            DecodingError: Bytes are not UTF-8, and `errors` is `"strict"`.
        """
        return to_text(self._stream.finish(), self._errors)

    def decode(self, ids: Iterable[Ids]) -> Iterator[str]:
        """Decode an iterable of ids, or of lists of ids, as they come.

        Yields:
            Texts of at least one character.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", 257, verbose=False)
        >>> list(StreamDecoder(tokenizer).decode(iter([256, 0xC3, 0xA9, 33])))
        ['ab', 'é', '!']
        """
        for each in items_in_turn(ids):
            if text := self.step(each):
                yield text
        if text := self.flush():
            yield text

    async def decode_async(self, ids: AsyncIterable[Ids]) -> AsyncIterator[str]:
        """Decode an asynchronous iterable of ids, like `decode`.

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
