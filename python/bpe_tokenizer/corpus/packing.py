"""Packs documents into sequences of a fixed length, as training programs read them.

A packer takes documents incrementally. Its sequences do not depend on how they are divided into calls.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import chain
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from bpe_tokenizer.corpus.documents import Counts, DocumentGroups, Ids, offsets_of, take_documents

__all__ = ["BestFitPacker", "ConcatPacker", "PackStrategy", "PackedIds", "best_fit", "split_into_sequences"]

PackStrategy: TypeAlias = Literal["concat", "best-fit"]

# The number of ids, and the number of full sequences if that is more, that best-fit packing sorts at a time.
_WINDOW_TOKENS = 1 << 20
_WINDOW_SEQUENCES = 32
# The number of ids that are returned together, if they are several sequences.
_BLOCK_TOKENS = 1 << 20


class PackedIds(NamedTuple):
    """Packed sequences.

    A piece is a document, or a part of a document that is in several sequences.

    Args:
        ids: The ids of all sequences, without padding.
        pieces: The number of ids of each piece, in order.
        counts: The number of pieces of each sequence.
    """

    ids: Ids
    pieces: Counts
    counts: Counts

    @property
    def lengths(self) -> Counts:
        """The number of ids of each sequence."""
        return np.diff(offsets_of(self.pieces)[offsets_of(self.counts)])


def split_into_sequences(lengths: Counts, size: int) -> tuple[Counts, Counts]:
    """Cut concatenated documents every `size` ids.

    Args:
        lengths: The number of ids of each document.
        size: The number of ids of a sequence.

    Returns:
        The lengths of the pieces, and the number of pieces of each sequence. All sequences but the last have
        `size` ids. A document without ids is not a piece.

    >>> pieces, counts = split_into_sequences(np.array([3, 6, 0, 1]), 4)
    >>> pieces.tolist(), counts.tolist()
    ([3, 1, 4, 1, 1], [2, 1, 2])
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    sequence_ends = np.append(np.arange(size, total, size, dtype=np.int64), total)[: -(-total // size)]
    ends = np.union1d(ends[ends > 0], sequence_ends)
    counts = np.diff(np.searchsorted(ends, sequence_ends, side="right"), prepend=0)
    return np.diff(ends, prepend=0), counts


class ConcatPacker:
    """Concatenates the documents in order and cuts every `size` ids ("concat and chunk").

    No id is lost and the order is kept. Only the last sequence can be shorter. Memory holds less than one
    sequence between two calls.

    Args:
        size: The number of ids of a sequence.

    >>> packer = ConcatPacker(4)
    >>> [packed] = packer.add(np.arange(9, dtype=np.uint32), np.array([3, 6]))
    >>> packed.ids.tolist(), packed.pieces.tolist(), packed.counts.tolist()
    ([0, 1, 2, 3, 4, 5, 6, 7], [3, 1, 4], [2, 1])
    >>> [packed.ids.tolist() for packed in packer.finish()]
    [[8]]
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._ids = np.empty(0, dtype=np.uint32)
        self._pieces = np.empty(0, dtype=np.int64)

    def add(self, ids: Ids, lengths: Counts) -> Iterator[PackedIds]:
        """Add documents, and yield the sequences that are complete."""
        pieces, counts = split_into_sequences(np.concatenate([self._pieces, lengths]), self._size)
        held = len(self._ids)
        complete = (held + len(ids)) // self._size
        used = 0
        step = max(_BLOCK_TOKENS // self._size, 1)
        for start in range(0, complete, step):
            block = counts[start : min(start + step, complete)]
            # Only the ids of the first block are copied, as a document may be long.
            part = ids[max(start * self._size - held, 0) : (start + len(block)) * self._size - held]
            if start == 0 and held:
                part = np.concatenate([self._ids, part])
            end = used + int(block.sum())
            yield PackedIds(part, pieces[used:end], block)
            used = end
        rest = ids[max(complete * self._size - held, 0) :]
        self._ids = rest.copy() if complete else np.concatenate([self._ids, rest])
        self._pieces = pieces[used:].copy()

    def finish(self) -> Iterator[PackedIds]:
        """Yield the last, incomplete sequence."""
        if len(self._ids):
            yield PackedIds(self._ids, self._pieces, np.array([len(self._pieces)]))
            self._ids, self._pieces = self._ids[:0], self._pieces[:0]


def best_fit(lengths: Counts, size: int) -> list[list[int]]:
    """Assign pieces to sequences by best-fit decreasing (Johnson, 1973).

    The longest piece comes first. Each piece goes into the fullest sequence that has room for it.

    Args:
        lengths: The number of ids of each piece, from 1 to `size`.
        size: The number of ids of a sequence.

    Returns:
        The pieces of each sequence, in order. The sequences are in the order of their first pieces.

    >>> best_fit(np.array([2, 5, 3, 3, 1]), 6)
    [[0], [1, 4], [2, 3]]
    """
    # The room of each sequence that is not full, and its number; of equal rooms, the latest comes first.
    rooms: list[tuple[int, int, int]] = []
    sequences: list[list[int]] = []
    for turn, piece in enumerate(np.argsort(-lengths, kind="stable").tolist()):
        length = int(lengths[piece])
        place = bisect_left(rooms, (length, -turn))
        if place < len(rooms):
            room, _, number = rooms.pop(place)
        else:
            room, number = size, len(sequences)
            sequences.append([])
        sequences[number].append(piece)
        if room > length:
            insort(rooms, (room - length, -turn, number))
    return sorted(map(sorted, sequences))


class BestFitPacker:
    """Keeps documents whole where they fit: packs them by `best_fit` in windows of a million ids.

    A document longer than a sequence is cut every `size` ids first. No id is lost; the order is kept between
    windows and within a sequence. Every sequence can be shorter than `size`.

    Args:
        size: The number of ids of a sequence.

    >>> packer = BestFitPacker(4)
    >>> list(packer.add(np.arange(8, dtype=np.uint32), np.array([3, 2, 1, 2])))
    []
    >>> [(packed.ids.tolist(), packed.lengths.tolist()) for packed in packer.finish()]
    [([0, 1, 2, 5, 3, 4, 6, 7], [4, 4])]
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._windows = DocumentGroups(max(_WINDOW_TOKENS, _WINDOW_SEQUENCES * size))

    def add(self, ids: Ids, lengths: Counts) -> Iterator[PackedIds]:
        """Add documents, and yield the sequences of complete windows."""
        for window in self._windows.add(ids, lengths):
            yield from self._packed(*window)

    def finish(self) -> Iterator[PackedIds]:
        """Yield the sequences of the last window."""
        for window in self._windows.finish():
            yield from self._packed(*window)

    def _packed(self, ids: Ids, lengths: Counts) -> Iterator[PackedIds]:
        pieces = _cut(lengths, self._size)
        sequences = best_fit(pieces, self._size)
        step = max(_BLOCK_TOKENS // self._size, 1)
        for start in range(0, len(sequences), step):
            block = sequences[start : start + step]
            taken = take_documents(ids, pieces, np.array([*chain.from_iterable(block)]))
            yield PackedIds(*taken, np.array([len(sequence) for sequence in block]))


def _cut(lengths: Counts, size: int) -> Counts:
    """Cut each document every `size` ids."""
    lengths = lengths[lengths > 0]
    numbers = -(-lengths // size)
    pieces = np.full(int(numbers.sum()), size, dtype=np.int64)
    pieces[np.cumsum(numbers) - 1] = lengths - (numbers - 1) * size
    return pieces
