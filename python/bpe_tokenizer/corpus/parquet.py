"""Token files in Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.documents import Counts, DocumentGroups, Ids, offsets_of
from bpe_tokenizer.readers.columns import import_pyarrow

__all__ = ["ParquetShard", "TableShard"]

# The maximum of ids in a row group with several documents.
_ROW_GROUP_TOKENS = 1 << 20


class TableShard:
    """A Parquet file with columns of lists.

    Args:
        file: The file to write.
        items: The type of the items of each column, by its name in pyarrow.
        options: More options of pyarrow's `ParquetWriter`.
    """

    def __init__(self, file: BinaryIO, items: Mapping[str, str], **options: Any) -> None:
        self._pyarrow = import_pyarrow()
        self._items = {name: getattr(self._pyarrow, kind)() for name, kind in items.items()}
        schema = self._pyarrow.schema(
            [(name, self._pyarrow.list_(kind)) for name, kind in self._items.items()]
        )
        self._table = self._pyarrow.parquet.ParquetWriter(file, schema, compression="zstd", **options)

    def rows(self, **columns: tuple[npt.NDArray[Any], Counts]) -> Any:
        """Return rows as a table of pyarrow: of each column the items, and how many of them each row has."""
        arrays = {}
        for name, (items, lengths) in columns.items():
            offsets = self._pyarrow.array(offsets_of(lengths).astype(np.int32))
            values = self._pyarrow.array(items, self._items[name])
            arrays[name] = self._pyarrow.ListArray.from_arrays(offsets, values)
        return self._pyarrow.table(arrays)

    def write_row_group(self, rows: Any) -> None:
        """Write a table as a row group."""
        self._table.write_table(rows, row_group_size=len(rows))

    def finish(self) -> None:
        """Write the footer."""
        self._table.close()

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
        super().__init__(files[0], {"input_ids": dtype})
        self._row_groups = DocumentGroups(_ROW_GROUP_TOKENS)

    def write(self, ids: Ids, lengths: Counts) -> None:
        """Add documents. The row groups do not depend on how the documents are divided into calls."""
        for group in self._row_groups.add(ids, lengths):
            self.write_row_group(self.rows(input_ids=group))

    def finish(self) -> None:
        """Write the last row group and the footer."""
        for group in self._row_groups.finish():
            self.write_row_group(self.rows(input_ids=group))
        super().finish()
