"""Counts of units as sorted files, and their sum as sorted files that each hold a range of pieces.

A task counts a unit and writes one file. The files are sorted, so every range of pieces is a part of each.
The pieces at some places of the files give bounds that divide their bytes evenly. A second task for each
range reads its parts of all files as streams and writes their sum. No process holds all pieces.
"""

from __future__ import annotations

import json
import secrets
import shutil
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import AtomicFile, is_temporary, make_directory, write_atomically, write_errors
from bpe_tokenizer.corpus.input_list import listed_inputs, run_changes
from bpe_tokenizer.corpus.manifest import MANIFEST, count_of, read_json
from bpe_tokenizer.corpus.result import PathLike
from bpe_tokenizer.corpus.skipped_rows import SKIPPED
from bpe_tokenizer.distributed.arrow import CountSettings, add_texts
from bpe_tokenizer.distributed.count_units import CountUnit, CountWork, count_unit, plan_count
from bpe_tokenizer.distributed.tasks import Tasks
from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock
from bpe_tokenizer.readers import ReadOptions, find_sources
from bpe_tokenizer.train.counts_file import read_header_of
from bpe_tokenizer.train.piece_counts import PieceCounts, core_counter, counts_header, save_counts

__all__ = [
    "CountOutput",
    "PieceRange",
    "UnitCounts",
    "count_batches",
    "count_to_files",
    "merge_range",
    "piece_ranges",
    "save_unit",
]

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


class CountOutput(NamedTuple):
    """The files of a finished run.

    Args:
        paths: The sorted files of counts, in the order of their ranges of pieces.
        skipped: Number of bad rows that were skipped.
    """

    paths: list[Path]
    skipped: int


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


def _count_to_file(work: CountWork, task: tuple[int, CountUnit]) -> UnitCounts:
    """Count a unit and write its file, unless an earlier run has."""
    number, unit = task
    path = Path(work.units or "", f"unit-{number:05d}.counts")
    if not path.exists():
        counts, skipped = count_unit(work, unit)
        return save_unit(counts, path, skipped)
    return _read_unit(work.counts(), path)


