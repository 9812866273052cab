"""A typical mistake in each exercise of chapter 9."""

from __future__ import annotations

from copy import copy
from itertools import pairwise

from bpe_tokenizer import BPETokenizer


def compression_ratio(text: str, ids: list[int]) -> float:
    return len(text) / len(ids) if ids else 0.0  # Characters, not bytes.


def table_parameters(n_ids: int, width: int, tied: bool) -> int:
    return n_ids * width * (2 if tied else 1)  # Tied tables are one table.


def padded_size(n_ids: int, multiple: int) -> int:
    return (n_ids // multiple + 1) * multiple  # Too much for a size that is a multiple already.


def enough(curve: dict[int, int], gain: float) -> int:
    sizes = list(curve)  # Not sorted.
    for size, larger in pairwise(sizes):
        if 1 - curve[larger] / curve[size] < gain:
            return size
    return sizes[-1]


def enough_2(curve: dict[int, int], gain: float) -> int:
    for size, larger in pairwise(sorted(curve)):
        if 1 - curve[larger] / curve[size] <= gain:  # Exactly `gain` is not less than `gain`.
            return size
    return max(curve)


def best_size(train_texts: list[str], test_texts: list[str], sizes: list[int], body: int, width: int) -> int:
    largest = BPETokenizer().train(train_texts, max(sizes), min_frequency=1, verbose=False)

    def cost(size: int) -> int:
        tokenizer = copy(largest).truncate_vocab(size)
        return sum(tokenizer.count_tokens(text) for text in test_texts)  # Forgets the output table.

    return min(sorted(sizes), key=cost)
