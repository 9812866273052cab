"""Answers to the exercises of chapter 13: right ones, and typical mistakes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

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


def merge_with_all_lookups(merges: dict[tuple[int, int], int], ids: list[int]) -> list[int]:
    # Right ids, but every pair is looked up before every merge.
    ids = list(ids)
    while len(ids) > 1:
        new_id, at = min((merges.get(pair, NONE), i) for i, pair in enumerate(itertools.pairwise(ids)))
        if new_id == NONE:
            break
        ids[at : at + 2] = [new_id]
    return ids


def stitch_unseen(first: list[bytes], second: list[bytes], start: int) -> list[bytes] | None:
    # The windows are joined without the test of the common token.
    starts = [len(b"".join(first[:i])) for i in range(len(first))]
    return first[: starts.index(start)] + second if start in starts else None


WRONG: dict[str, list[Any]] = {
    # The last look, which finds no merge, is forgotten.
    "naive_lookups": [lambda n, m: sum(n - done - 1 for done in range(m))],
    "merge_fewer": [merge_with_all_lookups],
    "make_cached": [lambda encode, capacity: make_cached(encode, 1000)],  # The cache grows without end.
    "stitch": [stitch_unseen],
}
