"""`bpe-tokenizer compare`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.atomic import check_writable
from bpe_tokenizer.cli.options import (
    AsJson,
    Corpus,
    Debug,
    Download,
    Quiet,
    options_of,
    tokenizer_names,
)
from bpe_tokenizer.cli.report import Html, Reference, UnderUsed, write_result
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.train.progress import ProgressBar
from bpe_tokenizer.view.reports.comparison import compare_tokenizers
from bpe_tokenizer.view.reports.documents import documents as open_documents
from bpe_tokenizer.view.reports.languages import find_reference
from bpe_tokenizer.view.reports.report_html import comparison_page
from bpe_tokenizer.view.reports.report_tables import comparison_tables

__all__ = ["compare"]


@options_of(ReadOptions)
def compare(
    tokenizers: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...",
            help="Two or more saved or published tokenizers.",
            show_default=False,
            autocompletion=tokenizer_names,
        ),
    ],
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
    """Compare tokenizers on a corpus.

    Shows their statistics side by side, and where they cut it differently.
    """
    if len(tokenizers) < 2:
        raise typer.BadParameter("name at least two tokenizers before --corpus")
    if html is not None:
        check_writable(html)
    loaded = [(str(each), BPETokenizer.load(each, download=download)) for each in tokenizers]
    read = ReadOptions(**options)
    skipped = SkippedRows()
    with open_documents(corpus, read) as files, ProgressBar.shown(not quiet) as bar:
        find_reference([each.name for each in files], reference)  # A wrong name fails before the work.
        # The corpus is read once for each tokenizer, and once more line by line.
        size = sum(each.size for each in files) * (len(loaded) + 1)
        bar.start("Reading", size, "MB", 1e6)
        made = compare_tokenizers(loaded, files, under_used, bar.advance, reference, skipped)
    write_result(made.facts, comparison_tables(made), lambda: comparison_page(made), html, as_json, skipped)
