"""Runs cases: compares the results of both sides, times them alternately, and records the times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks import alone
from benchmarks.cases import BASELINES, LIMITS, MIXED, Case
from benchmarks.inputs import SEPARATOR, cut_at_lines, read_documents
from benchmarks.jobs import Inputs, Job, job
from benchmarks.measure import in_turn, on_processors, seconds, spread
from benchmarks.peers import OURS, Side, SkippedError, load
from benchmarks.records import Record
from benchmarks.vocabularies import Vocabulary, prepare

__all__ = ["Suite", "WrongError"]

_DOCUMENT = 20_000
# Bytes of all documents together where a case takes all of every corpus.
_MIXED_BYTES = 4_000_000
# Ids of ours and of a package that differs, as the page shows them.
_SHOWN_IDS = 4


class WrongError(Exception):
    """The results of a package differ from ours; the message says where."""


class Suite:
    """Runs cases on corpora.

    Args:
        corpora: Their files by name, plain or .xz.
        directory: An empty directory for what has to be written.
        record: Gets the results.
        turns: How often both sides run.
        limit: Bytes of each corpus; None takes all.
        limits: Bytes of each corpus for some packages.
        load: Loads a package with a vocabulary.
    """

    def __init__(
        self,
        corpora: Mapping[str, Path],
        directory: Path,
        record: Record,
        turns: int,
        limit: int | None = None,
        limits: Mapping[str, int] = LIMITS,
        load: Callable[[str, Vocabulary], Side] = load,
    ) -> None:
        self._corpora = corpora
        self._directory = directory
        self._record = record
        self._turns = turns
        self._limit = limit
        self._limits = limits
        self._load = load
        # Holds only the sides of the current vocabulary and corpus, to save memory.
        self._sides: dict[tuple[str, str], Side | SkippedError] = {}
        self._inputs: dict[tuple[str, str, int | None], Inputs] = {}
        self._said: set[tuple[str, str, str]] = set()

    def run(self, cases: Iterable[Case]) -> None:
        """Run cases. A case that cannot run is recorded with its reason."""
        for case in cases:
            try:
                size, times = self._cold(case) if case.state == "cold" else self._warm(case)
            except SkippedError as reason:
                self._report(case, "skipped", str(reason))
            except WrongError as reason:
                self._report(case, "wrong", str(reason))
            else:
                self._timed(case, size, times)

    def run_memory(self) -> None:
        """Measure the peak memory of ours, and of the package that comes closest in speed."""
        for corpus in self._corpora:
            for mode, threads in (("whole", 1), ("batch", 2), ("file", 2)):
                self._memory(Case(OURS, mode, corpus, "cl100k", "memory", threads))
            self._memory(Case("gigatoken", "batch", corpus, "cl100k", "memory", 2))

    def _warm(self, case: Case) -> tuple[int, list[tuple[float, float]]]:
        theirs, mine = self._side(case.peer, case.vocabulary), self._side(OURS, case.vocabulary)
        inputs = self._texts(case, mine)
        # Our cases compare two threads with one, or a mode with plain encoding.
        baseline = BASELINES.get(case.mode, case.mode)
        other = job(theirs, baseline, inputs, 1 if case.peer == OURS else case.threads)
        own = job(mine, case.mode, inputs, case.threads)
        expected = own.outcome()
        try:
            given = other.outcome()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            # A package's error must not stop the other cases. A panic of Rust is not an `Exception`.
            raise WrongError(f"it fails with: {str(error).strip()[:120]}") from error
        if case.mode == "count":
            given = np.array([len(given)], dtype=np.uint32)
        decodes = case.mode.startswith("decode")
        _compare(expected, given, None if decodes else mine.to_bytes)
        with on_processors(case.threads):
            return own.size, in_turn(partial(_seconds, own), partial(_seconds, other), self._turns)

    def _cold(self, case: Case) -> tuple[int, list[tuple[float, float]]]:
        self._side(case.peer, case.vocabulary)
        inputs = self._texts(case, self._side(OURS, case.vocabulary))
        digests: dict[str, str | None] = {}

        def first_run(package: str) -> float:
            result = alone.cold(
                package,
                case.mode,
                case.threads,
                case.vocabulary,
                self._directory,
                inputs.path,
                check=package not in digests,
            )
            digests.setdefault(package, result.digest)
            return result.seconds

        times = in_turn(partial(first_run, OURS), partial(first_run, case.peer), self._turns)
        if digests[OURS] != digests[case.peer]:
            raise WrongError("its ids differ from ours")
        return inputs.size, times

    def _memory(self, case: Case) -> None:
        try:
            side = self._side(case.peer, case.vocabulary)
            path = self._file(case.corpus, self._limit)
            # Fails here, where the reason is visible.
            job(side, case.mode, Inputs(path, side.to_list), case.threads)
            result = alone.memory(case.peer, case.mode, case.threads, case.vocabulary, self._directory, path)
        except SkippedError as reason:
            self._report(case, "skipped", str(reason))
            return
        self._record.add("memory", case=case.parts, **result._asdict())
        print(
            f"{case.name:<50} input {result.input / 1e6:.0f} MB + output {result.output / 1e6:.0f} MB "
            f"+ {result.extra / 1e6:.0f} MB",
            flush=True,
        )

    def _timed(self, case: Case, size: int, times: list[tuple[float, float]]) -> None:
        ratio = spread(theirs / mine for mine, theirs in times)
        mine = size / spread(mine for mine, _ in times).median / 1e6
        theirs = size / spread(theirs for _, theirs in times).median / 1e6
        self._record.add(
            "case",
            case=case.parts,
            bytes=size,
            turns=len(times),
            ours=round(mine, 2),
            theirs=round(theirs, 2),
            ratio=[round(value, 3) for value in ratio],
        )
        print(
            f"{case.name:<50} {ratio.median:7.2f} ({ratio.low:.2f} to {ratio.high:.2f})   "
            f"{mine:7.1f} against {theirs:7.1f} MB/s",
            flush=True,
        )

    def _report(self, case: Case, kind: str, reason: str) -> None:
        """Print why a case is not timed, once for each package and vocabulary."""
        if kind == "skipped" and (case.peer, case.vocabulary, reason) in self._said:
            return
        self._said.add((case.peer, case.vocabulary, reason))
        self._record.add(kind, case=case.parts, reason=reason)
        print(f"{case.name:<50} {kind}: {reason}", flush=True)

    def _side(self, package: str, name: str) -> Side:
        if any(other != name for _, other in self._sides):
            self._sides.clear()
        if (package, name) not in self._sides:
            try:
                self._sides[package, name] = self._load(package, self._vocabulary(name))
            except SkippedError as reason:
                self._sides[package, name] = reason
        side = self._sides[package, name]
        if isinstance(side, SkippedError):
            raise side
        return side

    def _vocabulary(self, name: str) -> Vocabulary:
        return prepare(name, self._directory)

    def _texts(self, case: Case, mine: Side) -> Inputs:
        limits = [size for size in (self._limit, self._limits.get(case.peer)) if size is not None]
        key = (case.corpus, case.vocabulary, min(limits, default=None))
        if any(other[:2] != key[:2] for other in self._inputs):
            self._inputs.clear()
        if key not in self._inputs:
            self._inputs[key] = Inputs(self._file(case.corpus, key[2]), mine.to_list)
        return self._inputs[key]

    def _file(self, corpus: str, limit: int | None) -> Path:
        """Write a corpus as a file of documents, unless the file exists."""
        path = self._directory / f"{corpus}-{limit or 'all'}.txt"
        if not path.exists():
            if corpus == MIXED:
                part = (limit or _MIXED_BYTES) // len(self._corpora)
                documents = [each for file in self._corpora.values() for each in read_documents(file, part)]
            else:
                documents = read_documents(self._corpora[corpus], limit)
            text = "\n".join(documents)
            path.write_bytes(SEPARATOR.join(cut_at_lines(text, _DOCUMENT)).encode("utf-8"))
        return path


def _seconds(task: Job) -> float:
    task.prepare()
    return seconds(task.run)


def _compare(
    mine: npt.NDArray[np.uint32],
    theirs: npt.NDArray[np.uint32],
    to_bytes: Callable[[npt.NDArray[np.uint32]], bytes] | None,
) -> None:
    """Raise an error that shows the first difference; `to_bytes` decodes ids."""
    if np.array_equal(mine, theirs):
        return
    common = min(len(mine), len(theirs))
    differing = np.flatnonzero(mine[:common] != theirs[:common])
    at = int(differing[0]) if len(differing) else common
    shown = slice(at, at + _SHOWN_IDS)
    text = to_bytes(mine[max(0, at - 2) : shown.stop]).decode("utf-8", "replace") if to_bytes else ""
    raise WrongError(
        f"{text[:60]!r} gives {theirs[shown].tolist()} instead of {mine[shown].tolist()} "
        f"(index {at:,} of {len(mine):,})"
    )
