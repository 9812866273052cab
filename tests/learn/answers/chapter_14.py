"""Answers to the exercises of chapter 14: right ones, and typical mistakes."""

from __future__ import annotations

import itertools
from collections import Counter
from math import inf, log
from typing import Any


def wordpiece_pair(words: dict[tuple[str, ...], int]) -> tuple[str, str] | None:
    single: dict[str, int] = {}
    pairs: dict[tuple[str, str], int] = {}
    for symbols, count in words.items():
        for symbol in symbols:
            single[symbol] = single.get(symbol, 0) + count
        for pair in itertools.pairwise(symbols):
            pairs[pair] = pairs.get(pair, 0) + count
    best, best_score = None, 0.0
    for (left, right), count in pairs.items():
        score = count / single[left] / single[right]
        if score > best_score:
            best, best_score = (left, right), score
    return best


def all_cuts(word: str, vocab: set[str]) -> list[list[str]]:
    if word == "":
        return [[]]
    cuts = []
    for end in range(1, len(word) + 1):
        if word[:end] in vocab:
            for rest in all_cuts(word[end:], vocab):
                cuts.append([word[:end], *rest])
    return sorted(cuts)


def best_cut(word: str, probabilities: dict[str, float]) -> list[str]:
    best = [0.0] + [-inf] * len(word)
    length = [0] * (len(word) + 1)
    for end in range(1, len(word) + 1):
        for start in range(end):
            probability = probabilities.get(word[start:end], 0.0)
            if probability and best[start] + log(probability) > best[end]:
                best[end] = best[start] + log(probability)
                length[end] = end - start
    if best[-1] == -inf:
        return [f"<0x{byte:02X}>" for byte in word.encode()]
    tokens, end = [], len(word)
    while end:
        tokens.append(word[end - length[end] : end])
        end -= length[end]
    return tokens[::-1]


def longest_from_right(word: str, vocab: set[str]) -> list[str]:
    tokens: list[str] = []
    end = len(word)
    while end > 0:
        for start in range(end):
            if word[start:end] in vocab:
                break
        else:
            return ["[UNK]"]
        tokens.insert(0, word[start:end])
        end = start
    return tokens


def most_frequent(words: dict[tuple[str, ...], int]) -> tuple[str, str] | None:
    pairs: Counter[tuple[str, str]] = Counter()  # This is BPE.
    for symbols, count in words.items():
        for pair in itertools.pairwise(symbols):
            pairs[pair] += count
    return max(pairs, key=pairs.__getitem__, default=None)


def no_way_for_the_empty_word(word: str, vocab: set[str]) -> list[list[str]]:
    cuts = [[word]] if word in vocab else []
    for end in range(1, len(word)):
        if word[:end] in vocab:
            cuts += [[word[:end], *rest] for rest in no_way_for_the_empty_word(word[end:], vocab)]
    return sorted(cuts)


def most_probable_first(word: str, probabilities: dict[str, float]) -> list[str]:
    tokens = []
    while word:  # Without a look at the rest.
        ends = [end for end in range(1, len(word) + 1) if word[:end] in probabilities]
        if not ends:
            return [f"<0x{byte:02X}>" for byte in word.encode()]
        end = max(ends, key=lambda end: probabilities[word[:end]])
        tokens.append(word[:end])
        word = word[end:]
    return tokens


def longest_from_left(word: str, vocab: set[str]) -> list[str]:
    found = longest_from_right(word[::-1], {token[::-1] for token in vocab})
    return found if found == ["[UNK]"] else [token[::-1] for token in found[::-1]]


WRONG: dict[str, list[Any]] = {
    "wordpiece_pair": [most_frequent],
    "all_cuts": [no_way_for_the_empty_word],
    "best_cut": [most_probable_first],
    "longest_from_right": [longest_from_left],
}
