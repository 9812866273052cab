"""Tokenizes corpora to shards: each unit of the plan is a task of an engine."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bpe_tokenizer.arguments import check_flag, check_integer, check_path
from bpe_tokenizer.atomic import write_errors
from bpe_tokenizer.corpus.byte_sizes import byte_size
from bpe_tokenizer.corpus.merging import merge_manifests
from bpe_tokenizer.corpus.plan import Plan, Unit, plan_units
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus
from bpe_tokenizer.corpus.run_report import OnEvent, RunReport
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.unit_directory import UnitDirectory, UnitRecord
from bpe_tokenizer.corpus.units import run_unit
from bpe_tokenizer.distributed.tasks import Tasks
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.readers import DocumentEnd, InputFormat, OnError, ReadOptions, find_inputs
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["tokenize_rows", "tokenize_units"]


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
    *,
    input_format: InputFormat | None,
    documents: DocumentEnd,
    separator: str | None,
    field: str,
    on_error: OnError,
    unit_bytes: int | str,
    threads: int,
    verify: bool,
    verbose: bool,
    on_event: OnEvent | None,
    **options: Any,
) -> TokenizedCorpus:
    """Turn the documents of files into shards: `tasks` runs one for each unit.

    The other arguments are those of `tokenize_with_ray`; `options` are those of `CorpusSettings.of`.
    """
    read = ReadOptions(input_format, documents, separator, field, on_error)
    settings = CorpusSettings.of(tokenizer, read, **options)
    size = byte_size("unit_bytes", unit_bytes)
    check_integer("threads", threads, 1)
    check_flag("verify", verify)
    path = check_path("output", output).absolute()
    plan = plan_units(find_inputs(inputs), settings, size)
    directory = UnitDirectory(path, plan)
    directory.remove_abandoned()
    units: list[Unit] = []
    kept = 0
    for unit in plan.units:
        record = directory.committed(unit, verify)
        if record is None:
            units.append(unit)
        else:
            kept += len(record.shards)
    with ProgressBar.shown(verbose) as bar:
        total = sum(map(plan.stored_bytes, units))
        report = RunReport(bar, on_event, total)
        report.event(
            "start",
            output=str(path),
            inputs=len(plan.inputs),
            total_bytes=total,
            units=len(units),
            all_units=len(plan.units),
        )
        work = _Work(plan, str(path), tokenizer, threads, verify)
        for index, made in tasks.run(_run_unit, work, units):
            report.event("unit", unit=made.unit, shards=len(made.shards), tokens=made.tokens, kept=False)
            report.unit_done(plan.stored_bytes(units[index]), made.documents, made.tokens)
        merged = merge_manifests(path)._replace(kept=kept)
        report.event("end", **{**merged._asdict(), "files": [str(file) for file in merged.files]})
    return merged


def _run_unit(work: _Work, unit: Unit) -> UnitRecord:
    return run_unit(unit, work.plan, work.output, work.tokenizer, threads=work.threads, verify=work.verify)


def tokenize_rows(
    tasks: Tasks,
    write_parquet: Callable[[Path], None],
    output: PathLike,
    tokenizer: BPETokenizer,
    **options: Any,
) -> TokenizedCorpus:
    """Turn the rows of an engine's dataset into shards.

    The engine writes the rows to Parquet files next to the output directory, and their units are tokenized. A
    dataset whose rows come in another order each time has an order from then on, so a killed run can go on.

    Args:
        tasks: The engine.
        write_parquet: Writes the rows into a directory.
        output: As in `tokenize_units`.
        tokenizer: As in `tokenize_units`.
        options: Those of `tokenize_units`.
    """
    path = check_path("output", output).absolute()
    rows = path.with_name(f"{path.name}.rows")
    if rows.exists():
        raise OptionError(
            f"{rows} holds the rows of a run that did not finish: to go on with it, give this directory as "
            "the input; to start anew, remove it and the output directory"
        )
    # Renamed when it is complete, so that no run goes on with a part of the rows.
    partial = path.with_name(f".{path.name}.rows.{secrets.token_hex(8)}.tmp")
    try:
        write_parquet(partial)
        with write_errors(rows):
            partial.rename(rows)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    made = tokenize_units(
        tasks, sorted(rows.rglob("*.parquet")), path, tokenizer, **{**options, "input_format": "parquet"}
    )
    shutil.rmtree(rows)
    return made
