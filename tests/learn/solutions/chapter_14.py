"""Right answers to the exercises of chapter 14."""

from __future__ import annotations

import itertools
from math import inf, log


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
