"""Right answers to the exercises of chapter 9."""

from __future__ import annotations

from copy import copy
from itertools import pairwise

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
