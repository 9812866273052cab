"""Cuts a text into chunks that each encode to a limited number of ids."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import TYPE_CHECKING

from bpe_tokenizer import _core
from bpe_tokenizer.errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["split_by_tokens"]


def split_by_tokens(
    encoder: _core.Encoder, text: str, max_tokens: int, overlap: int, special: bool | Collection[str]
) -> list[str]:
    """Cut a text into chunks that encode to at most `max_tokens` ids each.

    A chunk ends where a token of the whole text ends. Alone it may encode to more ids than there, because the
    cut changes the pieces next to it; then it is shortened until it fits. Time is linear in the length of
    the text (with an overlap, of all chunks).

    Args:
        encoder: Encodes the text.
        text: The text.
        max_tokens: Largest number of ids of a chunk, at least 1.
        overlap: Number of tokens of the whole text that a chunk repeats from the end of the previous one.
        special: The special tokens that are recognised, as `_core.Encoder` takes them.

    Returns:
        The chunks in order; without an overlap their concatenation is the text.

    Raises:
        OptionError: A single character needs more than `max_tokens` ids.
    """
    starts = encoder.encode_numpy_with_offsets(text, special)[1][:, 0]
    length = len(text)
    chunks = []
    start = end = 0
    while end < length:
        previous_end = end
        end = _chunk_end(encoder, text, starts, start, max_tokens, special)
        if end <= previous_end:
            # The shortened chunk only repeats text: start without overlap, so that every chunk adds some.
            start = previous_end
            end = _chunk_end(encoder, text, starts, start, max_tokens, special)
        chunks.append(text[start:end])
        start = _repeat_from(starts, start, end, overlap)
    return chunks


def _repeat_from(starts: npt.NDArray[np.int64], start: int, end: int, overlap: int) -> int:
    """Return the character `overlap` tokens before `end`, or the first token boundary after `start`."""
    if overlap == 0:
        return end
    begin = int(starts[max(bisect_left(starts, end) - overlap, 0)])
    if begin > start:
        return begin
    following = bisect_left(starts, start + 1)
    return min(int(starts[following]), end) if following < len(starts) else end


def _chunk_end(
    encoder: _core.Encoder,
    text: str,
    starts: npt.NDArray[np.int64],
    start: int,
    max_tokens: int,
    special: bool | Collection[str],
) -> int:
    """Return the end of the chunk that begins at character `start`."""
    first_after = bisect_left(starts, start) + max_tokens
    end = int(starts[first_after]) if first_after < len(starts) else len(text)
    fitting = encoder.truncate(text[start:end], max_tokens, special) if end > start else 0
    if fitting:
        return start + fitting
    # Every token boundary of the chunk lies inside a character, or too late.
    character = text[start]
    needed = encoder.count(character, special)
    if needed > max_tokens:
        raise OptionError(
            f"max_tokens={max_tokens} is less than the {needed} ids of the character {character!r} "
            f"at position {start}"
        )
    return start + 1
