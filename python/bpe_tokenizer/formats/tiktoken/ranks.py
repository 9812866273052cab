r"""Rank files: each line is a token in base64, a space and its rank, which is its id.

The format is defined by tiktoken's `load_tiktoken_bpe` and `dump_tiktoken_bpe`:
https://github.com/openai/tiktoken/blob/main/tiktoken/load.py
"""

from __future__ import annotations

import binascii
import re
from collections import Counter
from collections.abc import Mapping
from operator import itemgetter
from typing import NoReturn, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, shorten

__all__ = ["Ranks", "parse_ranks", "read_ranks", "to_dict", "write_ranks"]

# Tokens and their ranks: those of a plain file as the core reads it, or a dict.
Ranks: TypeAlias = _core.RankTable | Mapping[bytes, int]

_MAX_RANK = 2**32 - 2
_MAX_DIGITS = len(str(_MAX_RANK))
# Python's base64 reads padding alone as the empty token, which Whisper's multilingual.tiktoken has.
_TOKEN = re.compile(rb"={1,3}|(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)")


def parse_ranks(data: bytes, file: str) -> dict[bytes, int]:
    r"""Return the tokens of a rank file and their ranks, in the order of the file.

    Blank lines, extra white space, Windows line ends and a missing newline at the end are accepted.

    Args:
        data: The bytes of the file.
        file: Its name, for messages.

    Raises:
        FormatError: A line is malformed, a token or a rank is a duplicate, a rank is too large, or there are
            no tokens.

    >>> parse_ranks(b"YQ== 0\nYWI= 1\n", "my.tiktoken")
    {b'a': 0, b'ab': 1}
    >>> parse_ranks(b"YQ== 0\nYWI= 0\n", "my.tiktoken")
    Traceback (most recent call last):
    bpe_tokenizer.errors.FormatError: my.tiktoken: duplicate rank 0: tokens b'a' and b'ab'
    """
    return to_dict(read_ranks(data, file))


def read_ranks(data: bytes, file: str) -> Ranks:
    """Return the tokens of a rank file and their ranks; arguments and errors as for `parse_ranks`."""
    return _core.RankTable.parse(data) or _read_by_line(data, file)


def to_dict(ranks: Ranks) -> dict[bytes, int]:
    """Return ranks as a dict."""
    return ranks.to_dict() if isinstance(ranks, _core.RankTable) else dict(ranks)


def write_ranks(ranks: Mapping[bytes, int]) -> bytes:
    r"""Return a rank file, in the order of the ranks.

    The empty token is written `=`, which readers of the format take for it.

    >>> write_ranks({b"ab": 1, b"a": 0, b"": 2})
    b'YQ== 0\nYWI= 1\n= 2\n'
    """
    lines = [
        b"%b %d\n" % (binascii.b2a_base64(token, newline=False) or b"=", rank)
        for token, rank in sorted(ranks.items(), key=itemgetter(1))
    ]
    return b"".join(lines)


def _read_by_line(data: bytes, file: str) -> dict[bytes, int]:
    """Read a file that is not plain, or that is broken."""
    tokens, ranks = [], []
    for number, line in enumerate(data.splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        problem = _problem(fields)
        if problem:
            raise FormatError(f"{file}: line {number}: {problem}: {shorten(line)}")
        tokens.append(binascii.a2b_base64(fields[0]))
        ranks.append(int(fields[1]))
    found = dict(zip(tokens, ranks, strict=True))
    if len(found) < len(tokens):
        token = Counter(tokens).most_common(1)[0][0]
        raise FormatError(f"{file}: duplicate token {shorten(token)}")
    if len(set(ranks)) < len(ranks):
        _refuse_duplicate_rank(found, file)
    if not found:
        raise FormatError(f"{file}: holds no tokens")
    if max(ranks) > _MAX_RANK:
        raise FormatError(f"{file}: the rank {max(ranks)} is too large; the largest rank is {_MAX_RANK}")
    return found


def _problem(fields: list[bytes]) -> str | None:
    if len(fields) != 2:
        return f"must be a token in base64 and its rank, but has {len(fields)} fields"
    token, rank = fields
    if not _TOKEN.fullmatch(token):
        return "the token is not valid base64"
    if not rank.isdigit():
        return "the rank is not a non-negative integer"
    if len(rank) > _MAX_DIGITS:
        return f"the rank is too large; the largest rank is {_MAX_RANK}"
    return None


def _refuse_duplicate_rank(ranks: Mapping[bytes, int], file: str) -> NoReturn:
    rank = Counter(ranks.values()).most_common(1)[0][0]
    first, second, *_ = (token for token, other in ranks.items() if other == rank)
    raise FormatError(f"{file}: duplicate rank {rank}: tokens {shorten(first)} and {shorten(second)}")
