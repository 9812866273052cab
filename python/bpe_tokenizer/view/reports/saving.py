"""Writes tables and plots for papers: CSV, LaTeX, SVG, PNG."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bpe_tokenizer.atomic import make_directory, write_atomically
from bpe_tokenizer.errors import MissingDependencyError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.view.plots import Plot
from bpe_tokenizer.view.reports.tables import Cell, Table, TokenCell, cell_text, is_text_column

__all__ = ["save_result", "table_csv", "table_latex"]

# Pixels of a PNG for each unit of a plot: sharp in print at a column's width.
_ZOOM = 3
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def save_result(
    directory: str | os.PathLike[str], tables: Sequence[Table], figures: Mapping[str, Plot]
) -> None:
    """Write each table as CSV and LaTeX and each plot as SVG and, where a library can, as PNG.

    Args:
        directory: Where to write them; it is made if it does not exist.
        tables: The tables.
        figures: The plots by their titles.

    Raises:
        WriteError: A file cannot be written.
    """
    path = Path(directory)
    make_directory(path)
    files = {}
    for table in tables:
        files[f"{_slug(table.title)}.csv"] = table_csv(table).encode()
        files[f"{_slug(table.title)}.tex"] = table_latex(table).encode()
    for title, plot in figures.items():
        svg = plot.svg(is_wide=True)
        files[f"{_slug(title)}.svg"] = svg.encode()
        try:
            library = import_library("resvg_py", "png")
        except MissingDependencyError:
            continue
        files[f"{_slug(title)}.png"] = bytes(library.svg_to_bytes(svg_string=svg, zoom=_ZOOM))
    write_atomically({path / name: data for name, data in files.items()})


def table_csv(table: Table) -> str:
    r"""Return a table as comma-separated values: numbers without rounding, tokens as a table shows them.

    Args:
        table: The table.

    Example:
        >>> print(table_csv(Table("Sizes", ["file", ("bytes", "gpt2")], [["a, b", 1200], ["c", None]])))
        file,bytes: gpt2
        "a, b",1200
        c,
        <BLANKLINE>
    """
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(_heads(table))
    for row in table.rows:
        writer.writerow([cell_text(cell) if isinstance(cell, TokenCell) else cell for cell in row])
    return written.getvalue()


def table_latex(table: Table) -> str:
    r"""Return a table in LaTeX, for the package `booktabs`, with its note in the caption.

    Args:
        table: The table.

    Example:
        >>> print(table_latex(Table("Sizes", ["file", "bytes"], [["a_b", 1200]])))
        \begin{table}
        \centering
        \caption{Sizes}
        \begin{tabular}{lr}
        \toprule
        file & bytes \\
        \midrule
        a\_b & 1,200 \\
        \bottomrule
        \end{tabular}
        \end{table}
        <BLANKLINE>
    """
    places = "".join("l" if is_text_column(table, k) else "r" for k in range(len(table.columns)))
    caption = f"{table.title}. {table.note}" if table.note else table.title

    def line(cells: Sequence[Cell]) -> Iterator[str]:
        yield " & ".join(_latex(cell_text(cell)) for cell in cells) + r" \\"

    return "\n".join(
        [
            "\\begin{table}\n\\centering",
            f"\\caption{{{_latex(caption)}}}",
            f"\\begin{{tabular}}{{{places}}}\n\\toprule",
            *line(_heads(table)),
            "\\midrule",
            *(text for row in table.rows for text in line(row)),
            "\\bottomrule\n\\end{tabular}\n\\end{table}\n",
        ]
    )


def _heads(table: Table) -> list[str]:
    return [column if isinstance(column, str) else ": ".join(column) for column in table.columns]


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _slug(title: str) -> str:
    return re.sub(r"[^\w.-]+", "-", title.lower()).strip("-")
