"""`bpe-tokenizer compare`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import bpe_tokenizer
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
from bpe_tokenizer.cli.report import Html, Reference, Save, ShowAll, UnderUsed, write_result
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.view.reports.report_html import comparison_page

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
    """Compare tokenizers on a corpus.

    Shows their statistics side by side, and where they cut it differently.
    """
    if len(tokenizers) < 2:
        raise typer.BadParameter("name at least two tokenizers before --corpus")
    if html is not None:
        check_writable(html)
    loaded = [(each, BPETokenizer.load(each, download=download)) for each in tokenizers]
    made = bpe_tokenizer.compare(
        loaded, corpus, under_used=under_used, reference=reference, verbose=not quiet, **options
    )
    write_result(made, lambda: comparison_page(made), html, save, as_json, show_all)
