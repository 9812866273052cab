"""Learning merges of strings and of bytes, for the checks of the chapters 3 and 8."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from bpe_tokenizer.reference import count_pairs, merge_pair

__all__ = ["learn"]

Token = TypeVar("Token", str, bytes)


def learn(
    words: Iterable[tuple[list[Token], int]], number: int, best: Callable[[Mapping[Any, int]], Any]
) -> list[tuple[Token, Token]]:
    """Learn merges.

    Args:
        words: The tokens of each word, and how often it occurs.
        number: How many merges to learn; fewer if no pair is left.
        best: Chooses a pair from the counts of all.

    Example:
        >>> learn([(list("low"), 5)], 1, lambda counts: max(counts, key=counts.get))
        [('l', 'o')]
    """
    merges: list[tuple[Token, Token]] = []
    for _ in range(number):
        counts: dict[tuple[Token, Token], int] = {}
        for tokens, times in words:
            count_pairs(tokens, counts, times)
        if not counts:
            break
        left, right = best(counts)
        merges.append((left, right))
        words = [(merge_pair(tokens, (left, right), left + right), times) for tokens, times in words]
    return merges
