"""Counts of units as sorted files, and their sum as sorted files that each hold a range of pieces.

A task counts a unit and writes one file. The files are sorted, so every range of pieces is a part of each.
The pieces at some places of the files give bounds that divide their bytes evenly. A second task for each
range reads its parts of all files as streams and writes their sum. No process holds all pieces. The engines'
own shuffles took 2.7 times as long.
"""

from __future__ import annotations

import json
import secrets
import shutil
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from bpe_tokenizer.arguments import check_integer, check_path
from bpe_tokenizer.atomic import AtomicFile, is_temporary, make_directory, write_atomically, write_errors
from bpe_tokenizer.corpus.input_list import listed_inputs, run_changes
from bpe_tokenizer.corpus.manifest import MANIFEST, SKIPPED, read_json
from bpe_tokenizer.corpus.plan import Unit
from bpe_tokenizer.corpus.result import PathLike
from bpe_tokenizer.distributed.arrow import CountSettings, add_texts, collect_counts, counts_to_batch
from bpe_tokenizer.distributed.count_units import CountWork, count_unit, plan_count
from bpe_tokenizer.distributed.tasks import Bound, Tasks
from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock
from bpe_tokenizer.options import MemoryLimits, ReadArguments, byte_size, pick
from bpe_tokenizer.readers import ReadOptions, find_sources
from bpe_tokenizer.train.counts_file import read_header_of
from bpe_tokenizer.train.piece_counts import (
    PieceCounts,
    core_counter,
    counts_header,
    merged_counts,
    save_counts,
)

__all__ = ["CountArguments", "CountOptions", "count_on_engine", "merge_range", "piece_ranges", "save_unit"]

_PLAN = "plan.json"
_UNITS = "units"
_VERSION = 1
# Places of a file that are remembered: at most so many, and so many bytes apart at least.
_MAX_PLACES = 256
_MIN_SPACING = 64 << 10
# Without `partitions`: bytes of the units' files for each range of pieces, and the most ranges.
_PARTITION_BYTES = 8 << 20
_MAX_PARTITIONS = 64
_MAX_BOUND = 64
# Bytes of counts that a task returns without a directory: those of an array of pyarrow and of Spark.
_MAX_SENT = 2_000_000_000


class UnitCounts(NamedTuple):
    """A sorted file of counts.

    Args:
        path: The file.
        documents: Number of documents.
        size: Bytes of the file.
        places: Bytes of the file at which a piece begins, each with the piece before it.
        skipped: A line of JSON for each row that was skipped.
    """

    path: str
    documents: int
    size: int
    places: list[tuple[int, bytes]]
    skipped: list[str]


class Slice(NamedTuple):
    """A part of a sorted file of counts.

    Args:
        path: The file.
        start: A place in it at or before the first piece of the slice.
        end: The byte of a place after the last piece; None for the end of the file.
    """

    path: str
    start: tuple[int, bytes]
    end: int | None


class PieceRange(NamedTuple):
    """A range of pieces, in the order of their bytes.

    Args:
        number: The number of the range, from 0.
        low: The first piece, or one before it.
        high: The first piece after the range; None for the last range.
        documents: The number of documents to write into its file.
        slices: Where its pieces are.
    """

    number: int
    low: bytes
    high: bytes | None
    documents: int
    slices: list[Slice]


def save_unit(counts: PieceCounts, path: Path, skipped: Sequence[str] = ()) -> UnitCounts:
    """Write the file of a unit, completely or not at all."""
    with AtomicFile(path) as file:
        core_counter(counts).save(counts_header(counts, skipped=skipped), file.write)
    return _read_unit(counts, path)


