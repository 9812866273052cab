"""`bpe-tokenizer report`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

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
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.train.progress import ProgressBar
from bpe_tokenizer.view.reports.documents import documents as open_documents
from bpe_tokenizer.view.reports.languages import find_reference
from bpe_tokenizer.view.reports.report import make_report
from bpe_tokenizer.view.reports.report_html import report_page
from bpe_tokenizer.view.reports.report_tables import report_tables
from bpe_tokenizer.view.reports.tables import Table, table_text

__all__ = ["Html", "Reference", "UnderUsed", "report", "write_result"]

Html = Annotated[Path | None, option("FILE", "Write a page with plots to this file.")]
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
    read = ReadOptions(**options)
    skipped = SkippedRows()
    with open_documents(corpus, read) as files, ProgressBar.shown(not quiet) as bar:
        find_reference([each.name for each in files], reference)  # A wrong name fails before the work.
        bar.start("Reading", sum(each.size for each in files), "MB", 1e6)
        made = make_report(str(tokenizer), loaded, files, under_used, bar.advance, reference, skipped)
    if skipped.count:
        print(skipped.summary(), file=sys.stderr)
    facts = made.facts
    page = report_page(made) if html is not None else b""
    write_result(page, html, facts if as_json else None, facts["summary"], report_tables([made]))


def write_result(
    page: bytes, page_file: Path | None, result: Any, summary: Sequence[str], tables: Iterable[Table]
) -> None:
    """Write a page, print JSON, or print text if neither is wanted.

    Args:
        page: The page in UTF-8.
        page_file: The file to write it to, or None.
        result: The JSON value to print; None prints no JSON.
        summary: Sentences above the tables.
        tables: The tables for people.
    """
    if page_file is not None:
        write_atomically({page_file: page})
    if result is not None:
        print(json.dumps(result))
    elif page_file is not None:
        print(f"report saved in {page_file}")
    else:
        print("\n\n".join(["\n".join(summary), *map(table_text, tables)]))
