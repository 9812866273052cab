"""Answers to the exercises of chapter 9: right ones, and typical mistakes."""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from typing import Any

from bpe_tokenizer import BPETokenizer


def compression_ratio(text: str, ids: list[int]) -> float:
    if not ids:
        return 0.0
    return len(text.encode()) / len(ids)


def table_parameters(n_ids: int, width: int, tied: bool) -> int:
    tables = 1 if tied else 2
    return n_ids * width * tables


def padded_size(n_ids: int, multiple: int) -> int:
    return (n_ids + multiple - 1) // multiple * multiple


def enough(curve: dict[int, int], gain: float) -> int:
    sizes = sorted(curve)
    for size, larger in pairwise(sizes):
        if (curve[size] - curve[larger]) / curve[size] < gain:
            return size
    return sizes[-1]


def best_size(train_texts: list[str], test_texts: list[str], sizes: list[int], body: int, width: int) -> int:
    largest = BPETokenizer().train(train_texts, max(sizes), min_frequency=1, verbose=False)

    def cost(size: int) -> int:
        tokenizer = copy(largest).truncate_vocab(size)
        tokens = sum(tokenizer.count_tokens(text) for text in test_texts)
        return tokens * (body + size * width)

    return min(sorted(sizes), key=cost)


def enough_unsorted(curve: dict[int, int], gain: float) -> int:
    sizes = list(curve)
    for size, larger in pairwise(sizes):
        if 1 - curve[larger] / curve[size] < gain:
            return size
    return sizes[-1]


def enough_at_the_gain(curve: dict[int, int], gain: float) -> int:
    for size, larger in pairwise(sorted(curve)):
        if 1 - curve[larger] / curve[size] <= gain:  # Exactly `gain` is not less than `gain`.
            return size
    return max(curve)


WRONG: dict[str, list[Any]] = {
    "compression_ratio": [lambda text, ids: len(text) / len(ids) if ids else 0.0],  # Characters, not bytes.
    "table_parameters": [lambda n_ids, width, tied: n_ids * width * (2 if tied else 1)],  # Tied: one table.
    # Too much for a size that is a multiple already.
    "padded_size": [lambda n_ids, multiple: (n_ids // multiple + 1) * multiple],
    "enough": [enough_unsorted, enough_at_the_gain],
    # Forgets the output table.
    "best_size": [lambda train, test, sizes, *_: best_size(train, test, sizes, 1, 0)],
}