def _read_unit(like: PieceCounts, path: Path) -> UnitCounts:
    """Check the file of a unit, and return what it holds. `like` has the same settings."""
    header, begin = read_header_of(path)
    documents: int = header["documents"]
    counter = core_counter(like).empty()
    counter.open(path, begin, documents)
    size = path.stat().st_size
    places = counter.places(max(_MIN_SPACING, size // _MAX_PLACES))
    return UnitCounts(str(path), documents, size, places, header["skipped"])


def _count_unit(work: CountWork, unit: Unit) -> Any:
    """Count a unit of files, unless an earlier run has written its file. Returns what `_result` does."""
    name = f"unit-{unit.number:07d}.counts"
    if work.directory is not None and (path := Path(work.directory, _UNITS, name)).exists():
        return _read_unit(work.counts(), path)
    return _result(work, name, *count_unit(work, unit))


def _count_rows(work: CountWork, batches: Iterable[Any]) -> Any:
    """Count record batches whose rows are documents. Returns what `_result` does.

    Each attempt of a task has a file for itself: only the file of the attempt that the engine takes is used.
    """
    counts = work.counts()
    for batch in batches:
        add_texts(counts, batch, work.read.field)
    return _result(work, f"rows-{secrets.token_hex(16)}.counts", counts)


def _result(work: CountWork, name: str, counts: PieceCounts, skipped: Sequence[str] = ()) -> Any:
    """Return the counts of a task as a record batch, or write their file and return its `UnitCounts`."""
    if work.directory is not None:
        return save_unit(counts, Path(work.directory, _UNITS, name), skipped)
    batch = counts_to_batch(counts)
    if batch.nbytes > _MAX_SENT:
        raise CorpusError(
            f"a task has {batch.nbytes / 1e9:,.1f} GB of counts, and engines pass 2 GB: give output, a "
            "directory, or smaller units or partitions"
        )
    return batch


def piece_ranges(units: Sequence[UnitCounts], partitions: int | None) -> list[PieceRange]:
    """Divide the pieces of units into ranges of about the same bytes.

    Args:
        units: The files of the units.
        partitions: The number of ranges; None for one for each 8 MB of the files, and 64 at most.
    """
    places = sorted(
        (after, end - start)
        for unit in units
        for (start, after), (end, _) in pairwise([*unit.places, (unit.size, b"")])
    )
    total = sum(size for _, size in places)
    count = partitions or min(max(total // _PARTITION_BYTES, 1), _MAX_PARTITIONS)
    lows = [b""]
    done = 0
    for after, size in places:
        if done * count >= total * len(lows):
            # Any bytes are a bound; a piece may be long.
            lows.append(after[:_MAX_BOUND])
        done += size
    lows = sorted(set(lows))
    documents = sum(unit.documents for unit in units)
    return [
        PieceRange(
            number,
            low,
            high,
            documents if number == 0 else 0,
            [part for unit in units if (part := _slice(unit, low, high))],
        )
        for number, (low, high) in enumerate(zip(lows, [*lows[1:], None], strict=True))
    ]


def _slice(unit: UnitCounts, low: bytes, high: bytes | None) -> Slice | None:
    """Return the part of a file that holds a range of pieces; None if it surely holds none of them."""
    before = [after for _, after in unit.places]
    start = max(bisect_left(before, low) - 1, 0)
    end = len(before) if high is None else bisect_left(before, high)
    if end <= start:
        return None
    return Slice(unit.path, unit.places[start], unit.places[end][0] if end < len(before) else None)


def merge_range(work: CountWork, part: PieceRange) -> str:
    """Add the slices of a range up, write the file of the range, and return its name."""
    counts = work.counts()
    counter = core_counter(counts)
    for each in part.slices:
        opened = counter.empty()
        opened.open_slice(each.path, each.start, each.end, part.low, part.high)
        counter.merge(opened, take=True)
    counter.add_documents(part.documents)
    path = Path(work.directory or "", f"counts-{part.number:05d}.counts")
    save_counts(counts, path)
    return path.name


class CountArguments(ReadArguments, total=False):
    """The fields of `CountOptions` and `ReadOptions`."""

    unit_bytes: int | str
    partitions: int | None
    max_memory: int | str | None


@dataclass(frozen=True)
class CountOptions:
    """How tasks of an engine count.

    Args:
        unit_bytes: The size of a unit of files in stored bytes.
        partitions: Number of files in `output`; None for one for each 8 MB of the units' counts, 64 at most.
        max_memory: Memory limit of each task, and of the counts that are returned, as in `PieceCounts`.
    """

    unit_bytes: int | str = "256MB"
    partitions: int | None = None
    max_memory: int | str | None = None


def count_on_engine(
    tasks: Tasks, source: Any, settings: CountSettings, output: PathLike | None, options: CountArguments
) -> PieceCounts:
    """Count files, or the rows of an engine's dataset.

    The arguments are those of `count_with_ray`, and `tasks`, the engine.
    """
    read, run = pick(ReadOptions, options), pick(CountOptions, options)
    size = byte_size("unit_bytes", run.unit_bytes)
    if run.partitions is not None:
        check_integer("partitions", run.partitions, 1)
    if read.on_error == "skip" and output is None:
        raise OptionError("on_error='skip' needs output, the directory where the skipped rows are listed")
    path = None if output is None else check_path("output", output)
    rows = tasks.rows(source, read)
    inputs = () if rows is not None else tuple(find_sources(source, read, settings.special_tokens))
    directory = None if path is None else str(path.absolute())
    work = CountWork(settings, run.max_memory, directory, read, inputs)
    if rows is not None:
        plan = None
        counted = tasks.map_rows(Bound(_count_rows, work), rows)
    else:
        plan = {
            "version": _VERSION,
            "settings": asdict(settings),
            "read": asdict(read),
            "unit_bytes": size,
            "partitions": run.partitions,
            "inputs": listed_inputs(inputs),
        }
        counted = tasks.run(Bound(_count_unit, work), plan_count(inputs, read, size))
    if path is None:
        return collect_counts(counted, settings, max_memory=run.max_memory)
    files = _count_to_files(tasks, work, counted, path, plan, run.partitions)
    return merged_counts(files, MemoryLimits(run.max_memory))


def _count_to_files(
    tasks: Tasks,
    work: CountWork,
    counted: Iterable[UnitCounts],
    path: Path,
    plan: Mapping[str, Any] | None,
    partitions: int | None,
) -> list[Path]:
    """Write sorted files of counts and a manifest, unless an earlier run has. Returns the files.

    Args:
        tasks: The engine.
        work: What the tasks share.
        counted: The files of the units, which are written as they are asked for.
        path: The directory; it is created if it does not exist.
        plan: What the units depend on, as JSON values; None if the run cannot be resumed.
        partitions: The number of files.
    """
    make_directory(path)
    path = path.absolute()
    with DirectoryLock(path, RUN_LOCK) as lock:
        with write_errors(path):
            _check_plan(path, plan)
            if (path / MANIFEST).exists():
                return _finished(path)
            (path / _UNITS).mkdir(exist_ok=True)
        units = sorted(counted, key=attrgetter("path"))
        names = sorted(tasks.run(Bound(merge_range, work), piece_ranges(units, partitions)))
        lock.check()
        skipped = [line for unit in units for line in unit.skipped]
        if skipped:
            write_atomically({path / SKIPPED: "".join(skipped).encode()})
        content = {"version": _VERSION, "skipped": len(skipped), "files": names}
        write_atomically({path / MANIFEST: (json.dumps(content, indent=1) + "\n").encode()})
        shutil.rmtree(path / _UNITS, ignore_errors=True)
        return [path / name for name in names]


def _check_plan(path: Path, plan: Mapping[str, Any] | None) -> None:
    """Write the plan into an empty directory, or compare it with that of an earlier run."""
    data = json.dumps(plan, separators=(",", ":")).encode()
    if plan is not None and (path / _PLAN).exists():
        if (path / _PLAN).read_bytes() == data:
            return
        found = read_json(path / _PLAN)
        differing = run_changes(found if isinstance(found, dict) else {}, json.loads(data)) or "version"
        raise OptionError(
            f"{path} holds the counts of another run (it differs in: {differing}); write to another directory"
        )
    others = sorted(each.name for each in path.iterdir() if not is_temporary(each))
    if others:
        raise OptionError(f"{path} holds other files ({', '.join(others[:5])}); write to a new directory")
    write_atomically({path / _PLAN: data})


def _finished(path: Path) -> list[Path]:
    """Return the files of a finished run."""
    try:
        files = [path / name for name in read_json(path / MANIFEST)["files"]]
    except (KeyError, TypeError):
        raise CorpusError(f"{path / MANIFEST} is not the manifest of a run of this version") from None
    missing = [each for each in files if not each.is_file()]
    if missing:
        raise CorpusError(f"{missing[0]} is missing; remove {path}, and count again")
    return files
