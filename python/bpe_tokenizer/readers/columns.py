"""Reads a text column of Parquet and Arrow files."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe_tokenizer import _core
from bpe_tokenizer.errors import CorpusError, TokenizerError, shorten
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.readers.inputs import Input, StoredFile
from bpe_tokenizer.readers.opened import ChunkReader
from bpe_tokenizer.readers.parquet_pages import OtherLayoutError, chunk_rows, long_texts
from bpe_tokenizer.readers.rows import BATCH_BYTES, FileRows, decoding_problem

__all__ = ["arrow_rows", "from_its_end", "import_pyarrow", "parquet_rows"]

# Rows of a batch, whose bytes are limited too; and rows of the first batch, which tells how long rows are.
_MAX_ROWS = 1 << 16
_PROBE_ROWS = 256
# Stored bytes of a column that are read at once.
_BUFFER_BYTES = 1 << 20
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
    source: Input, stored: StoredFile, column: str, after: int, groups: range | None = None
) -> Generator[FileRows, None, None]:
    """Yield the texts of a column of a Parquet file, https://parquet.apache.org/docs/file-format/.

    Args:
        source: The file.
        stored: Its stored bytes, not compressed as a whole.
        column: The name of the column.
        after: Skip the rows up to this number, counted from 1 in the whole file.
        groups: The row groups to read; None for all.

    Raises:
        CorpusError: The file is not Parquet, or has no such column of text.
        MissingDependencyError: `pyarrow` is not installed.
    """
    pyarrow = import_pyarrow()
    file = stored.random_access
    if file is None:
        raise from_its_end(source)
    settings = {"pre_buffer": False, "buffer_size": _BUFFER_BYTES}
    with _broken_tables(pyarrow, source, "Parquet"), pyarrow.parquet.ParquetFile(file, **settings) as table:
        _check_column(pyarrow, source, table.schema_arrow, column)
        done = 0
        row_bytes = 0
        for number in range(table.num_row_groups):
            group = table.metadata.row_group(number)
            count = group.num_rows
            if (groups is None or number in groups) and done + count > after:
                after = yield from _long_rows(
                    pyarrow, file, table, number, column, source, stored, done, after
                )
            if (groups is None or number in groups) and done + count > after:
                first = done
                for batch in _group_batches(table, number, column, row_bytes):
                    row_bytes = max(batch.nbytes // max(batch.num_rows, 1), 1)
                    yield from _rows(pyarrow, batch.column(column), first, after)
                    first += batch.num_rows
                    stored.bytes_read = source.size * first // max(table.metadata.num_rows, 1)
            done += count


def _long_rows(
    pyarrow: Any,
    file: Any,
    table: Any,
    number: int,
    column: str,
    source: Input,
    stored: StoredFile,
    done: int,
    after: int,
) -> Generator[FileRows, None, int]:
    """Yield the rows of a row group that is read in steps. Returns the number of the last row that is done.

    Args:
        pyarrow: The library.
        file: The file.
        table: The same, open.
        number: The number of the row group.
        column: The column.
        source: The file.
        stored: Its stored bytes.
        done: The number of rows before the row group.
        after: Skip the rows up to this number.
    """
    chunk = long_texts(table, file, number, column, source.name)
    if chunk is None:
        return after
    after = max(after, done)
    try:
        for data, offsets, nulls in chunk_rows(pyarrow, file, chunk, after - done):
            rows = _part(data, offsets, nulls, after)
            after += len(offsets) - 1
            stored.bytes_read = source.size * after // max(table.metadata.num_rows, 1)
            del data
            yield rows
            del rows
    except OtherLayoutError:  # pyarrow reads the rest
        pass
    return after


def from_its_end(source: Input) -> CorpusError:
    """Return the error for a file that is read in sequence, but is Parquet."""
    return CorpusError(
        f"{source.name[:160]} is compressed or a pipe, but Parquet is read from its end; use a plain file"
    )


def _group_batches(table: Any, number: int, column: str, row_bytes: int) -> Iterator[Any]:
    """Yield a row group in batches of about `BATCH_BYTES`.

    Args:
        table: The file.
        number: The number of the row group.
        column: The column.
        row_bytes: The mean size of the rows before; 0 if it is not known. The index has a size too, but not
            that of repeated texts.
    """
    stored = _stored_row_bytes(table.metadata.row_group(number), column)
    size = _batch_rows(max(stored, row_bytes))
    settings = {"row_groups": [number], "columns": [column], "use_threads": False}
    done = 0
    if not row_bytes and size > _PROBE_ROWS:
        for batch in table.iter_batches(_PROBE_ROWS, **settings):
            yield batch
            done = batch.num_rows
            size = _batch_rows(max(stored, batch.nbytes // max(done, 1)))
            break
    skipped = done
    for batch in table.iter_batches(size, **settings):
        rows = batch.num_rows
        if skipped < rows:
            yield batch.slice(skipped) if skipped else batch
        skipped -= min(skipped, rows)


def _batch_rows(row_bytes: int) -> int:
    return min(max(BATCH_BYTES // max(row_bytes, 1), 1), _MAX_ROWS)


def _stored_row_bytes(group: Any, column: str) -> int:
    """Return the mean size of the rows of a column, without its compression."""
    for index in range(group.num_columns):
        found = group.column(index)
        if found.path_in_schema == column and group.num_rows > 0:
            return int(found.total_uncompressed_size) // int(group.num_rows)
    return 0


def arrow_rows(
    source: Input, chunks: Iterator[bytes], column: str, after: int
) -> Generator[FileRows, None, None]:
    """Yield the texts of a column of an Arrow stream or file, https://arrow.apache.org/docs/format/Columnar.html.

    A record batch is read as a whole.

    Args:
        source: The file.
        chunks: Its contents, in sequence.
        column: As in `parquet_rows`.
        after: As in `parquet_rows`.

    Raises:
        CorpusError: The file is not Arrow, or has no such column of text.
        MissingDependencyError: `pyarrow` is not installed.
    """
    pyarrow = import_pyarrow()
    with _broken_tables(pyarrow, source, "Arrow"), _record_batches(pyarrow, chunks) as batches:
        _check_column(pyarrow, source, batches.schema, column)
        done = 0
        for batch in batches:
            if done + batch.num_rows > after:
                yield from _rows(pyarrow, batch.column(column), done, after)
            done += batch.num_rows


@contextmanager
def _broken_tables(pyarrow: Any, source: Input, kind: str) -> Iterator[None]:
    """Report what pyarrow raises for a broken file."""
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, TokenizerError):
            raise
        message = str(error)[:_MAX_MESSAGE]
        raise CorpusError(f"{source.name[:100]} cannot be read as {kind}: {message}") from None


def _record_batches(pyarrow: Any, chunks: Iterator[bytes]) -> Any:
    """Open an Arrow stream, or an Arrow file: `ARROW1`, two zero bytes, a stream and a footer."""
    first = b""
    while len(first) < 8 and (chunk := next(chunks, b"")):
        first += chunk
    rest = first.removeprefix(b"ARROW1\0\0")
    return pyarrow.ipc.open_stream(ChunkReader(_chained(rest, chunks)))


def _chained(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    del first
    yield from chunks


def _check_column(pyarrow: Any, source: Input, schema: Any, column: str) -> None:
    names = schema.names
    if column not in names:
        shown = ", ".join(map(repr, names[:10])) or "none"
        raise CorpusError(f"{source.name[:100]} has no column {shorten(column)}; it has {shown[:100]}")
    kind = schema.field(column).type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    if _binary_type(pyarrow, kind) is None:
        raise CorpusError(f"the column {column!r} of {source.name[:100]} holds {str(kind)[:60]}, not strings")


def _binary_type(pyarrow: Any, kind: Any) -> Any:
    """Return the type of the bytes of texts; None for a column of something else."""
    types = pyarrow.types
    if types.is_string(kind) or types.is_binary(kind):
        return pyarrow.binary()
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return pyarrow.large_binary()
    # Older versions have no views.
    is_view = any(getattr(types, name, bool)(kind) for name in ("is_string_view", "is_binary_view"))
    return pyarrow.binary_view() if is_view else None


def _rows(pyarrow: Any, array: Any, done: int, after: int) -> Iterator[FileRows]:
    """Yield the rows of an array in parts of about `BATCH_BYTES`.

    Args:
        pyarrow: The library.
        array: The texts.
        done: The number of rows before.
        after: Skip the rows up to this number.
    """
    if after > done:
        array = array.slice(after - done)
        done = after
    if pyarrow.types.is_dictionary(array.type):
        # Offsets and indices of a broken file may point anywhere, so they are checked before they are used.
        array.indices.validate(full=True)
        texts = _checked_bytes(pyarrow, array.dictionary)
        array = pyarrow.DictionaryArray.from_arrays(array.indices, texts, safe=True)
        lengths = np.diff(_buffers(pyarrow, texts)[1])
        indices = array.indices.fill_null(0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths[indices] if len(lengths) else np.zeros(len(indices), np.int64))
        for start, stop in _parts(ends):
            decoded = array.slice(start, stop - start).dictionary_decode()
            yield _part(*_buffers(pyarrow, decoded), _nulls(decoded), done + start)
        return
    array = _checked_bytes(pyarrow, array)
    data, offsets = _buffers(pyarrow, array)
    for start, stop in _parts(offsets[1:] - offsets[0]):
        nulls = _nulls(array.slice(start, stop - start))
        yield _part(data, offsets[start : stop + 1], nulls, done + start)


def _nulls(array: Any) -> list[int]:
    """Return the numbers, from 0, of the rows that are null."""
    if not array.null_count:
        return []
    numbers: list[int] = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist()
    return numbers


def _checked_bytes(pyarrow: Any, array: Any) -> Any:
    """Return texts as bytes with valid offsets, so that a row that is not UTF-8 does not fail the others."""
    array = array.view(_binary_type(pyarrow, array.type))
    array.validate(full=True)
    if array.type not in (pyarrow.binary(), pyarrow.large_binary()):
        array = array.cast(pyarrow.large_binary())
    return array


def _buffers(pyarrow: Any, array: Any) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return the bytes of an array of bytes, and its offsets in them."""
    if len(array) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, places, content = array.buffers()
    kind = np.dtype(np.int64 if pyarrow.types.is_large_binary(array.type) else np.int32)
    offsets = np.frombuffer(places, kind, len(array) + 1, array.offset * kind.itemsize)
    data = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(0, np.uint8)
    return data, offsets.astype(np.int64, copy=False)


