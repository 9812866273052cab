"""Reads a text column of Parquet and Arrow files."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from bpe_tokenizer.corpus.inputs import Input
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.libraries import import_library

__all__ = ["arrow_rows", "import_pyarrow", "parquet_rows"]

_BATCH_ROWS = 1024


def import_pyarrow() -> Any:
    """Return `pyarrow` with its `ipc` and `parquet`.

    Raises:
        MissingDependencyError: `pyarrow` is not installed.
    """
    for submodule in ("pyarrow.ipc", "pyarrow.parquet"):
        import_library(submodule)
    return import_library("pyarrow")


def parquet_rows(
    source: Input, stream: BinaryIO, column: str, after: int
) -> Iterator[tuple[int, bytes | None]]:
    """Read a text column of a Parquet file, https://parquet.apache.org/docs/file-format/.

    Args:
        source: The file.
        stream: Its contents; seekable, because a Parquet file has its index at the end.
        column: The name of the column.
        after: Skip the rows up to this number, counted from 1.

    Returns:
        Pairs of a row number and the row's UTF-8 (unchecked), or None for a null.

    Raises:
        CorpusError: The file is not Parquet, or has no such column of text.
        MissingDependencyError: `pyarrow` is not installed.
    """
    pyarrow = import_pyarrow()
    if not (isinstance(stream, io.BufferedReader) and stream.seekable()):
        raise CorpusError(
            f"{source.name} is compressed or a pipe, but Parquet is read from its end; use a plain file"
        )
    try:
        with pyarrow.parquet.ParquetFile(stream) as table:
            _check_column(pyarrow, source, table.schema_arrow, column)
            yield from _rows(pyarrow, table.iter_batches(_BATCH_ROWS, columns=[column]), column, after)
    except pyarrow.ArrowException as error:
        raise CorpusError(f"{source.name} cannot be read as Parquet: {error}") from None


def arrow_rows(
    source: Input, stream: BinaryIO, column: str, after: int
) -> Iterator[tuple[int, bytes | None]]:
    """Read a text column of an Arrow stream or file, https://arrow.apache.org/docs/format/Columnar.html.

    Arguments, results and errors are those of `parquet_rows`, but the stream need not be seekable.
    """
    pyarrow = import_pyarrow()
    try:
        with _record_batches(pyarrow, stream) as batches:
            _check_column(pyarrow, source, batches.schema, column)
            yield from _rows(pyarrow, batches, column, after)
    except pyarrow.ArrowException as error:
        raise CorpusError(f"{source.name} cannot be read as Arrow: {error}") from None


def _record_batches(pyarrow: Any, stream: BinaryIO) -> Any:
    """Open an Arrow stream, or an Arrow file: `ARROW1`, two zero bytes, a stream and a footer."""
    head = stream.read(8)
    if head == b"ARROW1\0\0":
        return pyarrow.ipc.open_stream(stream)
    return pyarrow.ipc.open_stream(_PrefixedStream(head, stream))


class _PrefixedStream:
    """A stream with bytes put back at its start."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        taken = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(taken) :]
        rest = self._stream.read(size if size < 0 else size - len(taken))
        return taken + rest

    def close(self) -> None:
        self.closed = True


def _check_column(pyarrow: Any, source: Input, schema: Any, column: str) -> None:
    names = schema.names
    if column not in names:
        raise CorpusError(f"{source.name} has no column {column!r}; it has {', '.join(map(repr, names))}")
    kind = schema.field(column).type
    types = pyarrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)):
        raise CorpusError(f"the column {column!r} of {source.name} holds {kind}, not strings")


def _rows(
    pyarrow: Any, batches: Iterable[Any], column: str, after: int
) -> Iterator[tuple[int, bytes | None]]:
    number = 0
    for batch in batches:
        if number + batch.num_rows > after:
            array = batch.column(column)
            if pyarrow.types.is_dictionary(array.type):
                array = array.dictionary_decode()
            # As bytes, so that a row that is not UTF-8 does not fail the others.
            values = array.cast(pyarrow.large_binary()).to_pylist()
            for index, value in enumerate(values, number + 1):
                if index > after:
                    yield index, value
        number += batch.num_rows
