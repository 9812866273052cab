"""Answers to the exercises of chapter 8: right ones, and typical mistakes."""

from __future__ import annotations

from collections import Counter
from typing import Any

from bpe_tokenizer.reference import count_pairs, merge_pair, split

Pair = tuple[int, int]
BytesPair = tuple[bytes, bytes]


def count_pieces(documents: list[str], pattern: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for document in documents:
        counts.update(split(document, pattern))
    return counts


def add_counts(tables: list[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for table in tables:
        for piece, times in table.items():
            total[piece] = total.get(piece, 0) + times
    return total


def best_pair(counts: dict[BytesPair, int]) -> BytesPair | None:
    if not counts:
        return None
    return max(counts, key=lambda pair: (counts[pair], pair[0], pair[1]))


def count_changes(ids: list[int], pair: Pair, new_id: int) -> dict[Pair, int]:
    changes: dict[Pair, int] = {}
    for old, count in count_pairs(ids).items():
        changes[old] = changes.get(old, 0) - count
    for new, count in count_pairs(merge_pair(ids, pair, new_id)).items():
        changes[new] = changes.get(new, 0) + count
    return {each: change for each, change in changes.items() if change != 0}


def train_merges(table: dict[str, int], num_merges: int) -> list[BytesPair]:
    words = [([bytes([byte]) for byte in piece.encode()], times) for piece, times in table.items()]
    merges: list[BytesPair] = []
    for _ in range(num_merges):
        counts: dict[BytesPair, int] = {}
        for tokens, times in words:
            count_pairs(tokens, counts, times)
        pair = best_pair(counts)
        if pair is None:
            break
        left, right = pair
        words = [(merge_pair(tokens, pair, left + right), times) for tokens, times in words]
        merges.append(pair)
    return merges


def add_to_the_first(tables: list[dict[str, int]]) -> dict[str, int]:
    total = tables[0] if tables else {}  # Changes the first table.
    for table in tables[1:]:
        for piece, times in table.items():
            total[piece] = total.get(piece, 0) + times
    return total


def forget_what_disappears(ids: list[int], pair: Pair, new_id: int) -> dict[Pair, int]:
    before, after = count_pairs(ids), count_pairs(merge_pair(ids, pair, new_id))
    return {each: after[each] - before.get(each, 0) for each in after}


WRONG: dict[str, list[Any]] = {
    # Makes pieces across the ends of documents.
    "count_pieces": [lambda documents, pattern: Counter(split("".join(documents), pattern))],
    "add_counts": [add_to_the_first],
    "best_pair": [lambda counts: max(counts, key=counts.get, default=None)],  # The first of equal counts.
    "count_changes": [forget_what_disappears],
    # Forgets how often a piece occurs.
    "train_merges": [lambda table, number: train_merges(dict.fromkeys(table, 1), number)],
}
