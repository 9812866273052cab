"""The unit of work of a run, for every scheduler: Slurm, Kubernetes, Ray, Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import remove_abandoned, write_errors
from bpe_tokenizer.corpus.batch_encoder import BatchEncoder
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.joining import write_meta
from bpe_tokenizer.corpus.manifest import MANIFEST, UnitRecord
from bpe_tokenizer.corpus.plan import Plan, Unit, plan_units
from bpe_tokenizer.corpus.run_report import OnEvent, RunReport
from bpe_tokenizer.corpus.settings import tokenizer_digest
from bpe_tokenizer.corpus.unit_shards import UnitShards
from bpe_tokenizer.corpus.writing import write_shards
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["Plan", "Unit", "UnitRecord", "plan_units", "run_unit", "run_units", "write_unit"]


def run_unit(
    unit: Unit,
    plan: Plan,
    output: str | Path,
    tokenizer: BPETokenizer,
    *,
    threads: int | None = None,
    verify: bool = False,
) -> UnitRecord:
    r"""Write and commit the shards of a unit, unless they are committed. All arguments can be pickled.

    Any number of attempts may run, also at the same time: the unit's files have the same bytes.

    Args:
        unit: A unit of the plan.
        plan: The plan.
        output: The output directory.
        tokenizer: The tokenizer of the plan's settings.
        threads: Number of threads that encode; None for all processors.
        verify: Compare the hashes of a committed unit, not only sizes and times.

    Returns:
        What the unit has.

    Raises:
        CorpusError: A file cannot be read, or a row is bad.
        OptionError: The directory holds other parts or files, or the tokenizer is another one.
        WriteError: A file cannot be written.

    >>> import tempfile
    >>> from bpe_tokenizer.corpus.settings import CorpusSettings
    >>> from bpe_tokenizer.readers import ReadOptions, find_inputs
    >>> tokenizer = BPETokenizer().train("low lower", 258, special_tokens=["<|eos|>"], verbose=False)
    >>> directory = Path(tempfile.mkdtemp())
    >>> _ = (directory / "corpus.txt").write_text("low\nlower\n", encoding="utf-8")
    >>> settings = CorpusSettings.of(tokenizer, ReadOptions(documents="line"))
    >>> plan = plan_units(find_inputs(directory / "corpus.txt"), settings, 1 << 30)
    >>> [run_unit(unit, plan, directory / "tokens", tokenizer).tokens for unit in plan.units]
    [8]
    """
    if tokenizer_digest(tokenizer) != plan.settings.tokenizer:
        raise OptionError("the tokenizer is not that of the plan")
    encoder = BatchEncoder(tokenizer, plan.settings, threads)
    with CorpusDirectory.open(Path(output), plan) as directory:
        record = write_unit(directory, plan, unit, encoder, RunReport(ProgressBar(None)), verify)
    if plan.settings.has_meta:
        write_meta(directory.path, tokenizer)
    return record


def write_unit(
    directory: CorpusDirectory,
    plan: Plan,
    unit: Unit,
    encoder: BatchEncoder,
    report: RunReport,
    verify: bool = False,
) -> UnitRecord:
    """Write the shards of a unit that are not finished, and commit it. Errors: `run_unit`.

    Args:
        directory: The output directory.
        plan: The plan.
        unit: The unit.
        encoder: Encodes the documents.
        report: Reports the progress.
        verify: As in `run_unit`.
    """
    record = directory.resume(unit.number, verify)
    if record.is_complete:
        return record
    with write_errors(directory.path):
        (directory.path / MANIFEST).unlink(missing_ok=True)
    shards = UnitShards(directory, plan, unit, record)
    return shards.commit(write_shards(plan, unit, encoder, shards, report))


def run_units(
    directory: CorpusDirectory,
    plan: Plan,
    units: Sequence[Unit],
    write: Callable[[Sequence[Unit], RunReport], Iterable[UnitRecord]],
    verify: bool,
    bar: ProgressBar,
    on_event: OnEvent | None,
    **start: Any,
) -> tuple[list[UnitRecord], int, RunReport]:
    """Run units that are not complete, and report what becomes of them.

    Args:
        directory: The output directory.
        plan: The plan.
        units: The units.
        write: Writes units, and returns their records in any order.
        verify: Whether to compare the hashes of finished shards.
        bar: The progress bar.
        on_event: Called with a dict for each event.
        start: More values of the first event.

    Returns:
        The records in the order of the units, the number of shards that were finished before, and the report.

    Raises:
        OptionError: A run from standard input has finished shards.
    """
    with write_errors(directory.path):
        remove_abandoned(directory.path)
    found = [directory.resume(unit.number, verify) for unit in units]
    kept = sum(len(record.shards) for record in found)
    if kept and not plan.is_regular:
        raise OptionError(
            f"{directory.path} holds shards of a run from standard input, which cannot be read again: "
            "overwrite them, or put the corpus into a file"
        )
    total = sum(map(plan.stored_bytes, units)) if plan.is_regular else None
    report = RunReport(bar, on_event, total)
    in_parts = plan.unit_bytes is not None
    values = {"units": len(units), "all_units": len(plan.units)} if in_parts else {"kept": kept}
    path, inputs = str(directory.path), len(plan.inputs)
    report.event("start", output=path, inputs=inputs, total_bytes=total, **start, **values)
    by_number = {unit.number: unit for unit in units}
    records: dict[int, UnitRecord] = {}
    done = [record for record in found if record.is_complete]
    left = [unit for unit, record in zip(units, found, strict=True) if not record.is_complete]
    for is_kept, made in ((True, done), (False, write(left, report))):
        for record in made:
            records[record.unit] = record
            if in_parts:
                report.unit(record, plan.stored_bytes(by_number[record.unit]), is_kept)
    return [records[unit.number] for unit in units], kept, report
