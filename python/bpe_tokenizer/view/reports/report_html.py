"""Reports as a self-contained HTML page without scripts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.view.plots import Axis, Series, bar_plot, line_plot
from bpe_tokenizer.view.reports.report_tables import labels
from bpe_tokenizer.view.reports.tables import Cell, Table, cell_text

if TYPE_CHECKING:
    from bpe_tokenizer.view.reports.report import Report

__all__ = ["report_page"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .75rem; text-align: right; border-bottom: 1px solid rgba(128, 128, 128, .35);
  white-space: pre-wrap; overflow-wrap: anywhere; vertical-align: top; }
th { white-space: normal; }
.text { text-align: left; }
svg { max-width: 100%; }
svg text { font-size: 12px; fill: currentColor; }
.grid { stroke: currentColor; stroke-opacity: .2; fill: none; }
.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0 1.5rem; }
.legend svg { vertical-align: middle; }
"""


def report_page(title: str, reports: Sequence[Report], tables: Iterable[Table]) -> bytes:
    """Return an HTML page with tables and plots. A plot precedes its table.

    Args:
        title: The heading.
        reports: The data of the plots.
        tables: The tables, in order.

    Returns:
        The page in UTF-8, with all text, tokens and names escaped.
    """
    plots = dict(_plots(reports))
    parts = [_section(table, plots.get(table.title, "")) for table in tables]
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{html.escape(title)}</h1>\n{''.join(parts)}</main>\n</body>\n</html>\n"
    )
    return text.encode("utf-8", errors="xmlcharrefreplace")


def _section(table: Table, plot: str) -> str:
    parts = [f"<section>\n<h2>{html.escape(table.title)}</h2>\n"]
    if plot:
        parts.append(f"<figure>{plot}</figure>\n")
    if table.rows:
        parts.append(f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(table.title)}">')
        head = "".join(
            f'<th scope="col"{_align(table, k)}>{html.escape(c)}</th>' for k, c in enumerate(table.columns)
        )
        rows = "".join(f"<tr>{_cells(table, row)}</tr>\n" for row in table.rows)
        parts.append(f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n")
    if table.note:
        parts.append(f"<p>{html.escape(table.note)}</p>\n")
    return "".join([*parts, "</section>\n"])


def _cells(table: Table, row: Sequence[Cell]) -> str:
    return "".join(f"<td{_align(table, k)}>{html.escape(cell_text(cell))}</td>" for k, cell in enumerate(row))


def _align(table: Table, column: int) -> str:
    return ' class="text"' if any(isinstance(row[column], str) for row in table.rows) else ""


def _plots(reports: Sequence[Report]) -> Iterator[tuple[str, str]]:
    """Yield pairs of a table's title and its plot."""
    facts = [(name, report.to_dict()) for name, report in zip(labels(reports), reports, strict=True)]

    def series(key: str, x: str, y: str) -> list[Series]:
        return [Series(name, [_point(each, x, y) for each in fact[key]]) for name, fact in facts]

    lengths = series("token_lengths", "bytes", "corpus")
    if any(each.points for each in lengths):
        yield (
            "Token lengths",
            bar_plot("Tokens of the corpus by length", Axis("bytes"), Axis("tokens of the corpus"), lengths),
        )
    ranks = series("rank_frequency", "rank", "count")
    if any(each.points for each in ranks):
        axes = Axis("rank", logarithmic=True), Axis("count", logarithmic=True)
        yield "Rank and frequency", line_plot("Count of tokens by rank", *axes, ranks)
    curves = series("compression", "vocab_size", "bytes_per_token")
    if any(each.points for each in curves):
        axes = Axis("vocabulary size", logarithmic=True), Axis("bytes per token")
        yield "Compression by vocabulary size", line_plot("Bytes per token by vocabulary size", *axes, curves)


def _point(entry: dict[str, Any], x: str, y: str) -> tuple[float, float]:
    return entry[x], entry[y]
