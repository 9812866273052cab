"""A typical mistake in each exercise of chapter 3."""

from __future__ import annotations

from itertools import pairwise

# The last of the pairs with equal counts.
hand_merges = [(" ", "s"), ("l", "s"), ("l", "ls"), ("e", "lls"), ("h", "e")]

# `ow` is not a merge, and `nest` begins with `n`, `est`.
hand_encoded = {"slowest": ["s", "low", "est"], "nest": ["ne", "s", "t"], "owner": ["ow", "ne", "r"]}


def best_pair(counts: dict[tuple[str, str], int]) -> tuple[str, str] | None:
    if not counts:
        return None
    return max(counts, key=lambda pair: (counts[pair], pair))  # Ties by the alphabet.


def merge_word(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    result = []
    for index, token in enumerate(tokens):
        if tuple(tokens[index : index + 2]) == pair:
            result.append(pair[0] + pair[1])
        elif index == 0 or tuple(tokens[index - 1 : index + 1]) != pair:
            result.append(token)
    return result  # Merges overlaps twice.


def learn_merges(table: dict[str, int], number: int) -> list[tuple[str, str]]:
    words = [list(word) for word in table]
    merges: list[tuple[str, str]] = []
    for _ in range(number):
        counts: dict[tuple[str, str], int] = {}
        for tokens in words:
            for pair in pairwise(tokens):
                counts[pair] = counts.get(pair, 0) + 1  # Without the counts of the words.
        if not counts:
            break
        best = max(counts, key=lambda pair: counts[pair])
        merges.append(best)
        words = [merge_word(tokens, best) for tokens in words]
    return merges
