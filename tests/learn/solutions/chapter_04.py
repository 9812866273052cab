"""Right answers to the exercises of chapter 4."""

from __future__ import annotations

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