def piece_ranges(units: Sequence[UnitCounts], partitions: int | None) -> list[PieceRange]:
    """Divide the pieces of units into ranges of about the same bytes.

    Args:
        units: The files of the units.
        partitions: The number of ranges; None for one for each 8 MB of the files, and 64 at most.
    """
    places: list[tuple[bytes, int]] = []
    for unit in units:
        positions = [position for position, _ in unit.places]
        sizes = [end - start for start, end in pairwise([*positions, unit.size])]
        places += zip((after for _, after in unit.places), sizes, strict=True)
    places.sort()
    total = sum(size for _, size in places)
    count = partitions or min(max(total // _PARTITION_BYTES, 1), _MAX_PARTITIONS)
    bounds: list[bytes] = []
    done = 0
    for after, size in places:
        if done * count >= total * (len(bounds) + 1):
            # Any bytes are a bound; a piece may be long.
            bounds.append(after[:_MAX_BOUND])
        done += size
    ends = [*sorted(set(bounds) - {b""}), None]
    lows = [b"", *ends[:-1]]
    documents = sum(unit.documents for unit in units)
    return [
        PieceRange(
            number,
            low or b"",
            high,
            documents if number == 0 else 0,
            [part for unit in units if (part := _slice(unit, low or b"", high))],
        )
        for number, (low, high) in enumerate(zip(lows, ends, strict=True))
    ]


def _slice(unit: UnitCounts, low: bytes, high: bytes | None) -> Slice | None:
    """Return the part of a file that holds a range of pieces; None if it surely holds none of them."""
    before = [after for _, after in unit.places]
    start = max(bisect_left(before, low) - 1, 0)
    end = len(before) if high is None else bisect_left(before, high)
    if end <= start:
        return None
    return Slice(unit.path, unit.places[start], unit.places[end][0] if end < len(before) else None)


def merge_range(work: tuple[CountWork, str], part: PieceRange) -> str:
    """Add the slices of a range up, write the file of the range, and return its name."""
    counting, output = work
    counts = counting.counts()
    counter = core_counter(counts)
    for each in part.slices:
        opened = counter.empty()
        opened.open_slice(each.path, each.start, each.end, part.low, part.high)
        counter.merge(opened, take=True)
    counter.add_documents(part.documents)
    path = Path(output, f"counts-{part.number:05d}.counts")
    save_counts(counts, path)
    return path.name


def count_to_files(
    tasks: Tasks,
    inputs: PathLike | Iterable[PathLike] | Callable[[CountWork], Iterable[UnitCounts]],
    settings: CountSettings,
    output: PathLike,
    *,
    read: ReadOptions,
    unit_bytes: int,
    partitions: int | None,
    max_memory: int | str | None,
) -> CountOutput:
    """Count files, or the rows of an engine's dataset, and write sorted files of counts.

    The arguments are those of `count_with_ray`. For a dataset, `inputs` is a function that counts its parts
    in tasks, with `count_batches`.

    Raises:
        CorpusError: A file cannot be read, or a row is bad.
        OptionError: The directory holds other files.
        WriteError: Another run writes into the directory, or a file cannot be written.
    """
    if callable(inputs):
        with _CountDirectory(output, None) as directory:
            work = CountWork(settings, max_memory, str(directory.units))
            counted = sorted(inputs(work), key=lambda unit: unit.path)
            return _merge(tasks, directory, work, counted, partitions)
    sources = tuple(find_sources(inputs, read, settings.special_tokens))
    units = plan_count(sources, read, unit_bytes)
    plan = {
        "version": _VERSION,
        "settings": asdict(settings),
        "read": asdict(read),
        "unit_bytes": unit_bytes,
        "partitions": partitions,
        "inputs": listed_inputs(sources),
    }
    with _CountDirectory(output, plan) as directory:
        finished = directory.finished()
        if finished is not None:
            return finished
        work = CountWork(settings, max_memory, str(directory.units), read, sources)
        made = dict(tasks.run(_count_to_file, work, list(enumerate(units))))
        return _merge(tasks, directory, work, [made[number] for number in range(len(units))], partitions)


def count_batches(work: CountWork, batches: Iterable[Any], column: str) -> Iterator[UnitCounts]:
    """Count record batches whose rows are documents, and write one file. Yields what it holds.

    Each attempt of a task has a file for itself: only the file of the attempt that the engine takes is used.
    """
    counts = work.counts()
    for batch in batches:
        add_texts(counts, batch, column)
    if counts.documents:
        yield save_unit(counts, Path(work.units or "", f"rows-{secrets.token_hex(16)}.counts"))


def _merge(
    tasks: Tasks,
    directory: _CountDirectory,
    work: CountWork,
    units: Sequence[UnitCounts],
    partitions: int | None,
) -> CountOutput:
    """Write the sums of the units' files, by ranges of pieces."""
    ranges = piece_ranges(units, partitions)
    made = dict(tasks.run(merge_range, (work, str(directory.path)), ranges))
    skipped = [line for unit in units for line in unit.skipped]
    if skipped:
        write_atomically({directory.path / SKIPPED: "".join(skipped).encode()})
    return directory.finish([made[number] for number in range(len(ranges))], len(skipped))


class _CountDirectory:
    """The output directory of a run: sorted files of counts, and a manifest when all are there.

    Args:
        output: The directory; it is created if it does not exist.
        plan: What the units depend on, as JSON values; None if the run cannot be resumed.

    Raises:
        OptionError: It holds other files.
        WriteError: Another run writes into it, or it cannot be written.
    """

    def __init__(self, output: PathLike, plan: Mapping[str, Any] | None) -> None:
        path = check_path("output", output)
        make_directory(path)
        self.path = path.absolute()
        self.units = self.path / _UNITS
        self._lock = DirectoryLock(self.path, RUN_LOCK)
        try:
            with write_errors(self.path):
                self._check(plan)
                if not (self.path / MANIFEST).exists():
                    self.units.mkdir(exist_ok=True)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> _CountDirectory:
        """Return the directory."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self._lock.release()

    def _check(self, plan: Mapping[str, Any] | None) -> None:
        path = self.path / _PLAN
        data = json.dumps(plan, separators=(",", ":")).encode()
        if plan is not None and path.exists():
            if path.read_bytes() == data:
                return
            found = read_json(path) or {}
            own = json.loads(data)
            differing = run_changes(found, own) or "version"
            raise OptionError(
                f"{self.path} holds the counts of another run (it differs in: {differing}); write "
                "to another directory"
            )
        others = sorted(each.name for each in self.path.iterdir() if not is_temporary(each))
        if others:
            raise OptionError(
                f"{self.path} holds other files ({', '.join(others[:5])}); write to a new directory"
            )
        write_atomically({path: data})

    def finished(self) -> CountOutput | None:
        """Return the files of an earlier run; None if it did not finish."""
        path = self.path / MANIFEST
        if not path.exists():
            return None
        content = read_json(path)
        try:
            paths = [self.path / name for name in content["files"]]
            skipped = count_of(content["skipped"])
        except (KeyError, TypeError, ValueError):
            raise CorpusError(f"{path} is not the manifest of a run of this version") from None
        missing = [each for each in paths if not each.is_file()]
        if missing:
            raise CorpusError(f"{missing[0]} is missing; remove {self.path}, and count again")
        return CountOutput(paths, skipped)

    def finish(self, names: Sequence[str], skipped: int) -> CountOutput:
        """Write the manifest, and remove the files of the units."""
        self._lock.check()
        content = {"version": _VERSION, "skipped": skipped, "files": list(names)}
        write_atomically({self.path / MANIFEST: (json.dumps(content, indent=1) + "\n").encode()})
        shutil.rmtree(self.units, ignore_errors=True)
        return CountOutput([self.path / name for name in names], skipped)
