"""`bpe-tokenizer report`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.atomic import write_atomically
from bpe_tokenizer.cli.options import AsJson, Corpus, Debug, Download, TokenizerPath, option
from bpe_tokenizer.train.progress import ProgressBar
from bpe_tokenizer.view.reports.documents import documents
from bpe_tokenizer.view.reports.report import Report, make_report
from bpe_tokenizer.view.reports.report_html import report_page
from bpe_tokenizer.view.reports.report_tables import report_tables
from bpe_tokenizer.view.reports.tables import Table, name_text, table_text

__all__ = ["Html", "UnderUsed", "report", "write_result"]

Html = Annotated[Path | None, option("FILE", "Write a page with plots to this file.")]
UnderUsed = Annotated[
    int, typer.Option(metavar="N", min=1, help="A token that occurs fewer times than this is under-used.")
]


def report(
    tokenizer: TokenizerPath,
    corpus: Corpus,
    html: Html = None,
    under_used: UnderUsed = 10,
    as_json: AsJson = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Show a tokenizer's statistics on a corpus.

    They are compression, fertility, and the use of the tokens.
    """
    loaded = BPETokenizer.load(tokenizer, download=download)
    with documents(corpus) as files, ProgressBar.shown() as bar:
        bar.start("Reading", sum(each.path.stat().st_size for each in files), "MB", 1e6)
        made = make_report(str(tokenizer), loaded, files, under_used, bar.advance)
    result = as_json and made.to_dict()
    write_result(f"Tokenizer report: {tokenizer}", [made], report_tables([made]), html, result)


def write_result(
    title: str, reports: Sequence[Report], tables: Iterable[Table], page_file: Path | None, result: Any
) -> None:
    """Write reports as a page, print them as JSON, or print them as text if neither is wanted.

    Args:
        title: The heading of the page.
        reports: The data of the page's plots.
        tables: The tables for people.
        page_file: The page to write, or None.
        result: The JSON value to print; False prints no JSON.
    """
    if page_file is not None:
        write_atomically({page_file: report_page(name_text(title), reports, tables)})
    if result is not False:
        print(json.dumps(result))
    elif page_file is not None:
        print(f"report saved in {page_file}")
    else:
        print("\n\n".join(map(table_text, tables)))
