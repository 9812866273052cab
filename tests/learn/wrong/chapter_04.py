"""A typical mistake in each exercise of chapter 4."""

from __future__ import annotations

from bpe_tokenizer.reference import count_pairs, merge_pair

Pair = tuple[int, int]


def most_frequent(ids: list[int]) -> Pair | None:
    pairs = list(zip(ids[::2], ids[1::2], strict=False))  # Every second pair.
    return max(pairs, key=pairs.count) if pairs else None


def build_vocab(merges: dict[Pair, int]) -> dict[int, bytes]:
    vocab = {byte: chr(byte).encode("utf-8") for byte in range(256)}  # Two bytes from 128.
    for (left, right), new_id in merges.items():
        vocab[new_id] = vocab[left] + vocab[right]
    return vocab


def train_often(text: str, vocab_size: int, min_count: int) -> dict[Pair, int]:
    ids = list(text.encode("utf-8"))
    merges: dict[Pair, int] = {}
    for new_id in range(256, vocab_size):
        counts = count_pairs(ids)
        if not counts:
            break
        pair = max(counts, key=lambda pair: counts[pair])
        ids = merge_pair(ids, pair, new_id)
        merges[pair] = new_id
        if counts[pair] < min_count:  # Too late: the pair is merged.
            break
    return merges


def encode_in_order(text: str, merges: dict[Pair, int]) -> list[int]:
    ids = list(text.encode("utf-8"))
    for pair, new_id in reversed(merges.items()):  # The wrong order.
        ids = merge_pair(ids, pair, new_id)
    return ids


two_ways = ([97, 97, 97, 98], [258])  # 258 is what encode returns.
