"""Reports as self-contained HTML without scripts: a page, or a part of a notebook."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.console import count_noun
from bpe_tokenizer.display.chips import STYLE as CHIPS_STYLE
from bpe_tokenizer.display.chips import chip, direction
from bpe_tokenizer.view.plots import STYLE as PLOT_STYLE
from bpe_tokenizer.view.plots import Plot
from bpe_tokenizer.view.reports import report_tables
from bpe_tokenizer.view.reports.summary import join_words
from bpe_tokenizer.view.reports.tables import (
    Cell,
    Column,
    Table,
    TokenCell,
    cell_text,
    is_text_column,
    name_text,
)

if TYPE_CHECKING:
    from bpe_tokenizer.view.reports.comparison import Comparison
    from bpe_tokenizer.view.reports.examples import Example
    from bpe_tokenizer.view.reports.report import Report

__all__ = ["comparison_fragment", "comparison_page", "report_fragment", "report_page"]

Facts = Mapping[str, Any]

_FILES = resources.files(__package__)
_STYLE = CHIPS_STYLE + PLOT_STYLE + _FILES.joinpath("reports.css").read_text(encoding="utf-8")
_PAGE_STYLE = _FILES.joinpath("page.css").read_text(encoding="utf-8")
# Rows of a table in a notebook, which keeps its outputs.
_NOTEBOOK_ROWS = 40


def report_page(report: Report) -> bytes:
    """Return the report of a tokenizer as an HTML page.

    Args:
        report: The report.

    Returns:
        The page in UTF-8, with all text, tokens and names escaped.
    """
    return _page(f"{report.label}: tokenizer report", _report(report))


def comparison_page(comparison: Comparison) -> bytes:
    """Return a comparison of tokenizers as an HTML page.

    Args:
        comparison: The comparison.

    Returns:
        As `report_page`.
    """
    return _page(f"{join_words(comparison.labels)} compared", _comparison(comparison))


def report_fragment(report: Report) -> str:
    """Return the main part of a report for a notebook, with its style, which applies to nothing else.

    Args:
        report: The report.
    """
    return _fragment(_report(report, is_short=True))


def comparison_fragment(comparison: Comparison) -> str:
    """Return the main part of a comparison for a notebook, with its style, which applies to nothing else.

    Args:
        comparison: The comparison.
    """
    return _fragment(_comparison(comparison, is_short=True))


def _page(title: str, parts: Iterable[str]) -> bytes:
    style = _STYLE + _PAGE_STYLE
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    text = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f'<main>\n<div class="bpe-report">\n{"".join(parts)}</div>\n</main>\n</body>\n</html>\n'
    )
    return text.encode("utf-8", errors="xmlcharrefreplace")


def _fragment(parts: Iterable[str]) -> str:
    return f'<style>{_STYLE}</style><div class="bpe-report">{"".join(parts)}</div>'


# The two kinds of pages


def _report(report: Report, is_short: bool = False) -> Iterator[str]:
    facts = report.facts
    tables = {table.title: table for table in report_tables.report_tables([report])}
    yield _head(report.label, "A tokenizer", facts["summary"], [facts])
    yield _tiles(facts)
    plots = report.figures()
    yield from _languages([facts], plots, tables, is_short)
    yield _grid(_distributions(plots, tables))
    if is_short:
        return
    yield _grid(
        _section(tables[title], is_open=True)
        for title in ("Longest tokens", "Unreachable tokens", "Unused tokens", "Under-used tokens")
    )
    yield from (_section(tables[title], is_open=True) for title in ("Scripts", "Files"))
    yield _section(tables["Overview"], is_open=True)


def _comparison(comparison: Comparison, is_short: bool = False) -> Iterator[str]:
    facts, names = comparison.facts, comparison.labels
    each = facts["tokenizers"]
    tables = {table.title: table for table in report_tables.report_tables(comparison.reports)}
    yield _head(f"{join_words(names)} compared", "Tokenizers", facts["summary"], each)
    shared = "".join(_table_part(table) for table in report_tables.overlap_tables(comparison))
    plots = comparison.figures()
    left = f"{_totals(plots)}<section><h2>What the vocabularies share</h2>{shared}</section>"
    yield _grid([f"<div>{left}</div>", _section(tables["Overview"], is_open=True)])
    yield from _languages(each, plots, tables, is_short)
    yield _examples(comparison)
    yield _grid(_distributions(plots, tables))
    if is_short:
        return
    yield from (_section(tables[title], is_open=True) for title in ("Scripts", "Files"))
    yield _section(report_tables.difference_table(comparison), is_open=True)
    cuts = [_table_part(table) for table in report_tables.cut_tables(comparison)]
    yield (f'<section class="bpe-breaks"><h2>Tokens that another tokenizer cuts</h2>{_grid(cuts)}</section>')
    for report, name in zip(comparison.reports, names, strict=True):
        listed = report_tables.token_tables(report, report.facts, "")
        yield (
            f'<section class="bpe-breaks"><h2>Tokens of {escape(name)}</h2>'
            f"<details><summary>The longest, unreachable, unused and under-used tokens</summary>"
            f"{_grid(_table_part(table) for table in listed)}</details></section>"
        )


def _head(title: str, subject: str, summary: Sequence[str], facts: Sequence[Facts]) -> str:
    corpus = facts[0]["corpus"]
    paths = [name_text(fact["tokenizer"]) for fact in facts if fact["tokenizer"] != fact["name"]]
    loaded = f" Loaded from {join_words(paths)}." if paths else ""
    sizes = ", ".join(
        count_noun(corpus[key], noun)
        for key, noun in (("documents", "file"), ("bytes", "byte"), ("characters", "character"))
    )
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in summary)
    return (
        f"<h1>{escape(title)}</h1>\n"
        f'<p class="bpe-corpus">{subject} on a corpus of {sizes}.{escape(loaded)}</p>\n'
        f'<ul class="bpe-summary">{items}</ul>\n'
    )


def _tiles(facts: Facts) -> str:
    corpus = facts["corpus"]
    values = [
        ("bytes per token", corpus["bytes_per_token"]),
        ("characters per token", corpus["characters_per_token"]),
        ("tokens per word (fertility)", corpus["fertility"]),
        ("tokens", corpus["tokens"]),
        ("vocabulary", facts["vocab_size"]),
    ]
    tiles = "".join(
        f"<div><dt>{name}</dt><dd>{escape(cell_text(value))}</dd></div>" for name, value in values if value
    )
    return f'<dl class="bpe-tiles">{tiles}</dl>\n' if tiles else ""


def _totals(plots: Mapping[str, Plot]) -> str:
    title = "Tokens of this corpus"
    return f"<section><h2>{title}</h2>{plots[title].html()}</section>"


def _languages(
    facts: Sequence[Facts], plots: Mapping[str, Plot], tables: Mapping[str, Table], is_short: bool
) -> Iterator[str]:
    table = tables.get("Cost of languages")
    if table is None:
        return
    first = facts[0]["languages"]
    shown = table._replace(rows=table.rows[:_NOTEBOOK_ROWS]) if is_short else table
    noun = "scripts" if first["by"] == "scripts" else "languages"
    yield (
        f'<section class="bpe-breaks"><h2>What {noun} cost against {escape(first["reference"])}</h2>'
        f'<div class="bpe-grid2">{plots[table.title].html()}<div>{_table(shown._replace(note=""))}'
        f'<p class="bpe-note">{escape(table.note)}</p></div></div></section>\n'
    )


def _distributions(plots: Mapping[str, Plot], tables: Mapping[str, Table]) -> Iterator[str]:
    """Yield the sections with plots. The table of a plot can be unfolded below it."""

    def plot(title: str) -> str:
        return plots[title].html() if title in plots else ""

    for title in ("Compression by vocabulary size", "Rank and frequency"):
        yield _section(tables[title], plot(title))
    in_corpus, in_vocabulary = "Token lengths in the corpus", "Token lengths in the vocabulary"
    if in_corpus in plots:
        yield _section(tables["Token lengths"]._replace(title=in_corpus), plot(in_corpus))
    if in_vocabulary in plots:
        yield f"<section><h2>{in_vocabulary}</h2>{plot(in_vocabulary)}</section>"
    yield _section(tables["Coverage"], is_open=True)


# Texts that tokenizers cut differently


def _examples(comparison: Comparison) -> str:
    found = comparison.disagreements.examples
    if not found:
        return ""
    files = report_tables.labels_by_file(comparison)
    parts = "".join(_example(each, files[each.file], comparison.labels) for each in found)
    return (
        '<section class="bpe-breaks"><h2>Where the tokenizers disagree most</h2>'
        '<p class="bpe-note">Lines, or parts of long lines, with the largest ratio between the numbers of '
        "tokens; a few of each script. Underlined on orange: a token that another tokenizer does not have at "
        "this place. Hexadecimal digits are bytes of a character that is split.</p>\n"
        f"{parts}</section>\n"
    )


def _example(example: Example, file: str, names: Sequence[str]) -> str:
    data = example.text.encode()
    rows = []
    for name, tokens in zip(names, example.tokens, strict=True):
        chips = "".join(
            chip(
                data[start:end],
                "bpe-differs" if differs else "bpe-same",
                f'title="id {token_id}"',
            )
            for token_id, (start, end), differs in zip(tokens.ids, tokens.spans, tokens.differs, strict=True)
        )
        count = count_noun(len(tokens.ids), "token").partition(" ")
        rows.append(
            f'<div class="bpe-cut"><div>{escape(name)}<br><b>{count[0]}</b> {count[2]}</div>'
            f'<div class="bpe-chips" dir="{direction(example.text)}">{chips}</div></div>'
        )
    part = "a part of line" if example.is_part else "line"
    place = f"{file}, {part} {example.line:,}"
    return f'<div class="bpe-example"><p>{escape(place)}</p>{"".join(rows)}</div>\n'


# Sections and tables


def _grid(parts: Iterable[str]) -> str:
    return f'<div class="bpe-grid2">{"".join(parts)}</div>\n'


def _section(table: Table, plot: str = "", is_open: bool = False) -> str:
    body = f"{plot}{_note(table)}" if plot else _note(table)
    if table.rows and (is_open or not plot):
        body = f"{plot}{_table(table)}"
    elif table.rows:
        figures = _table(table._replace(note=""))
        body += f'<details class="bpe-figures"><summary>The figures</summary>{figures}</details>'
    return f'<section class="bpe-breaks"><h2>{escape(table.title)}</h2>{body}</section>\n'


def _table_part(table: Table) -> str:
    return f"<div><h3>{escape(table.title)}</h3>{_table(table)}</div>"


def _note(table: Table) -> str:
    return f'<p class="bpe-note">{escape(table.note)}</p>' if table.note else ""


def _table(table: Table) -> str:
    if not table.rows:
        return _note(table)
    starts = _group_starts(table.columns)
    many = " bpe-many" * (len(table.columns) > 10)
    rows = "".join(f"<tr>{_cells(table, row, starts)}</tr>\n" for row in table.rows)
    return (
        f'<div class="bpe-scroll bpe-sticky" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f'<table class="bpe-table{many}">\n<thead>{_header(table, starts)}</thead>\n'
        f"<tbody>\n{rows}</tbody>\n"
        f"</table></div>{_note(table)}\n"
    )


def _header(table: Table, starts: set[int]) -> str:
    """Return one row of headings, or two if columns are grouped."""
    kinds = ["bpe-text" if is_text_column(table, k) else "" for k in range(len(table.columns))]

    def head(k: int, text: str, span: str = "", group: str = "") -> str:
        kind = " ".join(filter(None, (group or kinds[k], "bpe-starts" * (k in starts))))
        return f'<th scope="col"{span}{kind and f" class={chr(34)}{kind}{chr(34)}"}>{escape(text)}</th>'

    if all(isinstance(column, str) for column in table.columns):
        return f"<tr>{''.join(head(k, str(column)) for k, column in enumerate(table.columns))}</tr>"
    above, below = [], []
    for group, members in groupby(enumerate(table.columns), key=lambda item: _group(item[1])):
        columns = list(members)
        if group is None:
            above += [head(k, str(column), ' rowspan="2"') for k, column in columns]
            continue
        span = f' colspan="{len(columns)}"'
        above.append(head(columns[0][0], group, span, "bpe-group").replace('scope="col"', 'scope="colgroup"'))
        below += [head(k, column[1]) for k, column in columns]
    return f"<tr>{''.join(above)}</tr>\n<tr>{''.join(below)}</tr>"


def _group(column: Column) -> str | None:
    return None if isinstance(column, str) else column[0]


def _group_starts(columns: Sequence[Column]) -> set[int]:
    """Return the first column of each group, which has a line on its left."""
    groups = [_group(column) for column in columns]
    return {k for k in range(1, len(groups)) if groups[k] is not None and groups[k] != groups[k - 1]}


def _cells(table: Table, row: Sequence[Cell], starts: set[int]) -> str:
    return "".join(_cell(table, k, cell, k in starts) for k, cell in enumerate(row))


def _cell(table: Table, column: int, cell: Cell, starts: bool) -> str:
    kinds = ["bpe-text"] * is_text_column(table, column) + ["bpe-starts"] * starts
    if isinstance(cell, TokenCell):
        body = "".join(chip(token, "bpe-same") for token in cell.tokens)
        kinds.append("bpe-long" * (sum(map(len, cell.tokens)) > 20))
    else:
        body = escape(cell_text(cell))
        kinds.append("bpe-long" * (isinstance(cell, str) and len(cell) > 24))
    kind = " ".join(filter(None, kinds))
    tag = 'th scope="row"' if column == 0 and isinstance(cell, str) else "td"
    return f"<{tag}{kind and f' class={chr(34)}{kind}{chr(34)}'}>{body}</{tag[:2]}>"
