"""Counts a unit of the files of a corpus: the work of one task."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from bpe_tokenizer.corpus.input_list import input_names
from bpe_tokenizer.corpus.manifest import skipped_line
from bpe_tokenizer.corpus.plan import PartKind, Unit, divide, part_ranges
from bpe_tokenizer.distributed.arrow import CountSettings
from bpe_tokenizer.readers import Input, ReadOptions, input_kind, read_batches
from bpe_tokenizer.readers.positions import SkippedRows
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
        directory: The output directory; None for tasks that return their counts.
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
    inputs, read = work.inputs[unit.first : unit.first + unit.inputs], work.read
    source = inputs[0]
    skipped = SkippedRows(most=sys.maxsize)
    if unit.start is None or unit.end is None:
        count_files(counter, inputs, [1] * len(inputs), ProgressBar(None), options=read, skipped=skipped)
    elif read.is_whole and source.path and input_kind(source, read.input_format).format == "text":
        counter.add_range(source.path, unit.start, unit.end, 1)
    else:
        ranges = [(unit.start, unit.end)]
        with closing(read_batches(inputs, read, threads=1, byte_ranges=ranges)) as batches:
            for batch in batches:
                counter.add_rows(batch.data, batch.offsets, 1, 1)
                skipped.add(source.name, batch.bad)
    if not skipped.count:
        return counts, []
    names = dict(zip((each.name for each in work.inputs), input_names(work.inputs), strict=True))
    # The rows of row groups count from the beginning of their file.
    start = unit.start if unit.kind == "bytes" else None
    return counts, [skipped_line(names[name], row, start).decode() for name, row in skipped.first]
