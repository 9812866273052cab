r"""Rank files: each line is a token in base64, a space and its rank, which is its id.

The format is defined by tiktoken's `load_tiktoken_bpe` and `dump_tiktoken_bpe`:
https://github.com/openai/tiktoken/blob/main/tiktoken/load.py
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from operator import itemgetter

from bpe_tokenizer import _core

__all__ = ["parse_ranks", "write_ranks"]


def parse_ranks(data: bytes, file: str) -> dict[bytes, int]:
    r"""Return the tokens of a rank file and their ranks, in the order of the ranks.

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
    bpe_tokenizer.errors.FormatError: my.tiktoken: duplicate rank 0: tokens "a" and "ab"
    """
    return _core.RankTable.parse(data, file).to_dict()


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
