"""Places in a corpus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from bpe_tokenizer.errors import escaped

__all__ = ["BadRow", "Position", "SkippedRows"]


class Position(NamedTuple):
    """A position in the inputs.

    Args:
        input: Index of the input, from 0.
        row: The last row that was read, from 1; 0 before the first.
        skipped: Number of bad rows skipped so far.
    """

    input: int = 0
    row: int = 0
    skipped: int = 0


class BadRow(NamedTuple):
    """A row that was skipped.

    Args:
        input: Index of the input, from 0.
        row: The number of the row, from 1.
        problem: What is wrong with it, as in `"is not UTF-8: byte 0xff at its offset 3"`.
    """

    input: int
    row: int
    problem: str


@dataclass
class SkippedRows:
    """The rows of a corpus that were skipped.

    Args:
        count: Their number.
        first: The first of them, each with the name of its file.
        most: The number of rows in `first`, at most.
    """

    count: int = 0
    first: list[tuple[str, BadRow]] = field(default_factory=list)
    most: int = 1000

    def add(self, name: str, rows: Iterable[BadRow]) -> None:
        """Add rows of a file that were skipped."""
        for row in rows:
            self.count += 1
            if len(self.first) < self.most:
                self.first.append((name, row))

    def merge(self, others: SkippedRows) -> None:
        """Add other rows."""
        self.count += others.count
        self.first += others.first[: self.most - len(self.first)]

    def summary(self) -> str:
        """Return a sentence about them.

        >>> skipped = SkippedRows()
        >>> skipped.add("a.parquet", [BadRow(0, 7, "is null")])
        >>> skipped.summary()
        'Skipped 1 bad row, the first: a.parquet, row 7 is null'
        """
        name, row = self.first[0]
        rows = f"{self.count:,} bad row{'' if self.count == 1 else 's'}"
        return f"Skipped {rows}, the first: {escaped(name, 100)}, row {row.row:,} {escaped(row.problem)}"
