"""Checks of the exercises of chapter 9."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import pairwise
from typing import Any

from course.exercise import exercise, expect_call


@exercise("Count bytes with `len(text.encode())`, and look at the empty list first.")
def _check_compression_ratio(answer: Any) -> None:
    for text, ids in (
        ("hello", [1, 2]),
        ("naïve", [5, 6, 7]),
        ("中文", [1]),
        ("🦜", [1, 2, 3, 4]),
        ("low lowest", [257, 258, 300]),
        ("", []),
        ("x", [120]),
    ):
        expect_call(answer, (text, ids), len(text.encode()) / len(ids) if ids else 0.0)


@exercise("A table has one row for each id, and each row has `width` numbers.")
def _check_table_parameters(answer: Any) -> None:
    for n_ids, width in ((50_257, 768), (32_000, 4096), (128_256, 4096), (256, 1)):
        for tied in (True, False):
            expect_call(answer, (n_ids, width, tied), n_ids * width * (1 if tied else 2))


@exercise("How many blocks of `multiple` rows are needed? The last block may have empty rows.")
def _check_padded_size(answer: Any) -> None:
    for n_ids in (1, 127, 128, 129, 50_257, 50_304, 128_256):
        for multiple in (1, 64, 128, 1000):
            expect_call(answer, (n_ids, multiple), n_ids + -n_ids % multiple)


def _enough(curve: dict[int, int], gain: float) -> int:
    for size, larger in pairwise(sorted(curve)):
        if 1 - curve[larger] / curve[size] < gain:
            return size
    return max(curve)


@exercise("Sort the sizes, and look at each size together with the next one.")
def _check_enough(answer: Any) -> None:
    curve = {512: 16390, 1024: 12326, 2048: 10096, 4096: 9029, 8192: 8377}
    for gain in (0.3, 0.2, 0.15, 0.1, 0.05, 0.0):
        expect_call(answer, (curve, gain), _enough(curve, gain))
        shuffled = {size: curve[size] for size in (4096, 512, 8192, 1024, 2048)}
        expect_call(answer, (shuffled, gain), _enough(curve, gain))
    bumpy = {100: 80, 200: 76, 300: 50, 400: 25}
    for gain in (0.5, 0.25, 0.04):
        expect_call(answer, (bumpy, gain), _enough(bumpy, gain))
    expect_call(answer, ({256: 1000, 512: 500}, 0.5), 512)  # saves exactly `gain`, and not less
    expect_call(answer, ({256: 1000}, 0.1), 256)


_TRAINING = (
    "the lowest of the low and the newest of the new",
    "a flower flows lower than the widest river of the lowest land",
    "newer and newest, wider and widest, lower and lowest",
    "A model reads tokens, and a tokenizer makes them from the bytes of a text.",
    "Most words are rare, few words are frequent, and some numbers never occur twice.",
)
_TEST = ("the newest flower is the lowest", "a wider river flows lower")


def _best_size(train: Sequence[str], test: Sequence[str], sizes: Sequence[int], body: int, width: int) -> int:
    from bpe_tokenizer import BPETokenizer

    largest = BPETokenizer().train(list(train), max(sizes), min_frequency=1, verbose=False)
    costs: dict[int, int] = {}
    for size in sorted(sizes):
        tokenizer = copy(largest).truncate_vocab(size)
        costs[size] = sum(map(tokenizer.count_tokens, test)) * (body + size * width)
    return min(costs, key=costs.__getitem__)


@exercise("Truncate a copy of the largest tokenizer for each size, as `count_by_size` does.")
def _check_best_size(answer: Any) -> None:
    cases: tuple[tuple[list[int], int, int], ...] = (
        ([260, 280, 300, 340, 400], 1_000_000, 256),
        ([400, 300, 260, 340, 280], 100, 256),
        ([400, 260], 1_000, 64),
        ([260, 280, 300, 340, 400], 0, 1),
        ([300, 320], 0, 1),
        ([320, 300, 260], 100, 16),
        ([400, 390], 1_000, 0),
        ([265], 5, 5),
    )
    for sizes, body, width in cases:
        arguments = (list(_TRAINING), list(_TEST), sizes, body, width)
        expect_call(answer, arguments, _best_size(_TRAINING, _TEST, sizes, body, width))
    swapped = (list(_TEST), list(_TRAINING), [260, 265], 100_000, 10)
    expect_call(answer, swapped, _best_size(_TEST, _TRAINING, [260, 265], 100_000, 10))
