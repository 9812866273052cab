"""Checks of the exercises of chapter 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpe_tokenizer.reference import merge_pair
from course.exercise import WrongAnswer, compared, exercise, expect_equal
from course.learning import learn

_TABLE = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
_SENTENCE = "she sells sea shells"


def _first_best(counts: Mapping[tuple[str, str], int]) -> tuple[str, str]:
    return max(counts, key=counts.__getitem__)


def _learned(table: Mapping[str, int], number: int) -> list[tuple[str, str]]:
    return learn([(list(word), times) for word, times in table.items()], number, _first_best)


def _apply(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """Apply merges in the order of learning."""
    tokens = list(word)
    for left, right in merges:
        tokens = merge_pair(tokens, (left, right), left + right)
    return tokens


@exercise("Count all pairs again after each merge, pairs with a space included, in the order of the text.")
def _check_hand_merges(answer: Any) -> None:
    expected = _learned({_SENTENCE: 1}, 5)
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
    for word in words:
        expect_equal(answer[word], _apply(word, _learned(_TABLE, 7)), f"hand_encoded[{word!r}]")


@compared(
    "`max` with `key=counts.get` returns the first of equal ones, and it fails for an empty `dict`.",
    [
        ({("a", "b"): 2, ("b", "c"): 5, ("c", "d"): 1},),
        ({("b", "c"): 3, ("a", "b"): 3},),
        ({("a", "b"): 3, ("b", "c"): 3},),
        ({("z", "a"): 1, ("y", "b"): 4, ("x", "c"): 4, ("w", "d"): 2},),
        ({("l", "o"): 1},),
        ({("d", "d"): 10, ("e", "e"): 9},),
        ({},),
    ],
)
def _best_pair(counts: dict[tuple[str, str], int]) -> tuple[str, str] | None:
    return _first_best(counts) if counts else None


@compared(
    "Use a `while` loop whose position grows by 2 after a merge, and by 1 otherwise.",
    [
        (["a", "b", "c", "a", "b"], ("a", "b")),
        *((["a"] * number, ("a", "a")) for number in (3, 1)),
        (["a", "a", "a", "a", "b"], ("a", "a")),
        (["a", "b", "a"], ("b", "c")),
        (["new", "est"], ("new", "est")),
        (["n", "ew", "ne", "w"], ("ne", "w")),
        *((tokens, ("a", "b")) for tokens in (["b", "a"], [])),
        (["x", "é", "中", "é"], ("é", "中")),
    ],
    "merge_pair",
    is_new=True,
)
def _merge_word(tokens: list[str], pair: tuple[str, str]) -> list[str]:
    return merge_pair(tokens, pair, pair[0] + pair[1])


@compared(
    "Count the pairs of all words into one `dict`, choose the best, merge it in all words, and repeat.",
    [
        *((_TABLE, number) for number in (4, 10, 0)),
        *(({_SENTENCE: 1}, 5), ({"ab": 1, "cd": 3}, 2), ({"cd": 2, "ab": 2}, 1)),
        *(({"aaaa": 3, "aaab": 1}, 3), ({"ab": 2}, 5), ({"a": 7}, 3), ({}, 3)),
    ],
)
def _learn_merges(table: dict[str, int], number: int) -> list[tuple[str, str]]:
    return _learned(table, number)
