"""Tables of statistics as text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from bpe_tokenizer.display.text import printable
from bpe_tokenizer.errors import escaped
from bpe_tokenizer.libraries import import_library

__all__ = [
    "Cell",
    "Column",
    "Share",
    "Table",
    "Times",
    "TokenCell",
    "cell_text",
    "is_text_column",
    "name_text",
    "table_text",
    "token_text",
]

# Characters of a token in a table. A longer one is cut, with its length.
_MAX_TOKEN = 40


class Share(float):
    """A share of 1, shown in percent."""


class Times(float):
    """A multiple, shown with one or two decimals and a multiplication sign."""


class TokenCell(NamedTuple):
    """Tokens in sequence.

    Args:
        tokens: Their bytes.
    """

    tokens: tuple[bytes, ...]


Cell: TypeAlias = "str | int | float | TokenCell | None"
# The name of a column, or the name of a group of columns and of the column in it.
Column: TypeAlias = "str | tuple[str, str]"


class Table(NamedTuple):
    """A table of statistics.

    Args:
        title: The heading.
        columns: The name of each column.
        rows: A cell for each column; None for a missing value.
        note: How the values are computed, or what they mean.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


def cell_text(cell: Cell) -> str:
    """Return a cell as text: digits in groups of three, ratios with two decimals.

    Example:
        >>> [cell_text(cell) for cell in (12345, 3.14159, "x", None, Share(0.25), Times(2))]
        ['12,345', '3.14', 'x', '-', '25.0 %', '2.00×']
        >>> print(cell_text(TokenCell((b"a", b" b"))))
        "a" " b"
    """
    if cell is None:
        return "-"
    if isinstance(cell, TokenCell):
        return " ".join(map(token_text, cell.tokens))
    if isinstance(cell, Share):
        return f"{100 * cell:.1f} %"
    if isinstance(cell, Times):
        return f"{cell:,.2f}×" if cell < 10 else f"{cell:,.1f}×"
    if isinstance(cell, float):
        return f"{cell:,.2f}"
    return f"{cell:,}" if isinstance(cell, int) else escaped(cell)


def is_text_column(table: Table, column: int) -> bool:
    """Whether a column has text; the others have numbers."""
    return any(isinstance(row[column], str | TokenCell) for row in table.rows)


def token_text(token: bytes) -> str:
    r"""Return a token in quotes, with every character that does not print escaped; a long one is cut.

    Example:
        >>> print(token_text(b" a\n"))
        " a\n"
        >>> print(token_text(b"=" * 64))
        "========================================" ... 64 bytes
    """
    text = printable(token)
    return f'"{text}"' if len(text) <= _MAX_TOKEN else f'"{text[:_MAX_TOKEN]}" ... {len(token)} bytes'


def name_text(name: str) -> str:
    """Return a file name with every character that does not print escaped."""
    return printable(os.fsencode(name))


def table_text(table: Table) -> str:
    """Lay out a table as text: numbers right-aligned, text left-aligned.

    Returns:
        Lines without a trailing line feed.

    Raises:
        MissingDependencyError: rich is not installed.

    Example:
        >>> print(table_text(Table("Sizes", ["file", "bytes"], [["a", 5], ["b.txt", 1200]])))
        Sizes
          file   bytes
          a          5
          b.txt  1,200
    """
    import_library("rich", "cli")
    from rich.cells import cell_len

    heads = [column if isinstance(column, str) else column[1] for column in table.columns]
    names = ["" if isinstance(column, str) else column[0] for column in table.columns]
    cells = [heads, *([cell_text(cell) for cell in row] for row in table.rows)]
    widths = [max(cell_len(row[k]) for row in cells) for k in range(len(heads))]
    is_text = [is_text_column(table, k) for k in range(len(heads))]
    groups = []
    for name, members in groupby(range(len(heads)), key=names.__getitem__):
        columns = list(members)
        room = sum(widths[k] for k in columns) + 2 * (len(columns) - 1)
        # The first column of a group is as wide as the name of the group needs.
        widths[columns[0]] += max(cell_len(name) - room, 0)
        groups.append(name + " " * (room - cell_len(name)))
    lines = [table.title]
    if table.rows and any(names):
        lines.append("  " + "  ".join(groups).rstrip())
    for row in cells if table.rows else []:
        padded = [
            cell + " " * (width - cell_len(cell)) if left else " " * (width - cell_len(cell)) + cell
            for cell, width, left in zip(row, widths, is_text, strict=True)
        ]
        lines.append("  " + "  ".join(padded).rstrip())
    if table.note:
        lines.append(f"  {table.note}")
    return "\n".join(lines)
