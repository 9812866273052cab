"""Checks of the exercises of chapter 8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bpe_tokenizer.reference import GPT2_SPLIT_PATTERN, GPT4_SPLIT_PATTERN, count_pairs, merge_pair, split
from course.exercise import WrongAnswer, exercise, expect_call, expect_function, shortened

_Pair = tuple[bytes, bytes]


@exercise("Call `split` for each document, and add all its pieces to one `Counter`.")
def _check_count_pieces(answer: Any) -> None:
    for pattern in (GPT2_SPLIT_PATTERN, GPT4_SPLIT_PATTERN, "[a-z]+"):
        for documents in (
            ["low low lower", "newest newest", "the lowest low"],
            ["no space at the end", "no space at the start"],
            ["a\n\n", "\n b  c", "12345 6"],
            ["naïve 中文", "naïve"],
            ["", "x", ""],
            [],
        ):
            expected = Counter(piece for document in documents for piece in split(document, pattern))
            expect_call(answer, (documents, pattern), dict(expected))


@exercise("Start from an empty `Counter`: its method `update` adds.")
def _check_add_counts(answer: Any) -> None:
    expect_function(answer)
    cases: tuple[list[dict[str, int]], ...] = (
        [{"low": 2, "est": 1}, {"low": 3, "new": 4}],
        [{"a": 1}, {}, {"b": 2, "a": 10}, {"a": 100}],
        [{"x": 5}],
        [{}],
        [],
    )
    for tables in cases:
        kept = [dict(table) for table in tables]
        expected: Counter[str] = Counter()
        for table in tables:
            expected.update(table)
        expect_call(answer, (tables,), dict(expected))
        found = answer(kept)
        if kept != tables:
            raise WrongAnswer(f"add_counts({shortened(tables)}) changes the dictionaries that it gets")
        if any(found is table for table in kept):
            raise WrongAnswer(
                f"add_counts({shortened(tables)}) returns one of its arguments, and not a new dictionary"
            )


def _best(counts: Mapping[_Pair, int]) -> _Pair | None:
    return max(counts, key=lambda pair: (counts[pair], pair), default=None)


@exercise("Python compares tuples item by item: the key of `max` can be a tuple of the count and the pair.")
def _check_best_pair(answer: Any) -> None:
    cases: list[dict[_Pair, int]] = [
        {(b"e", b"s"): 9, (b"s", b"t"): 9, (b"l", b"o"): 7},
        {(b"s", b"t"): 9, (b"e", b"s"): 9, (b"l", b"o"): 7},
        {(b"a", b"z"): 1, (b"b", b"a"): 2},
        {(b"a", b"b"): 5, (b"z", b"z"): 1},
        {(b"t", b"h"): 3, (b"t", b"he"): 3},
        {(b"t", b"he"): 3, (b"t", b"h"): 3},
        {(b"t", b"h"): 3, (b"t", b"he"): 3, (b"th", b"e"): 3},
        {(b"th", b"e"): 3, (b"t", b"he"): 3, (b"t", b"h"): 3},
        {(b"a", b"b"): 4, (b"\xc3", b"\xa9"): 4, (b"z", b"z"): 4},
        {(b"a", b"c"): 2, (b"ab", b"a"): 2},
        {(b"a", b"b"): 1},
        {},
    ]
    for counts in cases:
        expect_call(answer, (counts,), _best(counts))


def _changes(ids: list[int], pair: tuple[int, int], new_id: int) -> dict[tuple[int, int], int]:
    before, after = count_pairs(ids), count_pairs(merge_pair(ids, pair, new_id))
    changes = {each: after.get(each, 0) - before.get(each, 0) for each in before | after}
    return {each: change for each, change in changes.items() if change}


@exercise("Count the pairs with `count_pairs` in the word before and after `merge_pair`, and subtract.")
def _check_count_changes(answer: Any) -> None:
    for ids, pair in (
        (list(b"newest"), (101, 115)),
        (list(b"lowlow"), (108, 111)),
        (list(b"aaaa"), (97, 97)),
        (list(b"aaaaa"), (97, 97)),
        (list(b"ababab"), (97, 98)),
        (list(b"abcab"), (98, 99)),
        (list(b"ab"), (97, 98)),
        (list(b"low"), (120, 121)),
        ([], (1, 2)),
        ([256, 116, 256, 116, 257, 256, 116], (256, 116)),
    ):
        expect_call(answer, (ids, pair, 300), _changes(ids, pair, 300))


def _train(table: Mapping[str, int], num_merges: int) -> list[_Pair]:
    words = [([bytes([byte]) for byte in piece.encode()], times) for piece, times in table.items()]
    merges: list[_Pair] = []
    while len(merges) < num_merges:
        counts: dict[_Pair, int] = {}
        for tokens, times in words:
            count_pairs(tokens, counts, times)
        pair = _best(counts)
        if pair is None:
            break
        merges.append(pair)
        words = [(merge_pair(tokens, pair, pair[0] + pair[1]), times) for tokens, times in words]
    return merges


@exercise(
    "`count_pairs` and `merge_pair` also work on lists of `bytes`, and the new token is left plus right."
)
def _check_train_merges(answer: Any) -> None:
    for table in (
        {"low": 5, "lower": 2, "newest": 6, "widest": 3},
        {" cat": 2, " dog": 2, "cat": 1, "dog": 1},
        {"aaaa": 3, "aa": 1},
        {"naïve": 2, "né": 3, "中": 1, "国": 1},
        {"a": 9},
        {},
    ):
        for order in (list(table), list(table)[::-1]):
            for num_merges in (0, 3, 50):
                expect_call(
                    answer,
                    ({piece: table[piece] for piece in order}, num_merges),
                    _train(table, num_merges),
                )
