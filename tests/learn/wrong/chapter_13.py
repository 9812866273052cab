"""Wrong answers to the exercises of chapter 13."""

from __future__ import annotations

import itertools
from collections.abc import Callable

NONE = 1 << 32


def naive_lookups(n: int, m: int) -> int:
    # The last look, which finds no merge, is forgotten.
    return sum(n - done - 1 for done in range(m))


def merge_fewer(merges: dict[tuple[int, int], int], ids: list[int]) -> list[int]:
    # Right ids, but every pair is looked up before every merge.
    ids = list(ids)
    while len(ids) > 1:
        new_id, at = min((merges.get(pair, NONE), i) for i, pair in enumerate(itertools.pairwise(ids)))
        if new_id == NONE:
            break
        ids[at : at + 2] = [new_id]
    return ids


def make_cached(encode: Callable[[str], list[int]], capacity: int) -> Callable[[str], list[int]]:
    # The cache grows without end.
    cache: dict[str, list[int]] = {}

    def cached(piece: str) -> list[int]:
        if piece not in cache:
            cache[piece] = encode(piece)
        return cache[piece]

    return cached


def stitch(first: list[bytes], second: list[bytes], start: int) -> list[bytes] | None:
    # The windows are joined without the test of the common token.
    position = 0
    for i, token in enumerate(first):
        if position == start:
            return first[:i] + second
        position += len(token)
    return None
