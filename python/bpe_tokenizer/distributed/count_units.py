"""The files of a corpus as units, each the work of one task that counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.corpus.input_list import input_names
from bpe_tokenizer.corpus.plan import PartKind, part_ranges
from bpe_tokenizer.corpus.result import PathLike
from bpe_tokenizer.corpus.skipped_rows import skipped_line
from bpe_tokenizer.distributed.arrow import CountSettings, counts_to_batch
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.readers import (
    BadRow,
    DocumentEnd,
    Input,
    InputFormat,
    OnError,
    ReadOptions,
    find_sources,
    input_kind,
    read_batches,
)
from bpe_tokenizer.train.corpus import WHOLE_FILES, count_files
from bpe_tokenizer.train.piece_counts import PieceCounts, core_counter
from bpe_tokenizer.train.progress import ProgressBar

__all__ = [
    "DEFAULT_RANGE",
    "CountUnit",
    "CountWork",
    "count_options",
    "count_unit",
    "count_unit_batch",
    "count_units",
    "plan_count",
    "unit_batch",
]

# Stored bytes that a task counts. Each task sorts and writes its distinct pieces, so larger tasks cost less.
DEFAULT_RANGE = 256 << 20


class FilePart(NamedTuple):
    """A file, or a part of it.

    Args:
        input: Index of the file.
        start: The first byte or row group; None for the whole file.
        end: The end of the part.
        kind: What `start` and `end` count; None for the whole file.
    """

    input: int
    start: int | None = None
    end: int | None = None
    kind: PartKind | None = None


# The parts that a task counts.
CountUnit: TypeAlias = tuple[FilePart, ...]


def plan_count(inputs: Sequence[Input], read: ReadOptions, unit_bytes: int) -> list[CountUnit]:
    """Divide files into units of about a size. The units depend on the arguments only.

    A plain text that is one document is divided where a unit is full: `add_range` makes that exact. Large
    Parquet files and large plain files of lines are divided too. Other files are not.

    Args:
        inputs: The files, from `find_inputs`.
        read: How documents are found in them.
        unit_bytes: The size of a unit in stored bytes.

    Raises:
        CorpusError: A file cannot be read.
        OptionError: Standard input or a pipe is an input.

    >>> files = [Input(name, name, 10, 0) for name in "abc"]
    >>> [[part.input for part in unit] for unit in plan_count(files, ReadOptions("text", "file"), 20)]
    [[0, 1], [2]]
    """
    units: list[CountUnit] = []
    held: list[FilePart] = []
    room = unit_bytes

    def end_unit() -> None:
        nonlocal held, room
        if held:
            units.append(tuple(held))
        held, room = [], unit_bytes

    for index, source in enumerate(inputs):
        if not source.is_regular:
            raise OptionError(
                "other machines cannot read standard input and pipes; put the corpus into files"
            )
        if room <= 0:
            end_unit()
        if source.size > room and is_whole_text(source, read):
            start = 0
            while start < source.size:
                end = min(start + room, source.size)
                held.append(FilePart(index, start, end, "bytes"))
                room -= end - start
                start = end
                if room == 0:
                    end_unit()
            continue
        ranges = part_ranges(source, read, unit_bytes) if source.size > unit_bytes else []
        parts = [FilePart(index, *part) for part in ranges] or [FilePart(index)]
        for part in parts:
            size = source.size // len(parts)
            if size > room:
                end_unit()
            held.append(part)
            room -= size
    end_unit()
    return units


def is_whole_text(source: Input, read: ReadOptions) -> bool:
    """Return whether a file is a plain text that is one document, which `PieceCounts.add_range` divides."""
    if not read.is_whole or source.path is None:
        return False
    kind = input_kind(source, read.input_format)
    return kind.format == "text" and kind.compression is None


@dataclass(frozen=True)
class CountWork:
    """What all tasks that count share.

    Args:
        settings: How documents are split.
        max_memory: As in `PieceCounts`.
        units: The directory of the units' files; None for tasks that write none.
        read: How documents are found in files.
        inputs: The files.
    """

    settings: CountSettings
    max_memory: int | str | None = None
    units: str | None = None
    read: ReadOptions = WHOLE_FILES
    inputs: tuple[Input, ...] = ()

    def counts(self) -> PieceCounts:
        """Return empty counts for a task."""
        return self.settings.counts(threads=1, max_memory=self.max_memory)


def count_options(
    input_format: InputFormat | None,
    documents: DocumentEnd,
    separator: str | None,
    field: str,
    on_error: OnError,
    output: PathLike | None,
) -> ReadOptions:
    """Check the options of files.

    Raises:
        OptionError: An option is unknown, or `on_error` is `"skip"` without a directory for the list of rows.
    """
    read = ReadOptions(input_format, documents, separator, field, on_error)
    if on_error == "skip" and output is None:
        raise OptionError("on_error='skip' needs output, the directory where the skipped rows are listed")
    return read


def count_units(
    source: PathLike | Iterable[PathLike],
    settings: CountSettings,
    read: ReadOptions,
    unit_bytes: int,
    max_memory: int | str | None,
) -> tuple[CountWork, list[CountUnit]]:
    """Return the work and the units of files, for counts that pass through an engine."""
    inputs = tuple(find_sources(source, read, settings.special_tokens))
    units = plan_count(inputs, read, unit_bytes)
    return CountWork(settings, max_memory, None, read, inputs), units


def unit_batch(number: int) -> Any:
    """Return a record batch that names a unit."""
    return import_library("pyarrow").RecordBatch.from_pydict({"id": [number]})


def count_unit_batch(batch: Any, work: CountWork, units: Sequence[CountUnit]) -> Any:
    """Count the units that a record batch names. Returns a record batch of counts."""
    parts = tuple(part for number in batch.column("id").to_pylist() for part in units[number])
    return counts_to_batch(count_unit(work, parts)[0])


def count_unit(work: CountWork, unit: CountUnit) -> tuple[PieceCounts, list[str]]:
    """Count the parts of files of a unit.

    Returns:
        The counts, and a line of JSON for each row that was skipped.

    Raises:
        CorpusError: A file cannot be read, or a row is bad.
    """
    counts = work.counts()
    # The core's counter directly: a failed task gives its counts to nobody.
    counter = core_counter(counts)
    skipped: list[str] = []
    for part in unit:
        source = work.inputs[part.input]
        if part.start is None or part.end is None:
            rows = count_files(counter, [source], [1], ProgressBar(None), options=work.read)
            bad = [row for _, row in rows.first]
        elif source.path is not None and is_whole_text(source, work.read):
            counter.add_range(source.path, part.start, part.end, 1)
            bad = []
        else:
            bad = _count_rows(counter, source, (part.start, part.end), work.read)
        if not bad:
            continue
        # The rows of row groups count from the beginning of their file.
        start = part.start if part.kind == "bytes" else None
        name = input_names(work.inputs)[part.input]
        skipped += [skipped_line(name, row, start).decode() for row in bad]
    return counts, skipped


def _count_rows(
    counter: _core.PieceCounter, source: Input, part: tuple[int, int], read: ReadOptions
) -> list[BadRow]:
    """Count the rows of a part of a file, and return the bad ones."""
    bad: list[BadRow] = []
    with closing(read_batches([source], read, threads=1, byte_ranges=[part])) as batches:
        for batch in batches:
            counter.add_rows(batch.data, batch.offsets, 1, 1)
            bad += batch.bad
    return bad
