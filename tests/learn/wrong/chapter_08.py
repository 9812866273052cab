"""A typical mistake in each exercise of chapter 8."""

from __future__ import annotations

from collections import Counter

from bpe_tokenizer.reference import count_pairs, merge_pair, split

Pair = tuple[int, int]
BytesPair = tuple[bytes, bytes]


def count_pieces(documents: list[str], pattern: str) -> Counter[str]:
    return Counter(split("".join(documents), pattern))  # Makes pieces across the ends of documents.


def add_counts(tables: list[dict[str, int]]) -> dict[str, int]:
    total = tables[0] if tables else {}  # Changes the first table.
    for table in tables[1:]:
        for piece, times in table.items():
            total[piece] = total.get(piece, 0) + times
    return total


def best_pair(counts: dict[BytesPair, int]) -> BytesPair | None:
    return max(counts, key=lambda pair: counts[pair], default=None)  # The first of equal counts.


def count_changes(ids: list[int], pair: Pair, new_id: int) -> dict[Pair, int]:
    before, after = count_pairs(ids), count_pairs(merge_pair(ids, pair, new_id))
    return {each: after[each] - before.get(each, 0) for each in after}  # Forgets the pairs that disappear.


def train_merges(table: dict[str, int], num_merges: int) -> list[BytesPair]:
    words = [
        [bytes([byte]) for byte in piece.encode()] for piece in table
    ]  # Forgets how often a piece occurs.
    merges: list[BytesPair] = []
    for _ in range(num_merges):
        counts: dict[BytesPair, int] = {}
        for tokens in words:
            count_pairs(tokens, counts)
        if not counts:
            break
        pair = max(counts, key=lambda pair: (counts[pair], pair))
        words = [merge_pair(tokens, pair, pair[0] + pair[1]) for tokens in words]
        merges.append(pair)
    return merges
