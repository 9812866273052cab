"""The checks of chapter 14: WordPiece's score, all cuts, the most probable cut, the longest token."""

from __future__ import annotations

import random
from collections import Counter
from math import log
from typing import Any

from bpe_tokenizer.reference import count_pairs
from course.exercise import exercise, expect_call

_VOCAB = {*"lowernstid", "low", "lower", "est", "we", "west", "st", "er", "new", "ne", "ewe", "é"}
_WORDS = ("", "low", "lowest", "newest", "slower", "wewest", "newer", "é", "estest")


@exercise(
    "Count symbols and pairs with the counts of the words; max takes the first of several equal scores."
)
def _check_wordpiece_pair(answer: Any) -> None:
    counts = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    for words in (
        {tuple(word): count for word, count in counts.items()},
        {("l", "ow"): 5, ("l", "ow", "er"): 2, ("n", "e", "w", "est"): 6, ("w", "i", "d", "est"): 3},
        {("a", "b"): 1, ("c", "d"): 1},
        {("c", "d"): 1, ("a", "b"): 1},
        {("a", "a", "a"): 2, ("a", "b"): 1},
        # The example of Hugging Face's course. Equal scores have no rounding in any of these tables.
        {tuple("hug"): 10, tuple("pug"): 5, tuple("pun"): 12, tuple("bun"): 4, tuple("hugs"): 5},
        {("a",): 4},
        {},
    ):
        singles: Counter[str] = Counter()
        pairs: dict[tuple[str, str], int] = {}
        for symbols, count in words.items():
            for symbol in symbols:
                singles[symbol] += count
            count_pairs(symbols, pairs, count)
        scores = {pair: count / (singles[pair[0]] * singles[pair[1]]) for pair, count in pairs.items()}
        best = max(scores, key=scores.__getitem__) if scores else None
        expect_call(answer, (words,), best)


def _all_cuts(word: str, vocab: set[str]) -> list[list[str]]:
    if not word:
        return [[]]
    ends = (end for end in range(1, len(word) + 1) if word[:end] in vocab)
    return sorted([word[:end], *rest] for end in ends for rest in _all_cuts(word[end:], vocab))


@exercise("Each way is a token that the word begins with, followed by a way to cut the rest.")
def _check_all_cuts(answer: Any) -> None:
    expect_call(answer, ("ab", {"a", "b", "ab"}), [["a", "b"], ["ab"]])
    expect_call(answer, ("aaaa", {"a", "aa", "aaa"}), _all_cuts("aaaa", {"a", "aa", "aaa"}))
    for word in (*_WORDS, "lowz"):
        expect_call(answer, (word, _VOCAB), _all_cuts(word, _VOCAB))
    expect_call(answer, ("ab", set()), [])


@exercise("Use the function `unigram` of the chapter, with sums of logarithms, and change its last resort.")
def _check_best_cut(answer: Any) -> None:
    expect_call(answer, ("abc", {"a": 0.4, "ab": 0.3, "c": 0.2, "bc": 0.1}), ["ab", "c"])
    chance = random.Random(14)
    tables = [{token: chance.uniform(0.001, 0.2) for token in sorted(_VOCAB)} for _ in range(6)]
    tables.append({"low": 0.2, "est": 0.25, "lowe": 0.05, "st": 0.1})
    for probabilities in tables:
        for word in _WORDS:
            cuts = _all_cuts(word, set(probabilities))
            scores = [sum(log(probabilities[token]) for token in cut) for cut in cuts]
            best = cuts[scores.index(max(scores))] if cuts else [f"<0x{byte:02X}>" for byte in word.encode()]
            expect_call(answer, (word, probabilities), best)
    expect_call(answer, ("hi", {}), ["<0x68>", "<0x69>"])
    expect_call(answer, ("lé🙂", {"l": 0.5}), ["<0x6C>", *(f"<0x{byte:02X}>" for byte in "é🙂".encode())])
    # A product of these probabilities is 0 in floating point: only the sum of logarithms has an order.
    long_word = "ab" * 150
    expect_call(answer, (long_word, {"a": 0.01, "b": 0.01, "ab": 0.001}), ["ab"] * 150)
    expect_call(answer, (long_word, {"a": 0.01, "b": 0.01, "ab": 0.00001}), list(long_word))


def _longest_from_right(word: str, vocab: set[str]) -> list[str]:
    tokens: list[str] = []
    while word:
        longest = next((word[start:] for start in range(len(word)) if word[start:] in vocab), None)
        if longest is None:
            return ["[UNK]"]
        tokens.insert(0, longest)
        word = word[: -len(longest)]
    return tokens


@exercise("Try the ends of the word from the longest to the shortest, and put each token first in the list.")
def _check_longest_from_right(answer: Any) -> None:
    expect_call(answer, ("aaaaa", {"a", "aa", "aaa"}), ["aa", "aaa"])
    for word in (*_WORDS, "lowz", "zlow", "lozw"):
        expect_call(answer, (word, _VOCAB), _longest_from_right(word, _VOCAB))
    expect_call(answer, ("abc", {"bc", "ab", "c"}), ["[UNK]"])
