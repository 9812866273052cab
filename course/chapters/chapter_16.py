"""Checks of the exercises of chapter 16."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from bpe_tokenizer.reference import count_pairs
from course.exercise import exercise, expect_call

_Pair: TypeAlias = tuple[str, str]


def _next(tokens: Sequence[str], ranks: Mapping[_Pair, int], dropped: set[int]) -> int | None:
    found = [k for k, pair in enumerate(pairwise(tokens)) if pair in ranks and k not in dropped]
    return min(found, key=lambda k: ranks[tokens[k], tokens[k + 1]], default=None)


@exercise("List the positions whose pair has a rank and is not dropped, and take the `min` by rank.")
def _check_next_merge(answer: Any) -> None:
    ranks = {("a", "b"): 1, ("b", "a"): 0, ("a", "a"): 5}
    for tokens in (list("abab"), list("aaab"), ["ab", "b"], ["a"], []):
        for dropped in (set(), {0}, {1}, {0, 1, 2}):
            expect_call(answer, (tokens, ranks, dropped), _next(tokens, ranks, dropped))


@exercise("Add the tokens of a piece to the last sentence; a new one begins after a token of `ends`.")
def _check_super_rows(answer: Any) -> None:
    pieces = [[" by"], [" th", "e"], ["."], [" I", "t"], [" is", "!"], [" so"]]
    joined = [[" by", " th", "e", "."], [" I", "t", " is", "!"], [" so"]]
    expect_call(answer, (pieces, {".", "!"}), joined)
    expect_call(answer, (pieces[:5], {".", "!"}), joined[:2])
    expect_call(answer, (pieces, set()), [[token for piece in pieces for token in piece]])
    expect_call(answer, ([[".", "a"], ["b"]], {"."}), [[".", "a", "b"]])
    expect_call(answer, ([], {"."}), [])


@exercise("Look at the last piece of the new list: if it and the next one are the pair, join them in it.")
def _check_supermerge(answer: Any) -> None:
    pair = (" by", " the")
    for pieces, merged in (
        ([[" by"], [" the"], [" way"]], [[" by the"], [" way"]]),
        ([[" by"], [" the"], [" by"], [" the"]], [[" by the"], [" by the"]]),
        ([[" by", " the"]], [[" by", " the"]]),
        ([["x", " by"], [" the"]], [["x", " by"], [" the"]]),
        ([[" by"], [" the", "n"]], [[" by"], [" the", "n"]]),
        ([], []),
    ):
        expect_call(answer, (pieces, pair), merged, is_new=True)
    expect_call(answer, ([["a"], ["a"], ["a"]], ("a", "a")), [["aa"], ["a"]], is_new=True)


@exercise("First the language with the most tokens, then the most frequent pair of its row alone.")
def _check_parity_pair(answer: Any) -> None:
    chance = random.Random(16)
    cases = [{name: chance.choices("abc", k=chance.randint(0, 9)) for name in ("x", "y")} for _ in range(20)]
    for rows in (*cases, {"x": list("abab"), "y": list("cdcd")}, {"x": ["a"]}):
        counts = count_pairs(max(rows.values(), key=len))
        expect_call(answer, (rows,), max(counts, key=counts.__getitem__, default=None))


@exercise("The byte at a cut begins the next patch: `data[start:end]` for neighbouring cuts.")
def _check_entropy_patches(answer: Any) -> None:
    for data, entropies, threshold in (
        (b"the way", [0.0, 1.0, 0.5, 2.0, 3.0, 0.1, 0.2], 1.5),
        (b"abc", [9.0, 9.0, 9.0], 1.0),
        (b"abc", [0.0, 1.0, 1.0], 1.0),
        (b"", [], 1.0),
    ):
        cuts = [0, *(k for k in range(1, len(data)) if entropies[k] > threshold), len(data)]
        expected = [data[start:end] for start, end in pairwise(cuts) if end > start]
        expect_call(answer, (data, entropies, threshold), expected)
