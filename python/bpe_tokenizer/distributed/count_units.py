"""Counts a unit of the files of a corpus: the work of one task."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property

from bpe_tokenizer.corpus.input_list import input_names
from bpe_tokenizer.corpus.plan import PartKind, Unit, divide, part_ranges
from bpe_tokenizer.corpus.skipped_rows import skipped_line
from bpe_tokenizer.distributed.arrow import CountSettings
from bpe_tokenizer.readers import Input, ReadOptions, input_kind, read_batches
from bpe_tokenizer.train.corpus import WHOLE_FILES, count_files
from bpe_tokenizer.train.piece_counts import PieceCounts, core_counter
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["CountWork", "count_unit", "plan_count"]


@dataclass(frozen=True)
class CountWork:
    """What all tasks that count share.

    Args:
        settings: How documents are split.
        max_memory: As in `PieceCounts`.
        directory: Where tasks write their files; None for tasks that return their counts.
        read: How documents are found in files, or the column of rows.
        inputs: The files.
    """

    settings: CountSettings
    max_memory: int | str | None = None
    directory: str | None = None
    read: ReadOptions = WHOLE_FILES
    inputs: tuple[Input, ...] = ()

    def counts(self) -> PieceCounts:
        """Return empty counts for a task. An engine runs one on each processor."""
        return self.settings.counts(threads=1, max_memory=self.max_memory)

    @cached_property
    def names(self) -> list[str]:
        """The name of each input."""
        return input_names(self.inputs)


def plan_count(inputs: Sequence[Input], read: ReadOptions, unit_bytes: int) -> list[Unit]:
    """Divide files into units, as `plan_units` does, and also large texts that are one document.

    Args:
        inputs: The files, from `find_inputs`.
        read: How documents are found in them.
        unit_bytes: The size of a unit in stored bytes.

    Raises:
        CorpusError: A file cannot be read.
        OptionError: Standard input or a pipe is an input.

    >>> files = [Input(name, name, 10, 0) for name in "abc"]
    >>> [unit.inputs for unit in plan_count(files, ReadOptions("text", "file"), 20)]
    [2, 1]
    """

    def ranges(source: Input) -> Sequence[tuple[int, int, PartKind]]:
        # `add_range` makes parts of one document exact, but cannot read URLs.
        lines = replace(read, documents="line") if source.path is not None else read
        return part_ranges(source, lines, unit_bytes)

    return divide(inputs, unit_bytes, ranges)


def count_unit(work: CountWork, unit: Unit) -> tuple[PieceCounts, list[str]]:
    """Count the files of a unit, or its part of one.

    Returns:
        The counts, and a line of JSON for each row that was skipped.

    Raises:
        CorpusError: A file cannot be read, or a row is bad.
    """
    counts = work.counts()
    # The core's counter directly: a failed task gives its counts to nobody.
    counter = core_counter(counts)
    part = None if unit.start is None or unit.end is None else (unit.start, unit.end)
    # The rows of row groups count from the beginning of their file.
    start = unit.start if unit.kind == "bytes" else None
    skipped: list[str] = []
    for number in range(unit.first, unit.first + unit.inputs):
        source = work.inputs[number]
        if work.read.is_whole and input_kind(source, work.read.input_format).format == "text":
            if part is None or source.path is None:
                count_files(counter, [source], [1], ProgressBar(None), options=work.read)
            else:
                counter.add_range(source.path, *part, 1)
            continue
        with closing(read_batches([source], work.read, threads=1, byte_ranges=[part])) as batches:
            for batch in batches:
                counter.add_rows(batch.data, batch.offsets, 1, 1)
                skipped += [skipped_line(work.names[number], row, start).decode() for row in batch.bad]
    return counts, skipped
