"""The job of a mode for a package: the timed function, and its results for comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.cases import BASELINES, CALL_SIZES
from benchmarks.inputs import SEPARATOR, cut_to_size
from benchmarks.peers import Side, SkippedError

__all__ = ["Inputs", "Job", "digest", "job"]

# The least total bytes of a mode of single calls: enough to time, and more than caches of whole texts hold.
_CALLED_BYTES = 400_000
_Ids: TypeAlias = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Inputs:
    """A corpus in the forms that the modes need.

    Args:
        path: A file of documents with `SEPARATOR` between them.
        to_list: Makes the ids that are decoded.
    """

    path: Path
    to_list: Callable[[str], list[int]]

    @cached_property
    def documents(self) -> list[str]:
        """The documents."""
        return self.path.read_bytes().decode("utf-8").split(SEPARATOR)

    @cached_property
    def whole(self) -> str:
        """The documents as one text."""
        return "".join(self.documents)

    @cached_property
    def size(self) -> int:
        """The number of UTF-8 bytes of all documents."""
        return len(self.whole.encode("utf-8"))

    @cached_property
    def rows(self) -> list[list[int]]:
        """The ids of each document."""
        return [self.to_list(document) for document in self.documents]

    @cached_property
    def arrays(self) -> list[_Ids]:
        """The ids of each document, as arrays."""
        return [np.array(row, dtype=np.uint32) for row in self.rows]

    def calls(self, mode: str) -> list[str]:
        """Return the texts of a mode of single calls: several, but not more than 10 MB."""
        size = CALL_SIZES[mode]
        total = max(_CALLED_BYTES, min(4 * size, 10_000_000))
        return [text for text in cut_to_size(self.whole, size, total) if text]


@dataclass(frozen=True)
class Job:
    """A function to time.

    Args:
        run: Is timed.
        outcome: Runs it and keeps what comes out: ids, or bytes.
        size: UTF-8 bytes of the text that goes in or comes out.
        prepare: Runs before it, and is not timed.
    """

    run: Callable[[], object]
    outcome: Callable[[], _Ids]
    size: int
    prepare: Callable[[], None] = lambda: None


def job(side: Side, mode: str, inputs: Inputs, threads: int) -> Job:
    """Make the job of a mode.

    Args:
        side: Who does it.
        mode: One of `MODES`.
        inputs: What it is done with.
        threads: In how many threads.

    Returns:
        The job.

    Raises:
        SkippedError: The side does not offer the mode.
    """
    if mode in CALL_SIZES:
        texts = inputs.calls(mode)
        call = side.to_list if mode.startswith("call") else _offered(side.to_numpy, mode)
        return _one_by_one(call, texts, sum(len(text.encode("utf-8")) for text in texts))
    if mode in BASELINES:
        call = _offered(side.ours_alone.get(mode), mode)
        return _one_by_one(call, inputs.documents, inputs.size, _OUTCOMES.get(mode, _of_ids))
    if mode == "list":
        return _one_by_one(side.to_list, inputs.documents, inputs.size)
    if mode == "numpy":
        return _one_by_one(_offered(side.to_numpy, mode), inputs.documents, inputs.size)
    if mode == "decode-str":
        return _one_by_one(_offered(side.to_str, mode), inputs.rows, inputs.size, _of_texts)
    if mode == "decode-bytes":
        return _one_by_one(_offered(side.to_bytes, mode), inputs.arrays, inputs.size, _of_bytes)
    if mode == "whole":
        return _one_call(_whole(side, inputs, threads), inputs.size)
    if side.fixed_threads and threads == 1:
        raise SkippedError("its batches cannot use this number of threads")
    if mode == "batch":
        batch = _offered(side.batch, mode)
        return _one_call(lambda: batch(inputs.documents, threads), inputs.size, side.flat)
    if mode == "new":
        return _of_new_texts(_offered(side.batch, mode), inputs, threads, side.flat)
    files = _offered(side.files, mode)
    return _one_call(lambda: files(inputs.path, threads), inputs.size, side.flat)


def digest(ids: _Ids) -> str:
    """Return a digest of ids, for processes to compare."""
    return hashlib.sha256(np.ascontiguousarray(ids).data).hexdigest()


def _whole(side: Side, inputs: Inputs, threads: int) -> Callable[[], _Ids]:
    if threads == 1 and side.in_threads is None:
        to_numpy = _offered(side.to_numpy, "whole")
        return lambda: to_numpy(inputs.whole)
    in_threads = _offered(side.in_threads, "whole in several threads")
    return lambda: in_threads(inputs.whole, threads)


def _offered(call: Callable[..., Any] | None, mode: str) -> Callable[..., Any]:
    if call is None:
        raise SkippedError(f"it lacks the mode {mode}")
    return call


def _of_ids(rows: Sequence[Sequence[int] | _Ids]) -> _Ids:
    return np.concatenate([np.asarray(row, dtype=np.uint32) for row in rows])


def _of_texts(texts: Sequence[str]) -> _Ids:
    return _of_bytes([text.encode("utf-8") for text in texts])


def _of_bytes(rows: Sequence[bytes]) -> _Ids:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).astype(np.uint32)


# The outcomes of our own modes as ids, or as the number of ids.
_OUTCOMES: dict[str, Callable[[Sequence[Any]], _Ids]] = {
    "count": lambda counts: np.array([sum(counts)], dtype=np.uint32),
    "offsets": lambda encoded: _of_ids([ids for ids, _ in encoded]),
    "offset-arrays": lambda encoded: _of_ids([ids for ids, _ in encoded]),
    "stream": lambda streams: _of_ids([ids for stream in streams for ids in stream]),
}


def _one_by_one(
    call: Callable[[Any], Any],
    items: Sequence[Any],
    size: int,
    flat: Callable[[Sequence[Any]], _Ids] = _of_ids,
) -> Job:
    def run() -> None:
        for item in items:
            call(item)

    return Job(run, lambda: flat([call(item) for item in items]), size)


def _of_new_texts(
    batch: Callable[[list[str], int], Any], inputs: Inputs, threads: int, flat: Callable[[Any], _Ids]
) -> Job:
    """Return the job of a batch of objects that nobody has encoded: a `str` may keep its UTF-8."""
    encoded = [document.encode("utf-8") for document in inputs.documents]
    texts: list[str] = []

    def prepare() -> None:
        texts[:] = [document.decode("utf-8") for document in encoded]

    prepare()
    once = _one_call(lambda: batch(texts, threads), inputs.size, flat)
    return replace(once, prepare=prepare)


def _one_call(call: Callable[[], Any], size: int, flat: Callable[[Any], _Ids] = np.asarray) -> Job:
    return Job(call, lambda: flat(call()), size)
