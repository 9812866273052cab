"""Reads a text column of Parquet and Arrow files."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from bpe_tokenizer.corpus.compression import DECOMPRESSION_ERRORS
from bpe_tokenizer.corpus.inputs import Input
from bpe_tokenizer.errors import CorpusError, TokenizerError
from bpe_tokenizer.libraries import import_library

__all__ = ["arrow_rows", "import_pyarrow", "parquet_rows"]

_BATCH_ROWS = 1024
_CHUNK = 1 << 20
# Of pyarrow's messages, which have no limit.
_MAX_MESSAGE = 150


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
    with _broken_tables(pyarrow, source, "Parquet"), pyarrow.parquet.ParquetFile(stream) as table:
        _check_column(pyarrow, source, table.schema_arrow, column)
        yield from _rows(pyarrow, table.iter_batches(_BATCH_ROWS, columns=[column]), column, after)


def arrow_rows(
    source: Input, stream: BinaryIO, column: str, after: int
) -> Iterator[tuple[int, bytes | None]]:
    """Read a text column of an Arrow stream or file, https://arrow.apache.org/docs/format/Columnar.html.

    Arguments, results and errors are those of `parquet_rows`, but the stream need not be seekable.
    """
    pyarrow = import_pyarrow()
    with _broken_tables(pyarrow, source, "Arrow"), _record_batches(pyarrow, stream) as batches:
        _check_column(pyarrow, source, batches.schema, column)
        yield from _rows(pyarrow, batches, column, after)


@contextmanager
def _broken_tables(pyarrow: Any, source: Input, kind: str) -> Iterator[None]:
    """Report what pyarrow raises for a broken file; an `OSError` of it has no number of the system."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, EOFError) as error:
        is_read_error = isinstance(error, OSError) and error.errno is not None
        if is_read_error or isinstance(error, (TokenizerError, *DECOMPRESSION_ERRORS)):
            raise
        message = str(error)[:_MAX_MESSAGE]
        raise CorpusError(f"{source.name} cannot be read as {kind}: {message}") from None


def _record_batches(pyarrow: Any, stream: BinaryIO) -> Any:
    """Open an Arrow stream, or an Arrow file: `ARROW1`, two zero bytes, a stream and a footer."""
    head = stream.read(8)
    return pyarrow.ipc.open_stream(_PrefixedStream(b"" if head == b"ARROW1\0\0" else head, stream))


class _PrefixedStream:
    """A stream with bytes put back at its start. A broken file makes pyarrow ask for any number of bytes."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            size = sys.maxsize
        parts = [self._head[:size]]
        self._head = self._head[len(parts[0]) :]
        size -= len(parts[0])
        # Python allocates what a call asks for, though the file is shorter.
        while size > 0 and (part := self._stream.read(min(size, _CHUNK))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

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
            values = _as_bytes(pyarrow, batch.column(column)).to_pylist()
            for index, value in enumerate(values, number + 1):
                if index > after:
                    yield index, value
        number += batch.num_rows


def _as_bytes(pyarrow: Any, array: Any) -> Any:
    """Return texts as bytes, so that a row that is not UTF-8 does not fail the others.

    Offsets and indices of a broken file may point anywhere, so they are checked before they are used.
    """
    types = pyarrow.types
    if types.is_dictionary(array.type):
        array.indices.validate(full=True)
        texts = _as_bytes(pyarrow, array.dictionary)
        return pyarrow.DictionaryArray.from_arrays(array.indices, texts, safe=True).dictionary_decode()
    if types.is_string(array.type):
        binary = pyarrow.binary()
    else:
        binary = pyarrow.large_binary() if types.is_large_string(array.type) else pyarrow.binary_view()
    array = array.view(binary)
    array.validate(full=True)
    return array
