"""Checks of the exercises of chapter 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpe_tokenizer.reference import count_pairs, merge_pair
from course.exercise import WrongAnswer, exercise, expect_call, expect_equal

_TABLE = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
_SENTENCE = "she sells sea shells"


def _learn(table: Mapping[str, int], number: int) -> list[tuple[str, str]]:
    """Learn merges of strings."""
    words = [(list(word), times) for word, times in table.items()]
    merges: list[tuple[str, str]] = []
    for _ in range(number):
        counts: dict[tuple[str, str], int] = {}
        for tokens, times in words:
            count_pairs(tokens, counts, times)
        if not counts:
            break
        left, right = max(counts, key=counts.__getitem__)
        merges.append((left, right))
        words = [(merge_pair(tokens, (left, right), left + right), times) for tokens, times in words]
    return merges


def _apply(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """Apply merges in the order of learning."""
    tokens = list(word)
    for left, right in merges:
        tokens = merge_pair(tokens, (left, right), left + right)
    return tokens


@exercise("Count all pairs again after each merge, pairs with a space included, in the order of the text.")
def _check_hand_merges(answer: Any) -> None:
    expected = _learn({_SENTENCE: 1}, 5)
    if not isinstance(answer, (list, tuple)) or len(answer) != len(expected):
        raise WrongAnswer("`hand_merges` must be a list of 5 pairs of strings")
    for number, (pair, right) in enumerate(zip(answer, expected, strict=True), 1):
        expect_equal(pair, right, f"merge {number}")


@exercise(
    "Go through the 7 merges in the order of learning; neighbours whose pair is not a merge stay apart."
)
def _check_hand_encoded(answer: Any) -> None:
    words = ("slowest", "nest", "owner")
    if not isinstance(answer, Mapping) or set(answer) != set(words):
        raise WrongAnswer(f"`hand_encoded` must be a dict with the keys {', '.join(map(repr, words))}")
    merges = _learn(_TABLE, 7)
    for word in words:
        expect_equal(answer[word], _apply(word, merges), f"hand_encoded[{word!r}]")


@exercise("`max` with `key=counts.get` returns the first of equal ones, and it fails for an empty `dict`.")
def _check_best_pair(answer: Any) -> None:
    for counts in (
        {("a", "b"): 2, ("b", "c"): 5, ("c", "d"): 1},
        {("b", "c"): 3, ("a", "b"): 3},
        {("a", "b"): 3, ("b", "c"): 3},
        {("z", "a"): 1, ("y", "b"): 4, ("x", "c"): 4, ("w", "d"): 2},
        {("l", "o"): 1},
        {("d", "d"): 10, ("e", "e"): 9},
    ):
        expect_call(answer, (counts,), max(counts, key=counts.__getitem__))
    expect_call(answer, ({},), None)


@exercise("Use a `while` loop whose position grows by 2 after a merge, and by 1 otherwise.", "merge_pair")
def _check_merge_word(answer: Any) -> None:
    for tokens, pair in (
        (["a", "b", "c", "a", "b"], ("a", "b")),
        (["a", "a", "a"], ("a", "a")),
        (["a", "a", "a", "a", "b"], ("a", "a")),
        (["a", "b", "a"], ("b", "c")),
        (["new", "est"], ("new", "est")),
        (["n", "ew", "ne", "w"], ("ne", "w")),
        (["b", "a"], ("a", "b")),
        (["a"], ("a", "a")),
        ([], ("a", "b")),
        (["x", "é", "中", "é"], ("é", "中")),
    ):
        expect_call(answer, (tokens, pair), merge_pair(tokens, pair, pair[0] + pair[1]), is_new=True)


@exercise("Count the pairs of all words into one `dict`, choose the best, merge it in all words, and repeat.")
def _check_learn_merges(answer: Any) -> None:
    tables: tuple[tuple[dict[str, int], int], ...] = (
        (_TABLE, 4),
        (_TABLE, 10),
        ({_SENTENCE: 1}, 5),
        ({"ab": 1, "cd": 3}, 2),
        ({"cd": 2, "ab": 2}, 1),
        ({"aaaa": 3, "aaab": 1}, 3),
        ({"ab": 2}, 5),
        ({"a": 7}, 3),
        ({}, 3),
        (_TABLE, 0),
    )
    for table, number in tables:
        expect_call(answer, (table, number), _learn(table, number))
