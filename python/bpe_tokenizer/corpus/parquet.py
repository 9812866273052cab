"""Token files in Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.shard_limits import DocumentGroups
from bpe_tokenizer.readers.columns import import_pyarrow

__all__ = ["ParquetShard", "TableShard"]

# The maximum of ids in a row group with several documents.
_ROW_GROUP_TOKENS = 1 << 20


class TableShard:
    """A shard that is a Parquet file with columns of lists.

    Args:
        file: The file to write.
        items: The type of the items of each column.
        options: More options of pyarrow's `ParquetWriter`.
    """

    def __init__(self, file: BinaryIO, items: Mapping[str, Any], **options: Any) -> None:
        self._pyarrow = import_pyarrow()
        schema = self._pyarrow.schema([(name, self._pyarrow.list_(kind)) for name, kind in items.items()])
        self._file = file
        self._table = self._pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", **options)
        # Documents and ids.
        self._written = (0, 0)
        self._bytes = 0

    def finish(self) -> None:
        """Write the footer."""
        self._table.close()
        self._bytes = self._file.tell()

    def sizes(self, documents: int, tokens: int) -> list[int]:
        """Return the size that the file must have, which its compression decides."""
        return [self._bytes if (documents, tokens) == self._written else -1]

    def abandon(self) -> None:
        """Close the unfinished table."""
        # Now: its finalizer would write to the closed file.
        with suppress(OSError, self._pyarrow.ArrowException):
            self._table.close()


class ParquetShard(TableShard):
    """Writes a row for each document, in a column `input_ids` of type `list<uint32>`.

    Args:
        files: The file to write.
        dtype: The type of an id: `uint32`.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str) -> None:
        super().__init__(files[0], {"input_ids": import_pyarrow().uint32()})
        self._row_groups = DocumentGroups(_ROW_GROUP_TOKENS)

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents. The row groups do not depend on how the documents are divided into calls."""
        self._written = (self._written[0] + len(lengths), self._written[1] + len(ids))
        for group in self._row_groups.add(ids, lengths):
            self._write_row_group(*group)

    def finish(self) -> None:
        """Write the last row group and the footer."""
        for group in self._row_groups.finish():
            self._write_row_group(*group)
        super().finish()

    def _write_row_group(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        pyarrow = self._pyarrow
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        rows = pyarrow.ListArray.from_arrays(pyarrow.array(offsets), pyarrow.array(ids, pyarrow.uint32()))
        self._table.write_table(pyarrow.table({"input_ids": rows}), row_group_size=len(rows))
