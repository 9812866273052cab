"""Tables of statistics as text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from bpe_tokenizer.view.text import printable

__all__ = ["Cell", "Table", "cell_text", "name_text", "table_text", "token_text"]

Cell: TypeAlias = "str | int | float | None"


class Table(NamedTuple):
    """A table of statistics.

    Args:
        title: The heading.
        columns: The name of each column.
        rows: A cell for each column; None for a missing value.
        note: How the values are computed, or what they mean.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


def cell_text(cell: Cell) -> str:
    """Return a cell as text: digits in groups of three, ratios with two decimals.

    Example:
        >>> [cell_text(cell) for cell in (12345, 3.14159, "x", None)]
        ['12,345', '3.14', 'x', '-']
    """
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def token_text(token: bytes) -> str:
    r"""Return a token in quotes, with every character that does not print escaped.

    Example:
        >>> print(token_text(b" a\n"))
        " a\n"
    """
    return f'"{printable(token)}"'


def name_text(name: str) -> str:
    """Return a file name with every character that does not print escaped."""
    return printable(os.fsencode(name))


def table_text(table: Table) -> str:
    """Lay out a table as text: numbers right-aligned, text left-aligned.

    Returns:
        Lines without a trailing line feed.

    Example:
        >>> print(table_text(Table("Sizes", ["file", "bytes"], [["a", 5], ["b.txt", 1200]])))
        Sizes
          file   bytes
          a          5
          b.txt  1,200
    """
    from rich.cells import cell_len

    cells = [list(table.columns), *([cell_text(cell) for cell in row] for row in table.rows)]
    widths = [max(cell_len(row[k]) for row in cells) for k in range(len(table.columns))]
    is_text = [any(isinstance(row[k], str) for row in table.rows) for k in range(len(table.columns))]
    lines = [table.title]
    for row in cells if table.rows else []:
        padded = [
            cell + " " * (width - cell_len(cell)) if left else " " * (width - cell_len(cell)) + cell
            for cell, width, left in zip(row, widths, is_text, strict=True)
        ]
        lines.append("  " + "  ".join(padded).rstrip())
    if table.note:
        lines.append(f"  {table.note}")
    return "\n".join(lines)
