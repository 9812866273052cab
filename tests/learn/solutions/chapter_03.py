"""Right answers to the exercises of chapter 3."""

from __future__ import annotations

from itertools import pairwise

hand_merges = [(" ", "s"), ("h", "e"), (" s", "e"), ("l", "l"), ("ll", "s")]

hand_encoded = {"slowest": ["s", "low", "est"], "nest": ["n", "est"], "owner": ["o", "w", "ne", "r"]}


def best_pair(counts: dict[tuple[str, str], int]) -> tuple[str, str] | None:
    best = None
    for pair, count in counts.items():
        if best is None or count > counts[best]:
            best = pair
    return best


def merge_word(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    result = []
    position = 0
    while position < len(tokens):
        if position + 1 < len(tokens) and (tokens[position], tokens[position + 1]) == pair:
            result.append(pair[0] + pair[1])
            position += 2
        else:
            result.append(tokens[position])
            position += 1
    return result


def learn_merges(table: dict[str, int], number: int) -> list[tuple[str, str]]:
    words = [(list(word), times) for word, times in table.items()]
    merges: list[tuple[str, str]] = []
    while len(merges) < number:
        counts: dict[tuple[str, str], int] = {}
        for tokens, times in words:
            for pair in pairwise(tokens):
                counts[pair] = counts.get(pair, 0) + times
        best = best_pair(counts)
        if best is None:
            break
        merges.append(best)
        words = [(merge_word(tokens, best), times) for tokens, times in words]
    return merges
