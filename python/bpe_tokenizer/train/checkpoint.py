"""Checkpoints: a training run that was stopped at any moment resumes, with the same result."""

from __future__ import annotations

import base64
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import make_directory, remove_abandoned, write_atomically
from bpe_tokenizer.errors import ArgumentTypeError, FormatError, MismatchError, OptionError, shorten
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock
from bpe_tokenizer.options import ReadOptions, sample_limit
from bpe_tokenizer.readers.inputs import Input
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.train.corpus import START, WHOLE_FILES, FilePosition, count_files
from bpe_tokenizer.train.piece_counts import PieceCounts, core_counter, read_counts, save_counts
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["Checkpoint"]

_COUNTS, _MERGES = "pieces.counts", "merges.json"
_VERSION = 1
# Work between two checkpoints takes at least this many times as long as saving one.
_MIN_WORK_RATIO = 20

Pair = tuple[bytes, bytes]


class Checkpoint:
    """The counts and the merges of a run, in two files that are replaced atomically.

    `pieces.counts` is a file of `PieceCounts`. Its header also lists the counted files, with their sizes,
    times and weights, the position in them, and whether normalisation changed text. `merges.json` holds the
    merges so far. A kill leaves the old or the new version of each. What a run adds depends on the corpus and
    the options only, so the resumed run gives the result of an uninterrupted one. One run at a time has the
    lock of the directory.

    Args:
        directory: Holds the files; created if it does not exist.
        seconds: Seconds of work between two checkpoints.

    Raises:
        ArgumentTypeError: `seconds` is not a number.
        OptionError: `seconds` is negative or infinite.
        WriteError: Another run uses the directory, or it cannot be written.
    """

    def __init__(self, directory: Path, seconds: float) -> None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise ArgumentTypeError(f"checkpoint_seconds must be a number, not {type(seconds).__name__}")
        if not 0 <= seconds < math.inf:
            raise OptionError(f"checkpoint_seconds is {seconds}; it must be 0 or more")
        self._directory = directory
        self._seconds = seconds
        make_directory(directory)
        self._lock = DirectoryLock(directory, RUN_LOCK)
        for name in (_COUNTS, _MERGES):
            remove_abandoned(directory / name)

    def __enter__(self) -> Checkpoint:
        """Return the checkpoint."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self._lock.release()

    def count(
        self,
        counts: PieceCounts,
        files: Sequence[Input],
        weights: Sequence[int],
        progress: ProgressBar,
        read: ReadOptions = WHOLE_FILES,
        sample: float | str | None = None,
    ) -> SkippedRows:
        """Count files, from the position of the checkpoint on.

        Args:
            counts: Empty counts with the settings of this run, which get the pieces.
            files: The files. They start with the files that were counted, unchanged.
            weights: A weight for each.
            progress: Shows the progress.
            read: How documents are found in the files.
            sample: The sample that the counts take.

        Returns:
            The rows that this run skipped.

        Raises:
            CorpusError: A file cannot be read, or is not UTF-8.
            FormatError: The checkpoint is broken.
            MismatchError: The checkpoint has other files or settings; the error names the difference.
        """
        path = self._directory / _COUNTS
        listed = [
            _file_state(file, weight, read, sample) for file, weight in zip(files, weights, strict=True)
        ]
        position = START
        if path.exists():
            header = read_counts(counts, path)
            core_counter(counts).resume()
            position = _position(path, header)
            self._check_files(header["files"], listed)
        timer = _SaveTimer(self._seconds)

        def save(position: FilePosition) -> None:
            if position == (len(files), 0) or timer.is_due():
                with timer:
                    fields = {
                        "files": listed[: position[0] + (position[1] > 0)],
                        "position": position,
                        "normalized": core_counter(counts).normalized,
                    }
                    self._lock.check()
                    save_counts(counts, path, **fields)

        return count_files(core_counter(counts), files, weights, progress, position, save, read)

    def _check_files(self, counted: Sequence[Any], files: Sequence[Mapping[str, Any]]) -> None:
        for number, (before, now) in enumerate(zip(counted, files, strict=False)):
            for name in {**now, **before}:
                old, new = before.get(name), now.get(name)
                if old != new:
                    raise MismatchError(
                        f"{self._directory} is the checkpoint of another run: its file {number} has the "
                        f"{name} {shorten(old)}, not {shorten(new)}; give another directory"
                    )
        if len(counted) > len(files):
            raise MismatchError(
                f"{self._directory} is the checkpoint of another run, of at least {len(counted)} files, "
                f"not {len(files)}; give another directory"
            )

    def merges(self, settings: Mapping[str, Any], max_merges: int) -> list[Pair]:
        """Return the merges that the checkpoint holds for these counts and settings.

        Args:
            settings: The options that merges depend on, in JSON's types.
            max_merges: Largest number of merges to return.

        Raises:
            FormatError: The checkpoint is broken.
        """
        path = self._directory / _MERGES
        if not path.exists():
            return []
        try:
            content = json.loads(_read(path))
            if content["version"] != _VERSION or content["settings"] != self._with_checksum(settings):
                return []
            decoded = [base64.b64decode(part, validate=True) for part in content["merges"]]
        except FormatError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FormatError(
                f"{path} is broken: delete it to learn the merges again from the counts"
            ) from None
        return list(zip(decoded[::2], decoded[1::2], strict=False))[:max_merges]

    def save_merges(self, settings: Mapping[str, Any], merges: Sequence[Pair]) -> None:
        """Save the merges that were learned so far."""
        parts = [base64.b64encode(part).decode() for pair in merges for part in pair]
        content = {"version": _VERSION, "settings": self._with_checksum(settings), "merges": parts}
        self._write(self._directory / _MERGES, json.dumps(content, indent=0).encode())

    def _write(self, path: Path, data: bytes) -> None:
        self._lock.check()
        write_atomically({path: data})

    def _with_checksum(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings with the checksum at the end of the file of counts, which identifies the counts."""
        with (self._directory / _COUNTS).open("rb") as file:
            file.seek(-8, os.SEEK_END)
            return {**settings, "counts": file.read().hex()}

    @property
    def seconds(self) -> float:
        """Seconds of work between two checkpoints."""
        return self._seconds


class _SaveTimer:
    """Decides when to save, so that saving takes a small part of the time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = time.monotonic() + seconds

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        now = time.monotonic()
        self._next = now + max(self._seconds, _MIN_WORK_RATIO * (now - self._began) if self._seconds else 0)


def _read(path: Path) -> bytes:
    from bpe_tokenizer.formats.files import read_bytes

    return read_bytes(path)


def _file_state(file: Input, weight: int, read: ReadOptions, sample: float | str | None) -> dict[str, Any]:
    state = {"path": str(file.location), "size": file.size, "time": file.modified, "weight": weight}
    if read != WHOLE_FILES:
        state["reading"] = repr(read)
    limit = None if sample is None else sample_limit(sample)
    if limit is not None:
        state["sample"] = limit / 2**64
    return state


def _position(path: Path, header: Mapping[str, Any]) -> FilePosition:
    try:
        file, byte = header["position"]
        if isinstance(file, int) and isinstance(byte, int) and isinstance(header["files"], list):
            return file, byte
    except (KeyError, TypeError, ValueError):
        pass
    raise FormatError(f"{path} holds piece counts without a position to resume from: give another directory")
