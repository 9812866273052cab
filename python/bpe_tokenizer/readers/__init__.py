"""Stand-in of the room `readers` until branch `readers` lands: its interface, over the old readers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.errors import CorpusError, OptionError

__all__ = [
    "BadRow",
    "DocumentBatch",
    "DocumentEnd",
    "Input",
    "InputFormat",
    "InputKind",
    "OnError",
    "Position",
    "ReadOptions",
    "find_inputs",
    "input_kind",
    "read_batches",
]

InputFormat: TypeAlias = Literal["text", "jsonl", "parquet", "arrow"]
DocumentEnd: TypeAlias = Literal["line", "file"]
OnError: TypeAlias = Literal["stop", "skip"]
PathLike = str | os.PathLike[str]
_BATCH_BYTES = 4_000_000
_BATCH_DOCUMENTS = 50_000


@dataclass(frozen=True)
class ReadOptions:
    input_format: InputFormat | None = None
    documents: DocumentEnd = "line"
    separator: str | None = None
    field: str = "text"
    on_error: OnError = "stop"

    def __post_init__(self) -> None:
        from bpe_tokenizer.corpus.readers import RowReader

        RowReader(self.input_format, self.documents, self.separator, self.field)
        if self.on_error not in ("stop", "skip"):
            raise OptionError(f"on_error is {self.on_error!r}; it must be 'stop' or 'skip'")


class Input(NamedTuple):
    name: str
    location: Any
    size: int
    modified: int
    is_regular: bool = True


class InputKind(NamedTuple):
    format: InputFormat
    compression: str | None


class Position(NamedTuple):
    input: int = 0
    row: int = 0
    skipped: int = 0


class BadRow(NamedTuple):
    input: int
    row: int
    problem: str


class DocumentBatch(NamedTuple):
    input: int
    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    bad: tuple[BadRow, ...]
    bytes_read: int


def find_inputs(corpus: PathLike | Iterable[PathLike]) -> list[Input]:
    from bpe_tokenizer.corpus import inputs as old

    return [Input(*each, each.path is not None) for each in old.find_inputs(corpus)]


def input_kind(source: Input) -> InputKind:
    from bpe_tokenizer.corpus import inputs as old
    from bpe_tokenizer.corpus.readers import RowReader

    kind = RowReader().format_of(old.Input(*source[:4]))
    if source.location is None:
        return InputKind(kind, None)
    with open(source.location, "rb") as file:  # noqa: PTH123
        head = file.read(6)
    for magic, name in ((b"\x1f\x8b", "gzip"), (b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zstd")):
        if head.startswith(magic):
            return InputKind(kind, name)
    return InputKind(kind, None)


class _Range:
    """Lines that start in a range."""

    def __init__(self, stream: BinaryIO, start: int, end: int) -> None:
        self.stream, self.end = stream, end
        stream.seek(max(start - 1, 0))
        if start:
            stream.readline()

    def __iter__(self) -> Iterator[bytes]:
        while self.stream.tell() < self.end and (line := self.stream.readline()):
            yield line


def read_batches(
    inputs: Sequence[Input],
    options: ReadOptions,
    start: Position = Position(),  # noqa: B008
    *,
    threads: int | None = None,
    byte_ranges: Sequence[tuple[int, int] | None] | None = None,
) -> Iterator[DocumentBatch]:
    from bpe_tokenizer.corpus import inputs as old
    from bpe_tokenizer.corpus.readers import RowReader

    reader = RowReader(options.input_format, options.documents, options.separator, options.field)
    done = sum(each.size for each in inputs[: start.input])
    for number, source in enumerate(inputs[start.input :], start.input):
        after = start.row if number == start.input else 0
        wanted = byte_ranges[number] if byte_ranges else None
        texts: list[bytes] = []
        rows: list[int] = []
        bad: list[BadRow] = []
        held = 0

        def batch(read: int) -> DocumentBatch:
            offsets = np.zeros(len(texts) + 1, dtype=np.int64)
            np.cumsum([len(each) for each in texts], out=offsets[1:])
            made = DocumentBatch(
                number,
                np.frombuffer(b"".join(texts), dtype=np.uint8),
                offsets,
                np.array(rows, dtype=np.int64),
                tuple(bad),
                read,
            )
            texts.clear()
            rows.clear()
            bad.clear()
            return made

        with old.open_input(old.Input(*source[:4])) as (stream, stored):
            kind = reader.format_of(old.Input(*source[:4]))
            if wanted and kind == "parquet":
                from importlib import import_module

                pq = import_module("pyarrow.parquet")

                table = pq.ParquetFile(stream).read_row_groups(range(*wanted), columns=[options.field])
                found: Any = (
                    _old_row(index, each) for index, each in enumerate(table[options.field].to_pylist(), 1)
                )
            else:
                if wanted:
                    stream = cast("Any", _Range(stream, *wanted))
                found = reader.rows(old.Input(*source[:4]), stream, after)
            for row in found:
                if row.text is None:
                    if options.on_error == "stop":
                        if texts:
                            yield batch(0)
                        raise CorpusError(
                            f"{source.name}, row {row.number} {row.problem}; to skip such rows, use "
                            "on_error='skip' (on the command line: --on-error skip)"
                        )
                    bad.append(BadRow(number, row.number, row.problem))
                    continue
                texts.append(row.text.encode())
                rows.append(row.number)
                held += len(texts[-1])
                if held >= _BATCH_BYTES or len(texts) >= _BATCH_DOCUMENTS:
                    yield batch(done + (stored.tell() if source.location is not None else 0))
                    held = 0
            if texts or bad:
                yield batch(done + (stored.tell() if source.location is not None else 0))
        done += source.size


def _old_row(number: int, text: str | None) -> Any:
    from bpe_tokenizer.corpus.readers import Row

    return Row(number, text, "is null" if text is None else "")
