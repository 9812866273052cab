"""`bpe-tokenizer report`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
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
    write_result(made.facts, report_tables([made]), lambda: report_page(made), html, as_json, skipped)


def write_result(
    facts: Mapping[str, Any],
    tables: Iterable[Table],
    page: Callable[[], bytes],
    html: Path | None,
    as_json: bool,
    skipped: SkippedRows,
) -> None:
    """Write a page, print JSON, or print text if neither is wanted.

    Args:
        facts: The result as JSON values.
        tables: The tables for people.
        page: Returns the page in UTF-8.
        html: The file to write it to, or None.
        as_json: Whether to print JSON.
        skipped: The rows that were skipped.
    """
    if skipped.count:
        print(skipped.summary(), file=sys.stderr)
    if html is not None:
        write_atomically({html: page()})
    if as_json:
        print(json.dumps(facts))
    elif html is not None:
        print(f"report saved in {html}")
    else:
        print("\n\n".join(["\n".join(facts["summary"]), *map(table_text, tables)]))
