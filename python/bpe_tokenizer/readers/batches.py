"""Reads the documents of a corpus in batches, ahead of their consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.arguments import processors_for
from bpe_tokenizer.errors import CorpusError, OptionError, shorten
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers.columns import arrow_rows, batch_rows, from_its_end, parquet_rows
from bpe_tokenizer.readers.inputs import Input
from bpe_tokenizer.readers.opened import OpenInput, open_input
from bpe_tokenizer.readers.positions import BadRow, Position
from bpe_tokenizer.readers.prefetcher import Prefetcher
from bpe_tokenizer.readers.rows import BATCH_BYTES, FileRows, json_rows, range_chunks, text_rows, texts_of

__all__ = [
    "ByteRange",
    "DocumentBatch",
    "TextPart",
    "arrow_batches",
    "opened_batches",
    "read_batches",
    "read_parts",
]

# The bytes from a start to an end of a file, or the row groups of a Parquet file.
ByteRange: TypeAlias = tuple[int, int]

# Documents that wait for the consumer, in all; and files that are read at the same time.
_AHEAD_BYTES = 8 << 20
_MAX_FILES = 16
# Content of a batch from a pipe, which may not have more for a long time.
_PIPE_BATCH_BYTES = 256 << 10


class DocumentBatch(NamedTuple):
    """Documents of one input, as arrays.

    Args:
        input: Index of the input, from 0.
        data: Their UTF-8, concatenated.
        offsets: The start of each document in `data`, and the end of the last.
        rows: The number of the row of each, from 1.
        bad: The rows that were skipped since the batch before. A batch may have nothing else.
        bytes_read: The number of stored bytes of all inputs that have been read.
        names: The own id of each document, a str; None if it is not read.
    """

    input: int
    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    bad: tuple[BadRow, ...]
    bytes_read: int
    names: npt.NDArray[np.object_] | None = None

    def texts(self) -> list[str]:
        """Return the documents as strings."""
        return texts_of(self.data, self.offsets)


class TextPart(NamedTuple):
    """A part of a text that is one document.

    Args:
        input: Index of the input, from 0.
        data: The bytes of the part; nothing at the end of the text; None for all of a plain file of this
            machine, which is not read here.
        bytes_read: As in `DocumentBatch`.
    """

    input: int
    data: bytes | None
    bytes_read: int


_Part = TypeVar("_Part", DocumentBatch, DocumentBatch | TextPart)
_Closing: TypeAlias = Prefetcher[_Part] | Generator[_Part, None, None]


def read_parts(
    inputs: Sequence[Input], options: ReadOptions, start: Position
) -> Generator[DocumentBatch | TextPart, None, None]:
    """Yield what `read_batches` yields, but a text that is one document in parts: it may be long.

    Each file is opened once, and its kind is looked for once.

    Args:
        inputs: As in `read_batches`.
        options: As in `read_batches`.
        start: As in `read_batches`. A text that is one document is read from its beginning.

    Raises:
        CorpusError: As in `read_batches`.
        MissingDependencyError: As in `read_batches`.
    """
    threads = processors_for(None)

    def contents(number: int, after: int) -> Generator[DocumentBatch | TextPart, None, None]:
        source = inputs[number]
        with open_input(source, options) as opened:
            is_text = opened.kind.format == "text" and options.is_whole
            if source.path is not None:
                is_plain = is_text and opened.kind.compression is None
                yield TextPart(number, None if is_plain else b"", 0)
                if is_plain:
                    return
            if not is_text:
                yield from opened_batches(number, opened, options, after, threads)
                return
            with opened.chunks() as chunks:
                for chunk in chunks:
                    yield TextPart(number, chunk, opened.bytes_read)
            yield TextPart(number, b"", opened.bytes_read)

    def parts(number: int, after: int, limit: int) -> _Closing[DocumentBatch | TextPart]:
        items = contents(number, after)
        # Opening a file of this machine takes less time than a thread, which a plain file does not need.
        if inputs[number].path is not None:
            kind = next(items)
            if isinstance(kind, TextPart) and kind.data is None:
                items.close()
                return (part for part in (kind,))
        return _ahead(inputs[number], items, limit)

    return _in_order(inputs, start, threads, parts)


def read_batches(
    inputs: Sequence[Input],
    options: ReadOptions,
    start: Position = Position(),  # noqa: B008 (immutable)
    *,
    threads: int | None = None,
    byte_ranges: Sequence[ByteRange | None] | None = None,
) -> Generator[DocumentBatch, None, None]:
    r"""Yield the documents of a corpus, in order, in batches of about 4 MB or of one longer document.

    The first batches are smaller. Threads read, decompress and split several files ahead, about 8 MB in all.
    Closing the generator stops them.

    Args:
        inputs: The files, from `find_inputs`.
        options: How documents are found in them.
        start: Read what follows this position. The rows before it are skipped without a check.
        threads: The number of threads; None for one per processor.
        byte_ranges: For each input the range to read, or None for all of it. Of plain text by lines and of
            JSON Lines, the rows are read that start in a range of bytes. They count from the start of the
            range. Of Parquet, it is a range of row groups.

    Raises:
        CorpusError: A file cannot be read, or a row is bad and `options.on_error` is `"stop"`.
        MissingDependencyError: A library that a file needs is not installed.
        OptionError: A file has a range and cannot be read in parts, or an argument is out of its range.

    >>> import pathlib, tempfile
    >>> from bpe_tokenizer.readers.inputs import find_inputs
    >>> path = pathlib.Path(tempfile.mkdtemp(), "corpus.jsonl")
    >>> _ = path.write_text('{"text": "low"}\n\n{"text": "lower"}\n')
    >>> batch, = read_batches(find_inputs(path), ReadOptions())
    >>> batch.data.tobytes(), batch.offsets.tolist(), batch.rows.tolist(), batch.texts()
    (b'lowlower', [0, 3, 8], [1, 3], ['low', 'lower'])
    """
    count = processors_for(threads)
    if byte_ranges is not None and len(byte_ranges) != len(inputs):
        raise OptionError(f"there are {len(byte_ranges)} byte ranges for {len(inputs)} inputs: give one each")
    ranges = byte_ranges or [None] * len(inputs)

    def contents(number: int, after: int) -> Generator[DocumentBatch, None, None]:
        with open_input(inputs[number], options) as opened:
            yield from opened_batches(number, opened, options, after, count, ranges[number])

    def batches(number: int, after: int, limit: int) -> _Closing[DocumentBatch]:
        return _ahead(inputs[number], contents(number, after), limit)

    return _in_order(inputs, start, count, batches)


def _ahead(source: Input, parts: Generator[_Part, None, None], limit: int) -> _Closing[_Part]:
    if source.is_regular:
        return Prefetcher(parts, _part_size, limit)
    return parts  # A thread that waits for a pipe could not be stopped.


def _in_order(
    inputs: Sequence[Input],
    start: Position,
    threads: int,
    read: Callable[[int, int, int], _Closing[_Part]],
) -> Generator[_Part, None, None]:
    """Yield the parts of all inputs.

    Args:
        inputs: The inputs.
        start: As in `read_batches`.
        threads: As in `read_batches`.
        read: Reads the input of an index: without its first rows, and as many bytes ahead.
    """
    files = min(threads, _MAX_FILES, max(len(inputs) - start.input, 1))
    numbers = iter(range(start.input, len(inputs)))
    before = sum(source.size for source in inputs[: start.input])
    running: deque[tuple[int, _Closing[_Part]]] = deque()

    def start_next() -> None:
        number = next(numbers, None)
        if number is None:
            return
        after = start.row if number == start.input else 0
        running.append((number, read(number, after, _AHEAD_BYTES // files)))

    try:
        for _ in range(files):
            start_next()
        while running:
            number, parts = running[0]
            for part in parts:
                yield part._replace(bytes_read=before + part.bytes_read)
                del part
            parts.close()
            running.popleft()
            before += inputs[number].size
            start_next()
    finally:
        for _, parts in running:
            parts.close()


def _part_size(part: DocumentBatch | TextPart) -> int:
    if isinstance(part, TextPart):
        return len(part.data or b"")
    return part.data.nbytes + part.offsets.nbytes + part.rows.nbytes


def opened_batches(
    number: int,
    opened: OpenInput,
    options: ReadOptions,
    after: int = 0,
    threads: int = 1,
    byte_range: ByteRange | None = None,
) -> Generator[DocumentBatch, None, None]:
    """Yield the documents of one open input in batches, in this thread.

    Args:
        number: The index of the input.
        opened: The input, at its start.
        options: As in `read_batches`.
        after: Skip the rows up to this number.
        threads: The number of threads that split a batch. A compressed file needs one.
        byte_range: As in `read_batches`.

    Raises:
        CorpusError: As in `read_batches`.
        MissingDependencyError: As in `read_batches`.
        OptionError: The file has a range and cannot be read in parts.
    """
    part = ""
    if byte_range is not None and opened.kind.format != "parquet" and byte_range[0]:
        part = f" after byte {byte_range[0]:,}"
    rows = _file_rows(opened, options, after, threads, byte_range)
    for batch in _document_batches(number, opened.source, rows, options, part):
        yield batch._replace(bytes_read=opened.bytes_read)
        del batch


def arrow_batches(
    source: Input, batches: Iterable[Any], options: ReadOptions
) -> Generator[DocumentBatch, None, None]:
    """Yield the documents of Arrow record batches, in this thread.

    Args:
        source: What the batches are called in messages.
        batches: The `pyarrow.RecordBatch`es, which have what `options.field` names.
        options: As in `read_batches`.

    Raises:
        CorpusError: The batches do not have this column of texts, or a row is bad and `options.on_error` is
            `"stop"`.
        MissingDependencyError: `pyarrow` is not installed.
    """
    return _document_batches(0, source, batch_rows(source, batches, options), options)


def _document_batches(
    number: int, source: Input, file_rows: Iterator[FileRows], options: ReadOptions, part: str = ""
) -> Generator[DocumentBatch, None, None]:
    for rows in file_rows:
        if rows.bad and options.on_error == "stop":
            # The documents before the first bad row come first.
            data, offsets, numbers, bad_rows, names = rows
            row, problem = bad_rows[0]
            count = int(np.searchsorted(numbers, row))
            if count:
                before = data[: offsets[count]], offsets[: count + 1], numbers[:count]
                yield DocumentBatch(number, *before, (), 0, None if names is None else names[:count])
            raise CorpusError(
                f"{source.name[:100]}, row {row:,}{part} {problem}; to skip such rows, use on_error='skip' "
                "(on the command line: --on-error skip)"
            )
        bad = tuple(BadRow(number, row, problem) for row, problem in rows.bad)
        batch = DocumentBatch(number, rows.data, rows.offsets, rows.rows, bad, 0, rows.names)
        del rows
        yield batch
        del batch


def _file_rows(
    opened: OpenInput, options: ReadOptions, after: int, threads: int, byte_range: ByteRange | None
) -> Iterator[FileRows]:
    kind, source = opened.kind, opened.source
    if kind.format == "parquet" and kind.compression is None:
        groups = None if byte_range is None else range(*byte_range)
        yield from parquet_rows(source, opened.stored, options, after, groups)
        return
    if byte_range is not None:
        if not kind.has_lines(options) or not source.is_regular:
            raise OptionError(
                f"{source.name[:100]} cannot be read in parts: only plain text by lines, JSON Lines and "
                "Parquet can"
            )
        begin, end = byte_range
        opened.stored.seek(max(begin - 1, 0))
    if kind.format == "parquet":
        raise from_its_end(source)
    if kind.format == "text" and options.id_field is not None:
        raise CorpusError(
            f"{source.name[:100]} is plain text, whose documents have no field {shorten(options.id_field)}: "
            "leave out id_field"
        )
    block_bytes = BATCH_BYTES if source.is_regular else _PIPE_BATCH_BYTES
    if kind.compression is not None:
        threads = 1  # decompressing takes longer than splitting
    with opened.chunks() as chunks:
        if byte_range is not None:
            chunks = range_chunks(chunks, end - begin, begin > 0)
        if kind.format == "jsonl":
            yield from json_rows(chunks, options, after, threads, block_bytes)
        elif kind.format == "text":
            yield from text_rows(chunks, options, after, threads, block_bytes)
        else:
            yield from arrow_rows(source, chunks, options, after)
