"""Answers to the exercises of chapter 3: right ones, and typical mistakes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bpe_tokenizer.reference import merge_pair as library

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


def merge_in_place(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    position = 0
    while position + 1 < len(tokens):
        if (tokens[position], tokens[position + 1]) == pair:
            tokens[position : position + 2] = ["".join(pair)]
        position += 1
    return tokens


def merge_overlaps_twice(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    result = []
    for index, token in enumerate(tokens):
        if tuple(tokens[index : index + 2]) == pair:
            result.append(pair[0] + pair[1])
        elif index == 0 or tuple(tokens[index - 1 : index + 1]) != pair:
            result.append(token)
    return result


WRONG: dict[str, list[Any]] = {
    # The last of the pairs with equal counts.
    "hand_merges": [[(" ", "s"), ("l", "s"), ("l", "ls"), ("e", "lls"), ("h", "e")]],
    # `ow` is not a merge, and `nest` begins with `n`, `est`.
    "hand_encoded": [{"slowest": ["s", "low", "est"], "nest": ["ne", "s", "t"], "owner": ["ow", "ne", "r"]}],
    # Ties by the alphabet.
    "best_pair": [lambda counts: max(counts, key=lambda pair: (counts[pair], pair), default=None)],
    "merge_word": [
        merge_overlaps_twice,
        merge_in_place,
        # The function that the task excludes.
        lambda tokens, pair: library(tokens, pair, "".join(pair)),
    ],
    # Without the counts of the words.
    "learn_merges": [lambda table, number: learn_merges(dict.fromkeys(table, 1), number)],
}
