"""Right answers to the exercises of chapter 13."""

from __future__ import annotations

from collections.abc import Callable

NONE = 1 << 32


def naive_lookups(n: int, m: int) -> int:
    total = 0
    for merges_done in range(m + 1):
        symbols = n - merges_done
        if symbols > 1:
            total += symbols - 1
    return total


def merge_fewer(merges: dict[tuple[int, int], int], ids: list[int]) -> list[int]:
    ids = list(ids)

    def rank(at: int) -> int:
        if (ids[at], ids[at + 1]) in merges:
            return merges[ids[at], ids[at + 1]]
        return NONE

    ranks = [rank(at) for at in range(len(ids) - 1)]
    while ranks and min(ranks) != NONE:
        new_id = min(ranks)
        at = ranks.index(new_id)
        ids[at : at + 2] = [new_id]
        del ranks[at]
        if at < len(ranks):
            ranks[at] = rank(at)
        if at > 0:
            ranks[at - 1] = rank(at - 1)
    return ids


def make_cached(encode: Callable[[str], list[int]], capacity: int) -> Callable[[str], list[int]]:
    cache: dict[str, list[int]] = {}

    def cached(piece: str) -> list[int]:
        if piece in cache:
            return cache[piece]
        ids = encode(piece)
        if len(cache) < capacity:
            cache[piece] = ids
        return ids

    return cached


def stitch(first: list[bytes], second: list[bytes], start: int) -> list[bytes] | None:
    position = 0
    for i, token in enumerate(first):
        if position == start:
            return first[:i] + second if token == second[0] else None
        position += len(token)
    return None
