"""Documents in sequence, as arrays of ids and lengths: choosing, ordering and grouping them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "Counts",
    "DocumentGroups",
    "Flags",
    "Ids",
    "documents_that_fit",
    "offsets_of",
    "positions_in",
    "select_documents",
    "take_documents",
]

Ids: TypeAlias = npt.NDArray[np.uint32]
# Lengths, offsets, or numbers of rows.
Counts: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
# The ids of documents in sequence, and the number of ids of each.
_Documents: TypeAlias = tuple[Ids, Counts]
_Item = TypeVar("_Item", bound=np.generic)


def offsets_of(lengths: Counts) -> Counts:
    """Return the start of each document, and the end of the last."""
    return np.concatenate([[0], np.cumsum(lengths)])


def positions_in(lengths: Counts) -> Counts:
    """Return the position of each id in its document.

    >>> positions_in(np.array([2, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)


def select_documents(
    ids: npt.NDArray[_Item], lengths: Counts, chosen: Flags
) -> tuple[npt.NDArray[_Item], Counts]:
    """Return the ids, or the bytes, and the lengths of some documents.

    Args:
        ids: The ids of all documents, in sequence.
        lengths: The number of ids of each document.
        chosen: Which documents to return.

    >>> ids, lengths = select_documents(np.arange(6), np.array([1, 3, 2]), np.array([True, False, True]))
    >>> ids.tolist(), lengths.tolist()
    ([0, 4, 5], [1, 2])
    """
    return ids[np.repeat(chosen, lengths)], lengths[chosen]


def take_documents(
    ids: npt.NDArray[_Item], lengths: Counts, order: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[_Item], Counts]:
    """Return the ids and the lengths of some documents, in an order.

    Args:
        ids: The ids of all documents, in sequence.
        lengths: The number of ids of each document.
        order: The numbers of the documents to return.

    >>> ids, lengths = take_documents(np.arange(6), np.array([1, 3, 2]), np.array([2, 0]))
    >>> ids.tolist(), lengths.tolist()
    ([4, 5, 0], [2, 1])
    """
    starts, taken = (np.cumsum(lengths) - lengths)[order], lengths[order]
    return ids[np.repeat(starts, taken) + positions_in(taken)], taken


def documents_that_fit(offsets: Counts, start: int, held: int, limit: int) -> int:
    """Return the end of the documents that still fit into a shard.

    A document longer than the limit gets a shard for itself, and one without ids fits anywhere. So every
    shard has ids, and the shards do not depend on how the documents are batched.

    Args:
        offsets: The start of each document and the end of the last, in ids, int64.
        start: The first document that is not in a shard yet.
        held: Number of ids in the shard so far.
        limit: Maximum number of ids.

    Returns:
        The first document that does not fit; `start` if none does.

    >>> offsets = np.array([0, 4, 8, 20])
    >>> [documents_that_fit(offsets, *rest) for rest in [(0, 0, 9), (2, 8, 9), (2, 0, 9)]]
    [2, 2, 3]
    """
    begin = offsets[start]
    reach = begin + max(limit - held, 0)
    if held == 0:
        first_with_ids = int(np.searchsorted(offsets, begin, side="right"))
        reach = max(reach, offsets[min(first_with_ids, len(offsets) - 1)])
    return int(np.searchsorted(offsets, reach, side="right")) - 1


class DocumentGroups:
    """Groups whole documents up to a limit of ids, in whatever parts they are added.

    Args:
        limit: Maximum number of ids of a group; a longer document is a group.

    >>> groups = DocumentGroups(5)
    >>> ids = np.arange(9, dtype=np.uint32)
    >>> [lengths.tolist() for _, lengths in [*groups.add(ids, np.array([2, 3, 4])), *groups.finish()]]
    [[2, 3], [4]]
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._ids: list[Ids] = []
        self._lengths: list[Counts] = []
        self._held = 0

    def add(self, ids: Ids, lengths: Counts) -> Iterator[_Documents]:
        """Add documents, and yield the complete groups."""
        offsets = offsets_of(lengths)
        start = 0
        while start < len(lengths):
            end = documents_that_fit(offsets, start, self._held, self._limit)
            if end > start:
                self._ids.append(ids[offsets[start] : offsets[end]])
                self._lengths.append(lengths[start:end])
                self._held += int(offsets[end] - offsets[start])
            if end < len(lengths):
                yield from self.finish()
            start = end

    def finish(self) -> Iterator[_Documents]:
        """Yield the last group, if there is one."""
        ids, lengths = self._ids, self._lengths
        self._ids, self._lengths, self._held = [], [], 0
        if lengths:
            yield np.concatenate(ids), np.concatenate(lengths)
