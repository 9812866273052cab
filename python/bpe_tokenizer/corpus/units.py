"""The unit of work of a run in parts, for every scheduler: Slurm, Kubernetes, Ray, Spark."""

from __future__ import annotations

from pathlib import Path

from bpe_tokenizer.corpus.encoded import BatchEncoder
from bpe_tokenizer.corpus.joining import write_meta
from bpe_tokenizer.corpus.plan import Plan, Unit, plan_units
from bpe_tokenizer.corpus.run_report import RunReport
from bpe_tokenizer.corpus.settings import tokenizer_digest
from bpe_tokenizer.corpus.unit_directory import UnitDirectory, UnitRecord, UnitShards
from bpe_tokenizer.corpus.writing import write_shards
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.readers import Position
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["Plan", "Unit", "UnitRecord", "plan_units", "run_unit", "write_unit"]


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
    directory = UnitDirectory(Path(output), plan)
    record = directory.committed(unit, verify)
    if record is None:
        encoder = BatchEncoder(tokenizer, plan.settings, threads)
        record = write_unit(directory, unit, encoder, RunReport(ProgressBar(None)))
    if plan.settings.has_meta:
        write_meta(directory.directory, tokenizer)
    return record


def write_unit(output: UnitDirectory, unit: Unit, encoder: BatchEncoder, report: RunReport) -> UnitRecord:
    """Write and commit the shards of a unit. Errors: `run_unit`.

    Args:
        output: The output directory.
        unit: The unit.
        encoder: Encodes the documents.
        report: Reports the progress.
    """
    plan = output.plan
    shards = UnitShards(output, unit)
    inputs = plan.inputs[unit.first : unit.first + unit.inputs]
    ranges = None if unit.start is None or unit.end is None else [(unit.start, unit.end)]
    try:
        shards.skip(write_shards(inputs, ranges, plan.settings, encoder, shards, Position(), report))
        return shards.commit()
    finally:
        shards.abandon()
