"""tiktoken's rules for which last ids of a text may change when the text continues, and into which.

They follow `_encode_unstable_native` and `_increase_last_piece_token_len` in
https://github.com/openai/tiktoken/blob/main/src/lib.rs exactly, including their approximation: only the last
piece is unstable, with the white space before it if it begins with white space.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

from bpe_tokenizer.decoding import is_utf8

__all__ = ["completions", "split_unstable"]

_SPACE = b" \n\t"
# White space for Python, but not for Unicode.
_PYTHON_ONLY_SPACE = "\x1c\x1d\x1e\x1f"

Encode = Callable[[bytes], list[int]]


def split_unstable(ids: list[int], last: int, tokens: Mapping[int, bytes]) -> tuple[list[int], bytes]:
    r"""Return the ids that stay, and the bytes of the unstable ones.

    Args:
        ids: The ids of a text.
        last: The number of ids of the last piece; 0 if a special token is at the end.
        tokens: The bytes of the ids, without special tokens.

    >>> split_unstable([0, 1, 1, 2], 1, {0: b"a", 1: b" ", 2: b"\n"})
    ([0], b'  \n')
    """
    if last and _is_space(tokens.get(ids[-last])):
        while last < len(ids) and _is_space(tokens.get(ids[-last - 1])):
            last += 1
    end = len(ids) - last
    return ids[:end], b"".join(tokens[token_id] for token_id in ids[end:])


def completions(
    unstable: bytes,
    ranks: Mapping[bytes, int],
    tokens: Mapping[int, bytes],
    sorted_tokens: Sequence[bytes],
    encode_all: Callable[[list[bytes]], list[list[int]]],
    merge: Encode,
) -> list[list[int]]:
    """Return the rows of ids that the unstable bytes may become; each row covers the bytes.

    Args:
        unstable: The bytes at the end of the text.
        ranks: The tokens and their ranks.
        tokens: The tokens by rank.
        sorted_tokens: The tokens in the order of their bytes.
        encode_all: Encodes texts (UTF-8), splitting them into pieces.
        merge: Encodes bytes as one piece by merging alone.
    """
    if not unstable:
        return []
    single = ((ranks[token],) for token in _with_prefix(unstable, sorted_tokens))
    found: dict[tuple[int, ...], None] = dict.fromkeys(single)
    # A token that begins within the bytes may extend beyond them.
    possible = [
        unstable[:start] + token
        for start in range(1, len(unstable))
        for token in _with_prefix(unstable[start:], sorted_tokens)
    ]
    texts = [possibility for possibility in possible if is_utf8(possibility)]
    broken = [possibility for possibility in possible if not is_utf8(possibility)]
    for row in [*encode_all(texts), *map(merge, broken)]:
        found[tuple(_covering(row, len(unstable), tokens))] = None
    # A continuation may split off the last white space.
    last = _last_character(unstable)
    if last is not None and len(last) < len(unstable) and _is_white_space(last.decode()):
        found[tuple(merge(unstable[: -len(last)]) + merge(last))] = None
    return [list(row) for row in found]


def _with_prefix(prefix: bytes, sorted_tokens: Sequence[bytes]) -> Sequence[bytes]:
    start = bisect_left(sorted_tokens, prefix)
    # The upper bound of all tokens with this prefix: the prefix with its last byte below 0xFF incremented.
    head = prefix.rstrip(b"\xff")
    upper = head[:-1] + bytes([head[-1] + 1]) if head else None
    return sorted_tokens[
        start : len(sorted_tokens) if upper is None else bisect_left(sorted_tokens, upper, start)
    ]


def _covering(row: Sequence[int], length: int, tokens: Mapping[int, bytes]) -> Iterator[int]:
    """The ids of a row until they cover a length in bytes."""
    for token_id in row:
        yield token_id
        length -= len(tokens[token_id])
        if length <= 0:
            return


def _last_character(data: bytes) -> bytes | None:
    """The complete character at the end of bytes; None if there is none."""
    for length in range(1, min(4, len(data)) + 1):
        if is_utf8(data[-length:]):
            return data[-length:]
    return None


def _is_space(token: bytes | None) -> bool:
    return token is not None and not token.strip(_SPACE)


def _is_white_space(character: str) -> bool:
    return character.isspace() and character not in _PYTHON_ONLY_SPACE
