"""Which ids of a text may change when it goes on, and into which: tiktoken's rules.

They are those of `_encode_unstable_native` and `_increase_last_piece_token_len` in
https://github.com/openai/tiktoken/blob/main/src/lib.rs, exactly, with what is rough about them: only the last
piece is thought to be unstable, with the white space before it if it begins with white space.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["completions", "split_unstable"]

_SPACE = b" \n\t"
# What Python takes for white space and Unicode does not.
_PYTHON_ONLY_SPACE = "\x1c\x1d\x1e\x1f"

Encode = Callable[[bytes], list[int]]


def split_unstable(ids: list[int], last: int, tokens: Mapping[int, bytes]) -> tuple[list[int], bytes]:
    r"""Return the ids that stay, and the bytes of the others.

    Args:
        ids: Those of a text.
        last: How many of them are those of the last piece; 0 if there is none behind a special token.
        tokens: The bytes of every id but the special tokens'.

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
    """Return the rows of ids that bytes at the end of a text may become; each covers them.

    Args:
        unstable: The bytes.
        ranks: The tokens and their ranks.
        tokens: The same by rank.
        sorted_tokens: The tokens in the order of their bytes.
        encode_all: Encodes texts (UTF-8), splitting them into pieces.
        merge: Encodes bytes as one piece by merging alone.
    """
    if not unstable:
        return []
    single = ((ranks[token],) for token in _with_prefix(unstable, sorted_tokens))
    found: dict[tuple[int, ...], None] = dict.fromkeys(single)
    # A token that begins inside the bytes may reach beyond them.
    possible = [
        unstable[:start] + token
        for start in range(1, len(unstable))
        for token in _with_prefix(unstable[start:], sorted_tokens)
    ]
    texts = [possibility for possibility in possible if _is_text(possibility)]
    broken = [possibility for possibility in possible if not _is_text(possibility)]
    for row in [*encode_all(texts), *map(merge, broken)]:
        found[tuple(_covering(row, len(unstable), tokens))] = None
    # Behind white space at the end, a split may appear that keeps it apart.
    last = _last_character(unstable)
    if last is not None and len(last) < len(unstable) and _is_white_space(last.decode()):
        found[tuple(merge(unstable[: -len(last)]) + merge(last))] = None
    return [list(row) for row in found]


def _with_prefix(beginning: bytes, sorted_tokens: Sequence[bytes]) -> Sequence[bytes]:
    start = bisect_left(sorted_tokens, beginning)
    # The first bytes behind all that begin so: the last byte that can be is made greater by one.
    head = beginning.rstrip(b"\xff")
    behind = head[:-1] + bytes([head[-1] + 1]) if head else None
    return sorted_tokens[
        start : len(sorted_tokens) if behind is None else bisect_left(sorted_tokens, behind, start)
    ]


def _covering(row: Sequence[int], length: int, tokens: Mapping[int, bytes]) -> Iterator[int]:
    """The ids of a row up to the one that reaches a length in bytes."""
    for token_id in row:
        yield token_id
        length -= len(tokens[token_id])
        if length <= 0:
            return


def _last_character(data: bytes) -> bytes | None:
    """The character at the end of bytes, if there is a whole one."""
    for length in range(1, min(4, len(data)) + 1):
        if _is_text(data[-length:]):
            return data[-length:]
    return None


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_space(token: bytes | None) -> bool:
    return token is not None and not token.strip(_SPACE)


def _is_white_space(character: str) -> bool:
    return character.isspace() and character not in _PYTHON_ONLY_SPACE
