"""The documents of a corpus in batches of strings, with their positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np

from bpe_tokenizer.readers.batches import DocumentBatch, read_batches
from bpe_tokenizer.readers.inputs import Input
from bpe_tokenizer.readers.options import ReadOptions
from bpe_tokenizer.readers.positions import Position

__all__ = ["Batch", "BatchReader"]

_BATCH_DOCUMENTS = 50_000


class Batch(NamedTuple):
    """Documents with their positions in the inputs."""

    texts: list[str]
    positions: list[Position]


class BatchReader:
    """Reads the documents after a position, once.

    Args:
        sources: The inputs.
        options: How documents are found in them.
        start: The end of an earlier run.
        threads: The number of threads that read.
    """

    def __init__(
        self, sources: Sequence[Input], options: ReadOptions, start: Position, threads: int | None = None
    ) -> None:
        self._sources = sources
        self._options = options
        self._threads = threads
        self.bytes_read = 0
        self.position = start

    def batches(self) -> Iterator[Batch]:
        """Yield all batches, in order.

        Raises:
            CorpusError: A file is broken, or a row is bad and the options say to stop.
        """
        with closing(
            read_batches(self._sources, self._options, self.position, threads=self._threads)
        ) as found:
            for batch in found:
                positions = self._positions(batch)
                texts = batch.texts()
                self.bytes_read = batch.bytes_read
                for start in range(0, len(texts), _BATCH_DOCUMENTS):
                    stop = start + _BATCH_DOCUMENTS
                    yield Batch(texts[start:stop], positions[start:stop])

    def _positions(self, batch: DocumentBatch) -> list[Position]:
        """Return the position of each document, and move to the end of the batch."""
        before = self.position.skipped
        bad = np.array([row.row for row in batch.bad], np.int64)
        skipped = np.searchsorted(bad, batch.rows) + before
        positions = [
            Position(batch.input, row, count)
            for row, count in zip(batch.rows.tolist(), skipped.tolist(), strict=True)
        ]
        last = max([*batch.rows[-1:].tolist(), *bad[-1:].tolist()], default=0)
        self.position = Position(batch.input, last, before + len(bad))
        return positions
