"""A directory from which a training run goes on that was stopped at any moment."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import unfinished, write_atomically
from bpe_tokenizer.errors import FormatError, MismatchError
from bpe_tokenizer.train.corpus import START, Position, count_files
from bpe_tokenizer.train.piece_counts import PieceCounts, counter_of, loaded_counts, saved_counts
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["Checkpoint"]

_COUNTS, _MERGES = "pieces.counts", "merges.json"
_VERSION = 1
# Saving takes at most one in so many seconds.
_SHARE = 20

Pair = tuple[bytes, bytes]


class Checkpoint:
    """The counts and the merges that a run had come to, in two files that are replaced as a whole.

    `pieces.counts` is a file of `PieceCounts` whose header also says which files were counted, with their
    sizes, times and weights, and how far; `merges.json` holds the merges so far. A kill leaves each of them
    as it was or as it was to become. What a run adds to them depends on the corpus and the options alone, so
    the run that goes on ends with what the other would have ended with.

    Args:
        directory: Where they are; made if it is not there.
        seconds: Work between two times of saving.
    """

    def __init__(self, directory: Path, seconds: float) -> None:
        self._directory = directory
        self._seconds = seconds
        directory.mkdir(parents=True, exist_ok=True)
        for name in (_COUNTS, _MERGES):
            for left in unfinished(directory / name):
                left.unlink()

    def count(
        self, counts: PieceCounts, files: Sequence[Path], weights: Sequence[int], progress: ProgressBar
    ) -> PieceCounts:
        """Count files, from where the last run stopped.

        Args:
            counts: Counts of nothing yet, with the settings of this run.
            files: The files. Those that were counted must be the first of them, unchanged; there may be more.
            weights: A weight for each.
            progress: Gets to know how far it is.

        Raises:
            CorpusError: A file cannot be read, or is not UTF-8.
            FormatError: The checkpoint is broken.
            MismatchError: It is of other files or of other settings; says which.
        """
        path = self._directory / _COUNTS
        listed = [_described(file, weight) for file, weight in zip(files, weights, strict=True)]
        position = START
        if path.exists():
            saved, header = loaded_counts(counts, path.read_bytes(), str(path))
            counts, position = saved, _position(path, header)
            self._check_files(header["files"], listed)
        saver = _Saver(self._seconds)

        def reached(position: Position) -> None:
            if position == (len(files), 0) or saver.is_due():
                with saver:
                    counted = listed[: position[0] + (position[1] > 0)]
                    write_atomically({path: saved_counts(counts, files=counted, position=position)})

        count_files(counter_of(counts), files, weights, progress, position, reached)
        return counts

    def _check_files(self, counted: Sequence[Any], files: Sequence[Mapping[str, Any]]) -> None:
        for number, (before, now) in enumerate(zip(counted, files, strict=False)):
            for name, value in now.items():
                if before.get(name) != value:
                    raise MismatchError(
                        f"{self._directory} is the checkpoint of another run: its file {number} has the "
                        f"{name} {before.get(name)!r}, not {value!r}; give another directory"
                    )
        if len(counted) > len(files):
            raise MismatchError(
                f"{self._directory} is the checkpoint of another run, of at least {len(counted)} files, "
                f"not {len(files)}; give another directory"
            )

    def merges(self, settings: Mapping[str, Any], most: int) -> list[Pair]:
        """Return the merges that the last run had learned from these counts; none if there are none.

        Args:
            settings: What decides about merges, besides the counts, in JSON's types.
            most: How many are wanted.

        Raises:
            FormatError: The checkpoint is broken.
        """
        path = self._directory / _MERGES
        if not path.exists():
            return []
        try:
            content = json.loads(path.read_bytes())
            if content["version"] != _VERSION or content["settings"] != self._of_counts(settings):
                return []
            decoded = [base64.b64decode(part, validate=True) for part in content["merges"]]
        except (ValueError, KeyError, TypeError):
            raise FormatError(
                f"{path} is broken: delete it, and the merges are learned again from the counts"
            ) from None
        return list(zip(decoded[::2], decoded[1::2], strict=False))[:most]

    def save_merges(self, settings: Mapping[str, Any], merges: Sequence[Pair]) -> None:
        """Keep the merges that were learned so far."""
        parts = [base64.b64encode(part).decode() for pair in merges for part in pair]
        content = {"version": _VERSION, "settings": self._of_counts(settings), "merges": parts}
        write_atomically({self._directory / _MERGES: json.dumps(content, indent=0).encode()})

    def _of_counts(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings with what tells the counts from others: the checksum that their file ends with."""
        with (self._directory / _COUNTS).open("rb") as file:
            file.seek(-8, os.SEEK_END)
            return {**settings, "counts": file.read().hex()}

    @property
    def seconds(self) -> float:
        """Work between two times of saving."""
        return self._seconds


class _Saver:
    """Tells when to save, so that it takes a small part of the time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = time.monotonic() + seconds

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        now = time.monotonic()
        self._next = now + max(self._seconds, _SHARE * (now - self._began) if self._seconds else 0)


def _described(file: Path, weight: int) -> dict[str, Any]:
    status = file.stat()
    return {"path": str(file), "size": status.st_size, "time": status.st_mtime_ns, "weight": weight}


def _position(path: Path, header: Mapping[str, Any]) -> Position:
    try:
        file, byte = header["position"]
        if isinstance(file, int) and isinstance(byte, int) and isinstance(header["files"], list):
            return file, byte
    except (KeyError, TypeError, ValueError):
        pass
    raise FormatError(f"{path} holds piece counts, but no place to go on from: give another directory")
