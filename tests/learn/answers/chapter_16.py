"""Answers to the exercises of chapter 16: right ones, and typical mistakes."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.reference import count_pairs, merge_pair

Pair = tuple[str, str]


def next_merge(tokens: list[str], ranks: dict[Pair, int], dropped: set[int]) -> int | None:
    best = None
    for k in range(len(tokens) - 1):
        rank = ranks.get((tokens[k], tokens[k + 1]))
        if rank is not None and k not in dropped and (best is None or (rank, k) < best):
            best = (rank, k)
    return best and best[1]


def super_rows(pieces: list[list[str]], ends: set[str]) -> list[list[str]]:
    rows: list[list[str]] = []
    is_open = False
    for piece in pieces:
        if not is_open:
            rows.append([])
        rows[-1] += piece
        is_open = piece[-1] not in ends
    return rows


def supermerge(pieces: list[list[str]], pair: Pair) -> list[list[str]]:
    merged: list[list[str]] = []
    for piece in pieces:
        if merged and merged[-1] == [pair[0]] and piece == [pair[1]]:
            merged[-1] = [pair[0] + pair[1]]
        else:
            merged.append(piece)
    return merged


def parity_pair(rows: dict[str, list[str]]) -> Pair | None:
    worst = max(rows, key=lambda name: len(rows[name]))
    counts = count_pairs(rows[worst])
    return max(counts, key=lambda pair: counts[pair], default=None)


def entropy_patches(data: bytes, entropies: list[float], threshold: float) -> list[bytes]:
    patches: list[bytes] = []
    for k in range(len(data)):
        if k == 0 or entropies[k] > threshold:
            patches.append(b"")
        patches[-1] += data[k : k + 1]
    return patches


def pair_of_all(rows: dict[str, list[str]]) -> Pair | None:
    counts: dict[Pair, int] = {}
    for row in rows.values():
        count_pairs(row, counts)
    return max(counts, key=lambda pair: counts[pair], default=None)


def cut_after(data: bytes, entropies: list[float], threshold: float) -> list[bytes]:
    patches = [b""]
    for k in range(len(data)):
        patches[-1] += data[k : k + 1]
        if entropies[k] > threshold:
            patches.append(b"")
    return [patch for patch in patches if patch]


WRONG: dict[str, list[Any]] = {
    # The first pair with a rank, and not the lowest rank.
    "next_merge": [
        lambda tokens, ranks, dropped: next(
            (k for k in range(len(tokens) - 1) if (tokens[k], tokens[k + 1]) in ranks and k not in dropped),
            None,
        )
    ],
    "super_rows": [lambda pieces, ends: [[token for piece in pieces for token in piece]]],  # One sentence.
    # Merges inside of pieces.
    "supermerge": [lambda pieces, pair: [merge_pair(piece, pair, "".join(pair)) for piece in pieces]],
    "parity_pair": [pair_of_all],  # This is BPE.
    "entropy_patches": [cut_after],
}
