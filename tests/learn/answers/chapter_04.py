"""Answers to the exercises of chapter 4: right ones, and typical mistakes."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.reference import count_pairs, merge_pair

Pair = tuple[int, int]


def most_frequent(ids: list[int]) -> Pair | None:
    counts = count_pairs(ids)
    if not counts:
        return None
    return max(counts, key=lambda pair: counts[pair])


def build_vocab(merges: dict[Pair, int]) -> dict[int, bytes]:
    vocab = {byte: bytes([byte]) for byte in range(256)}
    for (left, right), new_id in merges.items():
        vocab[new_id] = vocab[left] + vocab[right]
    return vocab


def train_often(text: str, vocab_size: int, min_count: int) -> dict[Pair, int]:
    ids = list(text.encode("utf-8"))
    merges: dict[Pair, int] = {}
    for new_id in range(256, vocab_size):
        pair = most_frequent(ids)
        if pair is None or count_pairs(ids)[pair] < min_count:
            break
        ids = merge_pair(ids, pair, new_id)
        merges[pair] = new_id
    return merges


def encode_in_order(text: str, merges: dict[Pair, int]) -> list[int]:
    ids = list(text.encode("utf-8"))
    for pair, new_id in merges.items():
        ids = merge_pair(ids, pair, new_id)
    return ids


two_ways = ([97, 97, 97, 98], [257, 98])


def train_too_long(text: str, vocab_size: int, min_count: int) -> dict[Pair, int]:
    merges = train_often(text, vocab_size, 1)
    ids = list(text.encode("utf-8"))
    for number, (pair, new_id) in enumerate(merges.items(), 1):
        if count_pairs(ids)[pair] < min_count:  # Too late: the pair is merged.
            return dict(list(merges.items())[:number])
        ids = merge_pair(ids, pair, new_id)
    return merges


WRONG: dict[str, list[Any]] = {
    # Every second pair.
    "most_frequent": [
        lambda ids: max(pairs := [*zip(ids[::2], ids[1::2], strict=False)], key=pairs.count, default=None)
    ],
    # Two bytes from 128.
    "build_vocab": [lambda merges: build_vocab(merges) | {byte: chr(byte).encode() for byte in range(256)}],
    "train_often": [train_too_long],
    "encode_in_order": [lambda text, merges: encode_in_order(text, dict(reversed(merges.items())))],
    "two_ways": [([97, 97, 97, 98], [258])],  # 258 is what encode returns.
}