def _parts(ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows of about `BATCH_BYTES`, or of one row."""
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + BATCH_BYTES, side="right"))
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


def _part(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], nulls: list[int], done: int
) -> FileRows:
    """Return rows without those that are null or not UTF-8.

    Args:
        data: The bytes that the offsets point into.
        offsets: The start of each row, and the end of the last.
        nulls: The numbers, from 0, of the rows that are null.
        done: The number of rows before.
    """
    data, offsets = data[offsets[0] : offsets[-1]], offsets - offsets[0]
    count = len(offsets) - 1
    good = np.ones(count, bool)
    bad = {int(row): "" for row in _core.find_bad_rows(data, offsets)}
    bad |= dict.fromkeys(nulls, "is null")
    rows = np.arange(done + 1, done + 1 + count, dtype=np.int64)
    if not bad:
        return FileRows(data, offsets, rows)
    good[list(bad)] = False
    problems = tuple(
        (done + 1 + row, bad[row] or decoding_problem(data[offsets[row] : offsets[row + 1]].tobytes()))
        for row in sorted(bad)
    )
    lengths = np.diff(offsets)
    kept = np.zeros(int(good.sum()) + 1, np.int64)
    np.cumsum(lengths[good], out=kept[1:])
    return FileRows(data[np.repeat(good, lengths)], kept, rows[good], problems)
