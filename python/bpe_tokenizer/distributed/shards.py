"""Tokenizes corpora to shards: each unit of the plan, or partition of rows, is a task of an engine."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from bpe_tokenizer.arguments import check_flag, check_integer
from bpe_tokenizer.atomic import check_writable, remove_abandoned, write_errors
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.manifest import UnitRecord
from bpe_tokenizer.corpus.options import UnitArguments, UnitOptions
from bpe_tokenizer.corpus.plan import Plan, Unit, plan_units
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus
from bpe_tokenizer.corpus.run_report import OnEvent, RunReport
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.shards import ShardFormatName
from bpe_tokenizer.corpus.units import run_unit, run_units
from bpe_tokenizer.distributed.tasks import Bound, Tasks
from bpe_tokenizer.errors import OptionError, WriteError
from bpe_tokenizer.options import ReadArguments, byte_size, pick
from bpe_tokenizer.readers import ReadOptions, find_sources
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["EngineArguments", "EngineOptions", "ShardWork", "tokenize_on_engine", "write_partition"]


class ShardWork(NamedTuple):
    """What all tasks of a run share."""

    plan: Plan
    output: str
    tokenizer: BPETokenizer
    threads: int
    verify: bool = False


class EngineArguments(UnitArguments, ReadArguments, total=False):
    """The fields of `EngineOptions`, `ReadOptions` and `UnitOptions`."""

    unit_bytes: int | str
    threads: int
    verify: bool
    verbose: bool
    on_event: OnEvent | None


@dataclass(frozen=True)
class EngineOptions:
    """How tasks of an engine run.

    Args:
        unit_bytes: The size of a unit of files in stored bytes.
        threads: Number of threads of a task. Ray reserves as many processors; for Spark, set
            `spark.task.cpus`.
        verify: As in `tokenize_corpus`, for files.
        verbose: Whether to show a progress bar on standard error, if that is a terminal.
        on_event: As in `tokenize_corpus`.
    """

    unit_bytes: int | str = "1GB"
    threads: int = 1
    verify: bool = False
    verbose: bool = True
    on_event: OnEvent | None = None


def tokenize_on_engine(
    tasks: Tasks,
    inputs: Any,
    output: PathLike,
    tokenizer: BPETokenizer,
    format: ShardFormatName,  # noqa: A002 (the usual name)
    options: EngineArguments,
) -> TokenizedCorpus:
    """Turn files, or the rows of an engine's dataset, into shards: each task writes those of a unit.

    The arguments are those of `tokenize_with_ray`, and `tasks`, the engine.
    """
    read, run = pick(ReadOptions, options), pick(EngineOptions, options)
    settings = CorpusSettings.of(tokenizer, read, format, **vars(pick(UnitOptions, options)))
    size = byte_size("unit_bytes", run.unit_bytes)
    check_integer("threads", run.threads, 1)
    check_flag("verify", run.verify)
    path = output_path(output)
    check_writable(path, is_directory=True)
    path = path.absolute()
    rows = tasks.rows(inputs, settings.read)
    with ProgressBar.shown(run.verbose) as bar:
        if rows is not None:
            # Each partition is a unit, and their number is not known yet.
            plan = Plan((), settings, 0, ())
            work = ShardWork(plan, str(path), tokenizer, run.threads)
            return _write_rows(tasks, rows, work, RunReport(bar, run.on_event))
        sources = find_sources(inputs, read, settings.recognized(tokenizer))
        plan = plan_units(sources, settings, size)
        work = ShardWork(plan, str(path), tokenizer, run.threads, run.verify)
        return _run_units(tasks, work, bar, run.on_event)


def _write_rows(tasks: Tasks, rows: Any, work: ShardWork, report: RunReport) -> TokenizedCorpus:
    """Write the rows of all partitions, and the manifest."""
    with CorpusDirectory.open(output_path(work.output), work.plan) as directory:
        with write_errors(directory.path):
            if any(directory.path.glob("unit-*.json")):
                raise OptionError(
                    f"{directory.path} holds rows of another run, which does not go on, since an engine may "
                    "divide rows in another way each time: remove it, or write to another directory"
                )
        report.event("start", output=str(directory.path), inputs=0, total_bytes=None, kept=0)
        records: list[UnitRecord] = []
        for record in tasks.write_rows(Bound(write_partition, work), rows):
            records.append(record)
            report.unit(record, 0, False)
        records.sort(key=attrgetter("unit"))
        for record in records:
            if directory.committed(record.unit) != record:
                raise WriteError(
                    f"{directory.path}: two attempts of partition {record.unit} had other rows; give the "
                    "rows an order, or write them to Parquet files first"
                )
        return _finish(directory, records, 0, report)


def _run_units(tasks: Tasks, work: ShardWork, bar: ProgressBar, on_event: OnEvent | None) -> TokenizedCorpus:
    """Run the units that are not committed yet, and write the manifest."""
    plan = work.plan

    def write(units: Sequence[Unit], report: RunReport) -> Generator[UnitRecord, None, None]:
        yield from tasks.run(Bound(_run_unit, work), units)

    with CorpusDirectory.open(output_path(work.output), plan) as directory:
        _, kept, report = run_units(directory, plan, plan.units, write, work.verify, bar, on_event)
        return _finish(directory, directory.records(), kept, report)


def _finish(
    directory: CorpusDirectory, records: list[UnitRecord], kept: int, report: RunReport
) -> TokenizedCorpus:
    """Write the manifest, and remove the temporary files of workers that were killed."""
    made = directory.finish(records, kept)
    with write_errors(directory.path):
        remove_abandoned(directory.path)
    report.end(made)
    return made


def _run_unit(work: ShardWork, unit: Unit, rows: Iterable[Any] | None = None) -> UnitRecord:
    threads, verify = work.threads, work.verify
    return run_unit(unit, work.plan, work.output, work.tokenizer, threads=threads, verify=verify, rows=rows)


def write_partition(work: ShardWork, number: int, rows: Iterable[Any]) -> UnitRecord:
    """Write and commit the shards of a partition.

    Any number of attempts may run, if all of them have the same rows in the same order.

    Args:
        work: What all tasks share.
        number: The number of the partition.
        rows: Its rows, as Arrow record batches.
    """
    return _run_unit(work, Unit(number, 0, 0, kind="rows"), rows)
