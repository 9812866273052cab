"""Wrong answers to the exercises of chapter 14."""

from __future__ import annotations

import itertools
from collections import Counter


def wordpiece_pair(words: dict[tuple[str, ...], int]) -> tuple[str, str] | None:
    # The most frequent pair: this is BPE.
    pairs: Counter[tuple[str, str]] = Counter()
    for symbols, count in words.items():
        for pair in itertools.pairwise(symbols):
            pairs[pair] += count
    return max(pairs, key=pairs.__getitem__) if pairs else None


def all_cuts(word: str, vocab: set[str]) -> list[list[str]]:
    # The empty word has no way here, so no longer word has one either, but a token.
    cuts = [[word]] if word in vocab else []
    for end in range(1, len(word)):
        if word[:end] in vocab:
            cuts += [[word[:end], *rest] for rest in all_cuts(word[end:], vocab)]
    return sorted(cuts)


def best_cut(word: str, probabilities: dict[str, float]) -> list[str]:
    # The most probable token first, without a look at the rest.
    tokens = []
    while word:
        ends = [end for end in range(1, len(word) + 1) if word[:end] in probabilities]
        if not ends:
            return [f"<0x{byte:02X}>" for byte in word.encode()]
        end = max(ends, key=lambda end: probabilities[word[:end]])
        tokens.append(word[:end])
        word = word[end:]
    return tokens


def longest_from_right(word: str, vocab: set[str]) -> list[str]:
    # The longest from the left.
    tokens = []
    while word:
        ends = [end for end in range(len(word), 0, -1) if word[:end] in vocab]
        if not ends:
            return ["[UNK]"]
        tokens.append(word[: ends[0]])
        word = word[ends[0] :]
    return tokens
