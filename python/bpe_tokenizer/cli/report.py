"""`bpe-tokenizer report`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import bpe_tokenizer
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.atomic import check_writable, write_atomically
from bpe_tokenizer.cli.options import (
    AsJson,
    Corpus,
    Debug,
    Download,
    Quiet,
    TokenizerPath,
    option,
    options_of,
)
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.view.reports.comparison import Comparison
from bpe_tokenizer.view.reports.report import Report
from bpe_tokenizer.view.reports.report_html import report_page
from bpe_tokenizer.view.reports.tables import table_text

__all__ = ["Html", "Reference", "Save", "ShowAll", "UnderUsed", "report", "write_result"]

Html = Annotated[Path | None, option("FILE", "Write a page with plots to this file.")]
Save = Annotated[
    Path | None,
    option("DIR", "Write each table as CSV and LaTeX, and each plot as SVG and PNG, to this directory."),
]
ShowAll = Annotated[bool, typer.Option("--all", help="Print all tables, not only the overview.")]
UnderUsed = Annotated[
    int, typer.Option(metavar="N", min=1, help="A token that occurs fewer times than this is under-used.")
]
Reference = Annotated[
    str | None,
    option("FILE", "File of the corpus with whose cost the others are compared.", "the one in English"),
]


@options_of(ReadOptions)
def report(
    tokenizer: TokenizerPath,
    corpus: Corpus,
    html: Html = None,
    save: Save = None,
    show_all: ShowAll = False,
    under_used: UnderUsed = 10,
    reference: Reference = None,
    *,
    as_json: AsJson = False,
    quiet: Quiet = False,
    download: Download = False,
    debug: Debug = False,
    **options: Any,
) -> None:
    """Show a tokenizer's statistics on a corpus.

    They are compression, the cost of languages, fertility, and the use of the tokens.
    """
    if html is not None:
        check_writable(html)
    loaded = BPETokenizer.load(tokenizer, download=download)
    made = bpe_tokenizer.report(
        loaded,
        corpus,
        name=tokenizer,
        under_used=under_used,
        reference=reference,
        verbose=not quiet,
        **options,
    )
    write_result(made, lambda: report_page(made), html, save, as_json, show_all)


def write_result(
    made: Report | Comparison,
    page: Callable[[], bytes],
    html: Path | None,
    save: Path | None,
    as_json: bool,
    show_all: bool,
) -> None:
    """Write a page and files, print JSON, or print text if none is wanted.

    Args:
        made: The result.
        page: Returns the page in UTF-8.
        html: The file to write it to, or None.
        save: The directory of tables and plots, or None.
        as_json: Whether to print JSON.
        show_all: Whether to print all tables, and not only the first.
    """
    if html is not None:
        write_atomically({html: page()})
    if save is not None:
        made.save(save)
    if as_json:
        print(json.dumps(made.facts))
        return
    for path in filter(None, (html, save)):
        print(f"report saved in {path}")
    if html is None and save is None:
        tables = made.tables() if show_all else made.tables()[:1]
        print("\n\n".join(["\n".join(made.facts["summary"]), *map(table_text, tables)]))
        if not show_all and sys.stdout.isatty():
            print("\n--all shows all tables, --html FILE writes a page, --save DIR writes tables and plots")
