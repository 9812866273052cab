"""Tokenizes corpora to shards: each unit of the plan is a task of an engine."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bpe_tokenizer.arguments import check_flag, check_integer
from bpe_tokenizer.atomic import check_writable, write_errors
from bpe_tokenizer.corpus.byte_sizes import byte_size
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.manifest import UnitRecord
from bpe_tokenizer.corpus.plan import Plan, Unit, plan_units
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus
from bpe_tokenizer.corpus.run_report import OnEvent, RunReport
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.units import run_unit, run_units
from bpe_tokenizer.distributed.tasks import Tasks
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.readers import find_sources
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["tokenize_units"]


class _Work(NamedTuple):
    """What all tasks of a run share."""

    plan: Plan
    output: str
    tokenizer: BPETokenizer
    threads: int
    verify: bool


def tokenize_units(
    tasks: Tasks,
    inputs: PathLike | Iterable[PathLike],
    output: PathLike,
    tokenizer: BPETokenizer,
    settings: CorpusSettings,
    *,
    unit_bytes: int | str,
    threads: int,
    verify: bool,
    verbose: bool,
    on_event: OnEvent | None,
    write_rows: Callable[[Path], None] | None = None,
) -> TokenizedCorpus:
    """Turn files, or the rows of an engine's dataset, into shards: `tasks` runs one for each unit.

    The engine writes rows to Parquet files next to the output directory, and their units are tokenized. A
    dataset whose rows come in another order each time has an order from then on, so a killed run can go on.

    Args:
        tasks: The engine.
        inputs: Files, as in `tokenize_with_ray`, like the other arguments.
        output: The output directory.
        tokenizer: Encodes the documents.
        settings: What the contents of the shards depend on.
        unit_bytes: The size of a unit in stored bytes.
        threads: Number of threads of a task.
        verify: Whether to compare the hashes of finished shards.
        verbose: Whether to show a progress bar.
        on_event: Called with a dict for each event.
        write_rows: Writes the rows of a dataset to Parquet files in a directory; they are the inputs then.
    """
    size = byte_size("unit_bytes", unit_bytes)
    check_integer("threads", threads, 1)
    check_flag("verify", verify)
    path = output_path(output)
    check_writable(path, is_directory=True)
    path = path.absolute()
    rows = None
    if write_rows is not None:
        if not isinstance(path, Path):
            raise OptionError(
                f"the rows of a dataset pass through files next to the output, so {path} must be a "
                "directory of these machines; or write the rows to Parquet files, and give those as the input"
            )
        rows = path.with_name(f"{path.name}.rows")
        _write_rows(write_rows, rows)
        inputs = sorted(rows.rglob("*.parquet"))
        settings = replace(settings, read=replace(settings.read, input_format="parquet"))
    sources = find_sources(inputs, settings.read, settings.recognized(tokenizer))
    plan = plan_units(sources, settings, size)
    with ProgressBar.shown(verbose) as bar:
        made = _run_units(tasks, _Work(plan, str(path), tokenizer, threads, verify), bar, on_event)
    if rows is not None:
        shutil.rmtree(rows)
    return made


def _write_rows(write_rows: Callable[[Path], None], rows: Path) -> None:
    if rows.exists():
        raise OptionError(
            f"{rows} holds the rows of a run that did not finish: to go on with it, give this directory as "
            "the input; to start anew, remove it and the output directory"
        )
    # Renamed when it is complete, so that no run goes on with a part of the rows.
    partial = rows.with_name(f".{rows.name}.{secrets.token_hex(8)}.tmp")
    try:
        write_rows(partial)
        with write_errors(rows):
            partial.rename(rows)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run_units(tasks: Tasks, work: _Work, bar: ProgressBar, on_event: OnEvent | None) -> TokenizedCorpus:
    """Run the units that are not committed yet, and write the manifest."""
    plan = work.plan

    def write(units: Sequence[Unit], report: RunReport) -> Generator[UnitRecord, None, None]:
        for _, record in tasks.run(_run_unit, work, units):
            yield record

    with CorpusDirectory.open(output_path(work.output), plan) as directory:
        _, kept, report = run_units(directory, plan, plan.units, write, work.verify, bar, on_event)
        made = directory.finish(directory.records(), kept)
        report.end(made)
    return made


def _run_unit(work: _Work, unit: Unit) -> UnitRecord:
    return run_unit(unit, work.plan, work.output, work.tokenizer, threads=work.threads, verify=work.verify)
