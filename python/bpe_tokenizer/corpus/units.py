"""The unit of work of a run, for every scheduler: Slurm, Kubernetes, Ray, Spark."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from bpe_tokenizer.arguments import processors_for
from bpe_tokenizer.atomic import remove_abandoned, write_errors
from bpe_tokenizer.corpus.batch_encoder import BatchEncoder
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.joining import write_meta
from bpe_tokenizer.corpus.manifest import MANIFEST, UnitRecord
from bpe_tokenizer.corpus.plan import Plan, Unit
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.corpus.run_report import OnEvent, RunReport
from bpe_tokenizer.corpus.settings import tokenizer_digest
from bpe_tokenizer.corpus.stages import in_threads
from bpe_tokenizer.corpus.unit_shards import UnitShards
from bpe_tokenizer.corpus.writing import write_shards
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["run_unit", "run_units", "write_units"]

# Units at the same time, each with some of the processors: one thread writes a unit. With `shuffle`, each may
# have hundreds of temporary files.
_MAX_UNITS, _MAX_SHUFFLED = 8, 2


def run_unit(
    unit: Unit,
    plan: Plan,
    output: str | Path,
    tokenizer: BPETokenizer,
    *,
    threads: int | None = None,
    verify: bool = False,
    rows: Iterable[Any] | None = None,
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
        rows: The rows of a partition of an engine, as Arrow record batches. They are written again by each
            attempt, which must get the same rows in the same order.

    Returns:
        What the unit has.

    Raises:
        CorpusError: A file cannot be read, or a row is bad.
        OptionError: The directory holds other parts or files, or the tokenizer is another one.
        WriteError: A file cannot be written.

    >>> import tempfile
    >>> from bpe_tokenizer.corpus.plan import plan_units
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
    with CorpusDirectory.open(output_path(output), plan) as directory:
        record = _write_unit(directory, plan, encoder, RunReport(ProgressBar(None)), verify, unit, rows)
    if plan.settings.has_meta:
        write_meta(directory.path, tokenizer)
    return record


def write_units(
    directory: CorpusDirectory,
    plan: Plan,
    tokenizer: BPETokenizer,
    threads: int | None,
    verify: bool,
    units: Sequence[Unit],
    report: RunReport,
) -> Generator[UnitRecord, None, None]:
    """Write and commit units, several at the same time, and yield their records. Errors: `run_unit`.

    Args:
        directory: The output directory.
        plan: The plan.
        tokenizer: The tokenizer.
        threads: Number of threads that encode, in all; None for all processors.
        verify: As in `run_unit`.
        units: The units.
        report: Reports the progress.
    """
    processors = processors_for(threads)
    most = _MAX_UNITS if plan.settings.shuffle is None else _MAX_SHUFFLED
    at_once = max(min(len(units), processors // 2, most), 1)
    # One more than its share: a unit that begins or ends leaves processors to the others.
    share = threads if at_once == 1 else -(-processors // at_once) + 1
    encoder = BatchEncoder(tokenizer, plan.settings, share)
    write = partial(_write_unit, directory, plan, encoder, report, verify)
    if at_once == 1:
        yield from map(write, units)
        return
    with ThreadPoolExecutor(at_once) as pool:
        try:
            for done in as_completed([pool.submit(write, unit) for unit in units]):
                yield done.result()
        except BaseException:
            report.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _write_unit(
    directory: CorpusDirectory,
    plan: Plan,
    encoder: BatchEncoder,
    report: RunReport,
    verify: bool,
    unit: Unit,
    rows: Iterable[Any] | None = None,
) -> UnitRecord:
    """Write the shards of a unit that are not finished, and commit it."""
    record = UnitRecord(unit.number, plan.digest)
    if rows is None:
        record = directory.resume(unit.number, verify)
    if record.is_complete:
        return record
    with write_errors(directory.path):
        (directory.path / MANIFEST).unlink(missing_ok=True)
    shards = UnitShards(directory, plan, unit, record)
    return shards.commit(write_shards(shards, encoder, report, rows))


def run_units(
    directory: CorpusDirectory,
    plan: Plan,
    units: Sequence[Unit],
    write: Callable[[Sequence[Unit], RunReport], Generator[UnitRecord, None, None]],
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
    found = list(in_threads(lambda unit: directory.resume(unit.number, verify), units))
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
    with closing(write(left, report)) as written:
        for number, record in enumerate(chain(done, written)):
            records[record.unit] = record
            if in_parts:
                report.unit(record, plan.stored_bytes(by_number[record.unit]), number < len(done))
    return [records[unit.number] for unit in units], kept, report
