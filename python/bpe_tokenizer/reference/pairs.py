"""The two operations of byte-pair encoding: count the pairs of neighbours, and merge one pair."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

__all__ = ["Pair", "Token", "count_pairs", "merge_pair"]

# A token is bytes in the first two tokenizers, and characters in the third.
Token = TypeVar("Token", bytes, str)
Pair: TypeAlias = tuple[Token, Token]


def count_pairs(
    tokens: Sequence[Token], counts: dict[Pair[Token], int] | None = None, times: int = 1
) -> dict[Pair[Token], int]:
    """Count how often each pair of neighbouring tokens occurs.

    Pairs may overlap: three equal tokens in a row are two pairs. The dict keeps the order in which the pairs
    were first seen.

    Args:
        tokens: The tokens of a piece of text, in order.
        counts: Counts to add to (changed in place); None starts from nothing.
        times: How often the piece occurs.

    Returns:
        The count of each pair: `counts` if given, otherwise a new dict.

    >>> count_pairs(["a", "b", "a", "b", "c"])
    {('a', 'b'): 2, ('b', 'a'): 1, ('b', 'c'): 1}
    >>> count_pairs(["a", "a", "a"], times=10)
    {('a', 'a'): 20}
    """
    counts = {} if counts is None else counts
    for pair in pairwise(tokens):
        counts[pair] = counts.get(pair, 0) + times
    return counts


def merge_pair(tokens: Sequence[Token], pair: Pair[Token]) -> list[Token]:
    """Replace every occurrence of a pair by its merged token, from left to right.

    Args:
        tokens: The tokens of a piece of text, in order.
        pair: The two neighbours to merge.

    Returns:
        The new tokens; joined, they are the same text.

    >>> merge_pair(["a", "b", "c", "a", "b"], ("a", "b"))
    ['ab', 'c', 'ab']
    >>> merge_pair(["a", "a", "a"], ("a", "a"))  # the left one first
    ['aa', 'a']
    """
    left, right = pair
    merged = []
    i = 0
    while i < len(tokens):
        if tokens[i] == left and i + 1 < len(tokens) and tokens[i + 1] == right:
            merged.append(left + right)
            i += 2
        else:
            merged.append(tokens[i])
            i += 1
    return merged
