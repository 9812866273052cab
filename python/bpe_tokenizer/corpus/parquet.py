"""Token files in Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.portions import fitting
from bpe_tokenizer.corpus.tables import import_pyarrow

__all__ = ["ParquetShard"]

# A row group ends before the document that would give it more ids.
_ROW_GROUP_TOKENS = 1 << 20


class ParquetShard:
    """A row a document, in a column `input_ids` of type `list<uint32>`.

    Args:
        paths: The file to write.
        kind: The type of an id: `uint32`.
    """

    def __init__(self, paths: Sequence[Path], kind: str) -> None:
        self._pyarrow = import_pyarrow()
        rows = self._pyarrow.list_(self._pyarrow.uint32())
        schema = self._pyarrow.schema([("input_ids", rows)])
        self._file = paths[0].open("xb")
        self._table = self._pyarrow.parquet.ParquetWriter(self._file, schema, compression="zstd")
        self._ids: list[npt.NDArray[np.uint32]] = []
        self._lengths: list[npt.NDArray[np.int64]] = []
        self._held = 0

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents; row groups end where they would if all had come at once."""
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        start = 0
        while start < len(lengths):
            end = fitting(offsets, start, self._held, _ROW_GROUP_TOKENS)
            if end > start:
                self._ids.append(ids[offsets[start] : offsets[end]])
                self._lengths.append(lengths[start:end])
                self._held += int(offsets[end] - offsets[start])
            if end < len(lengths):
                self._write_row_group()
            start = end

    def finish(self) -> None:
        """Write the last row group and the footer."""
        self._write_row_group()
        self._table.close()
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is."""
        # The writer would try to end its file later, when Python forgets it.
        with suppress(OSError, self._pyarrow.ArrowException):
            self._table.close()
        self._file.close()

    def _write_row_group(self) -> None:
        if not self._lengths:
            return
        pyarrow = self._pyarrow
        ids = pyarrow.array(np.concatenate(self._ids), pyarrow.uint32())
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(self._lengths))]).astype(np.int32)
        rows = pyarrow.ListArray.from_arrays(pyarrow.array(offsets), ids)
        self._table.write_table(pyarrow.table({"input_ids": rows}), row_group_size=len(rows))
        self._ids, self._lengths, self._held = [], [], 0
