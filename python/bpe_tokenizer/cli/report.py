"""`bpe-tokenizer report`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bpe_tokenizer.cli.run import Debug, TokenizerDirectory, load_tokenizer

if TYPE_CHECKING:
    from bpe_tokenizer.view.reports.report import Report
    from bpe_tokenizer.view.reports.tables import Table

__all__ = ["Corpus", "Html", "UnderUsed", "report", "write"]

Corpus = Annotated[
    list[str],
    typer.Option(
        metavar="FILE...",
        help="Text files in UTF-8; - is standard input. A file is one document.",
        show_default=False,
    ),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a page with plots to this file.", show_default=False),
]
UnderUsed = Annotated[
    int,
    typer.Option(metavar="N", min=1, help="A token that occurs fewer times than this is under-used."),
]


def report(
    tokenizer: TokenizerDirectory,
    corpus: Corpus,
    html: Html = None,
    under_used: UnderUsed = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Show what a tokenizer does with a corpus: compression, fertility, how its tokens are used."""
    from bpe_tokenizer.train.progress import ProgressBar
    from bpe_tokenizer.view.reports.documents import documents
    from bpe_tokenizer.view.reports.report import make_report
    from bpe_tokenizer.view.reports.report_tables import report_tables

    loaded = load_tokenizer(tokenizer)
    with documents(corpus) as files, ProgressBar.shown() as bar:
        bar.start("Reading", sum(each.path.stat().st_size for each in files), "MB", 1e6)
        made = make_report(str(tokenizer), loaded, files, under_used, bar.advance)
    write(f"Tokenizer report: {tokenizer}", [made], report_tables([made]), html, as_json and made.to_dict())


def write(
    title: str, reports: Sequence[Report], tables: Iterable[Table], page_file: Path | None, as_json: Any
) -> None:
    """Give the result: as a page, as JSON, or as text where neither is wanted.

    Args:
        title: The heading of the page.
        reports: What the plots of the page show.
        tables: What is shown to people.
        page_file: Where to write the page.
        as_json: What to print as JSON; False for no JSON.
    """
    if page_file is not None:
        from bpe_tokenizer.atomic import write_atomically
        from bpe_tokenizer.view.reports.report_html import report_page
        from bpe_tokenizer.view.reports.tables import name_text

        write_atomically({page_file: report_page(name_text(title), reports, tables)})
    if as_json is not False:
        print(json.dumps(as_json))
    elif page_file is not None:
        print(f"report saved in {page_file}")
    else:
        from bpe_tokenizer.view.reports.tables import table_text

        print("\n\n".join(map(table_text, tables)))
