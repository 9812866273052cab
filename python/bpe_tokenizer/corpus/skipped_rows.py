"""The list of the rows that a run skipped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from bpe_tokenizer.atomic import AtomicFile, write_errors
from bpe_tokenizer.readers import BadRow

__all__ = ["SKIPPED", "SkippedRows", "skipped_line"]

SKIPPED = "skipped.jsonl"


class SkippedRows:
    """A file with a line of JSON for each row that a run skipped. It exists if a row was skipped.

    Args:
        path: The file.
        names: The name of each input.
    """

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path = path
        self._names = names

    def keep(self, count: int) -> bool:
        """Keep the first lines, and remove the later ones.

        Args:
            count: The number of lines.

        Returns:
            Whether the file has so many.
        """
        with write_errors(self._path):
            if count == 0:
                self._path.unlink(missing_ok=True)
                return True
            if not self._path.exists():
                return False
            with self._path.open("rb") as lines:
                size = 0
                for _, line in zip(range(count), lines, strict=False):
                    size += len(line)
                    count -= line.endswith(b"\n")
                is_longer = bool(lines.read(1))
        if count == 0 and is_longer:
            self._write(size, ())
        return count == 0

    def add(self, rows: Iterable[BadRow]) -> None:
        """Add rows. The file is replaced as a whole.

        Raises:
            WriteError: It cannot be written.
        """
        added = list(rows)
        if added:
            self._write(None, added)

    def _write(self, size: int | None, rows: Iterable[BadRow]) -> None:
        with AtomicFile(self._path) as file:
            if self._path.exists():
                with write_errors(self._path), self._path.open("rb") as kept:
                    left = kept.seek(0, 2) if size is None else size
                    kept.seek(0)
                    while left > 0 and (chunk := kept.read(min(left, 1 << 20))):
                        file.stream.write(chunk)
                        left -= len(chunk)
            for row in rows:
                file.write(skipped_line(self._names[row.input], row))


def skipped_line(name: str, row: BadRow, start: int | None = None) -> bytes:
    r"""Return the line of a row.

    Args:
        name: The name of the file.
        row: The row.
        start: The byte from which the rows of a part of the file are counted, if it is a part.

    >>> skipped_line("a.jsonl", BadRow(0, 3, "is null"))
    b'{"file": "a.jsonl", "row": 3, "problem": "is null"}\n'
    """
    value: dict[str, object] = {"file": name, "row": row.row, "problem": row.problem}
    if start is not None:
        value["start"] = start
    return (json.dumps(value) + "\n").encode()
