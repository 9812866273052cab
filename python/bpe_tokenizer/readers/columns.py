"""Reads a text column of Parquet and Arrow files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.columns.texts import Block, arrow_errors, blocks, holds_texts
from bpe_tokenizer.errors import CorpusError, shorten
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import ReadOptions, field_names
from bpe_tokenizer.readers.fields import row_id, row_text
from bpe_tokenizer.readers.inputs import Input, StoredFile
from bpe_tokenizer.readers.opened import ChunkReader
from bpe_tokenizer.readers.rows import BATCH_BYTES, FileRows, decoding_problem, with_names, without

__all__ = ["arrow_rows", "batch_rows", "from_its_end", "import_pyarrow", "parquet_rows"]

# Rows of a batch, whose bytes are limited too; and rows of the first batch, which tells how long rows are.
_MAX_ROWS = 1 << 16
_PROBE_ROWS = 256
# Stored bytes of a column that are read at once.
_BUFFER_BYTES = 1 << 20


def import_pyarrow() -> Any:
    """Return `pyarrow` with its `ipc` and `parquet`.

    Raises:
        MissingDependencyError: `pyarrow` is not installed.
    """
    for submodule in ("pyarrow.ipc", "pyarrow.parquet"):
        import_library(submodule)
    return import_library("pyarrow")


def parquet_rows(
    source: Input,
    stored: StoredFile,
    options: ReadOptions,
    after: int,
    groups: range | None = None,
) -> Generator[FileRows, None, None]:
    """Yield the texts of a column of a Parquet file, https://parquet.apache.org/docs/file-format/.

    Args:
        source: The file.
        stored: Its stored bytes, not compressed as a whole.
        options: They name the column.
        after: Skip the rows up to this number, counted from 1 in the whole file.
        groups: The row groups to read; None for all.

    Raises:
        CorpusError: The file is not Parquet, or it does not have this column of texts.
        MissingDependencyError: `pyarrow` is not installed.
    """
    pyarrow = import_pyarrow()
    file = stored.random_access
    if file is None:
        raise from_its_end(source)
    settings = {"pre_buffer": False, "buffer_size": _BUFFER_BYTES}
    with (
        arrow_errors(f"{source.name[:100]} cannot be read as Parquet"),
        pyarrow.parquet.ParquetFile(file, **settings) as table,
    ):
        _check_columns(source, table.schema_arrow, options)
        columns = [*field_names(options.field), *_id_columns(options)]
        done = 0
        row_bytes = 0
        for number in range(table.num_row_groups):
            count = table.metadata.row_group(number).num_rows
            if (groups is None or number in groups) and done + count > after:
                first = done
                for batch in _group_batches(table, number, columns, row_bytes):
                    row_bytes = max(batch.nbytes // max(batch.num_rows, 1), 1)
                    yield from _rows(pyarrow, batch, options, first, after)
                    first += batch.num_rows
                    stored.bytes_read = source.size * first // max(table.metadata.num_rows, 1)
            done += count


def from_its_end(source: Input) -> CorpusError:
    """Return the error for a file that is read in sequence, but is Parquet."""
    return CorpusError(
        f"{source.name[:160]} is compressed or a pipe, but Parquet is read from its end; use a plain file"
    )


def _group_batches(table: Any, number: int, columns: Sequence[str], row_bytes: int) -> Iterator[Any]:
    """Yield a row group in batches of about `BATCH_BYTES`.

    The metadata of a column are not asked: where a file is broken, pyarrow 26 ends the process.

    Args:
        table: The file.
        number: The number of the row group.
        columns: The columns.
        row_bytes: The mean size of the rows before; 0 if it is not known.
    """
    settings = {"row_groups": [number], "columns": columns, "use_threads": False}
    group = table.metadata.row_group(number)
    # Of all columns, so the first batch is not too large. It tells how long the texts are.
    stored = group.total_byte_size // max(group.num_rows, 1)
    size = _batch_rows(row_bytes) if row_bytes else min(_PROBE_ROWS, _batch_rows(stored))
    probed = 0
    if not row_bytes and size < group.num_rows:
        batch = next(table.iter_batches(size, **settings))
        probed, size = batch.num_rows, _batch_rows(batch.nbytes // max(batch.num_rows, 1))
        yield batch
        del batch
    skipped = probed
    for batch in table.iter_batches(size, **settings):
        if skipped < batch.num_rows:
            yield batch.slice(skipped)
        skipped -= min(skipped, batch.num_rows)


def _batch_rows(row_bytes: int) -> int:
    return min(max(BATCH_BYTES // max(row_bytes, 1), 1), _MAX_ROWS)


def arrow_rows(
    source: Input, chunks: Iterator[bytes], options: ReadOptions, after: int
) -> Generator[FileRows, None, None]:
    """Yield the texts of a column of an Arrow stream or file, https://arrow.apache.org/docs/format/Columnar.html.

    A record batch is read as a whole.

    Args:
        source: The file.
        chunks: Its contents, in sequence.
        options: As in `parquet_rows`.
        after: As in `parquet_rows`.

    Raises:
        CorpusError: The file is not Arrow, or it does not have this column of texts.
        MissingDependencyError: `pyarrow` is not installed.
    """
    pyarrow = import_pyarrow()
    with (
        arrow_errors(f"{source.name[:100]} cannot be read as Arrow"),
        _record_batches(pyarrow, chunks) as batches,
    ):
        _check_columns(source, batches.schema, options)
        yield from batch_rows(source, batches, options, after)


def batch_rows(
    source: Input, batches: Iterable[Any], options: ReadOptions, after: int = 0
) -> Iterator[FileRows]:
    """Yield the texts of a column of Arrow record batches.

    Args:
        source: What the batches are called in messages.
        batches: The batches.
        options: As in `parquet_rows`.
        after: As in `parquet_rows`.

    Raises:
        CorpusError: The batches do not have this column of texts.
    """
    pyarrow = import_library("pyarrow")
    done = 0
    for batch in batches:
        _check_columns(source, batch.schema, options)
        if done + batch.num_rows > after:
            yield from _rows(pyarrow, batch, options, done, after)
        done += batch.num_rows


def _record_batches(pyarrow: Any, chunks: Iterator[bytes]) -> Any:
    """Open an Arrow stream, or an Arrow file: `ARROW1`, two zero bytes, a stream and a footer."""
    first = b""
    while len(first) < 8 and (chunk := next(chunks, b"")):
        first += chunk
    rest = first.removeprefix(b"ARROW1\0\0")
    return pyarrow.ipc.open_stream(ChunkReader(chain([rest] if rest else [], chunks)))


def _id_columns(options: ReadOptions) -> list[str]:
    return [] if options.id_field is None else field_names(options.id_field)


def _check_columns(source: Input, schema: Any, options: ReadOptions) -> None:
    texts = field_names(options.field)
    for column in [*texts, *_id_columns(options)]:
        kind = _at_path(schema, column)[1]
        if kind is None:
            shown = ", ".join(map(repr, schema.names[:10])) or "none"
            raise CorpusError(f"{source.name[:100]} has no column {shorten(column)}; it has {shown[:100]}")
        if column in texts and not (options.as_json or holds_texts(kind)):
            raise CorpusError(
                f"the column {column!r} of {source.name[:100]} holds {str(kind)[:60]}, not strings"
            )


def _at_path(fields: Any, path: str) -> tuple[list[str], Any]:
    """Return the names of the columns at a path, each in the one before, and the type of the last, or None.

    Args:
        fields: A schema, or the type of a column of structs.
        path: The path.
    """
    if path in (each.name for each in fields):
        return [path], fields.field(path).type
    outer, _, rest = path.partition(".")
    for each in fields:
        if each.name == outer and rest and hasattr(each.type, "field"):
            names, kind = _at_path(each.type, rest)
            return [outer, *names], kind
    return [], None


def _texts(pyarrow: Any, batch: Any, options: ReadOptions) -> Any:
    """Return the texts of the rows of a batch: null where a row has none."""
    field = options.field
    if options.as_json or [field] != field_names(field):
        found = _values(batch, field, partial(row_text, as_json=options.as_json))
        return pyarrow.array((text for text, _ in found), pyarrow.large_string())
    first, *rest = _at_path(batch.schema, field)[0]
    column = batch.column(first)
    return import_library("pyarrow.compute").struct_field(column, rest) if rest else column


def _values(
    batch: Any, field: str, read: Callable[[Any, str], tuple[str | None, str]]
) -> Iterator[tuple[str | None, str]]:
    """Read a field of each row of a batch in Python."""
    needed = {_at_path(batch.schema, name)[0][0] for name in field_names(field)}
    return (read(row, field) for row in batch.select(sorted(needed)).to_pylist())


def _rows(pyarrow: Any, batch: Any, options: ReadOptions, done: int, after: int) -> Iterator[FileRows]:
    """Yield the rows of a batch in parts of about `BATCH_BYTES`.

    Args:
        pyarrow: The library.
        batch: The batch.
        options: As in `parquet_rows`.
        done: The number of rows before.
        after: Skip the rows up to this number.
    """
    skipped = max(after - done, 0)
    first = done + skipped + 1
    texts = _texts(pyarrow, batch, options)
    if options.id_field is not None:
        ids = dict(enumerate(_values(batch.slice(skipped), options.id_field, row_id), first))
    for block in blocks(texts.slice(skipped), BATCH_BYTES):
        rows = _good_rows(block, first)
        yield rows if options.id_field is None else with_names(rows, ids)


def _good_rows(block: Block, first: int) -> FileRows:
    """Return the rows of a block whose first row has a number, without those that are null or not UTF-8."""
    data, offsets = block.data, block.offsets
    nulls = tuple((first + row, "is null") for row in block.nulls.tolist())
    wrong = {
        row: decoding_problem(data[offsets[row] : offsets[row + 1]].tobytes())
        for row in _core.find_bad_rows(data, offsets).tolist()
    }
    return without(FileRows(data, offsets, first + block.rows, nulls), wrong)
