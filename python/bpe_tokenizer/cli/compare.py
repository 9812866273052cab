"""`bpe-tokenizer compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.options import AsJson, Corpus, Debug, Download
from bpe_tokenizer.cli.report import Html, UnderUsed, write_result
from bpe_tokenizer.train.progress import ProgressBar
from bpe_tokenizer.view.reports.disagreements import disagreement_tables, find_disagreements
from bpe_tokenizer.view.reports.documents import documents
from bpe_tokenizer.view.reports.report import make_report
from bpe_tokenizer.view.reports.report_tables import report_tables

__all__ = ["compare"]


def compare(
    tokenizers: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...", help="Two or more saved or published tokenizers.", show_default=False
        ),
    ],
    corpus: Corpus,
    html: Html = None,
    under_used: UnderUsed = 10,
    as_json: AsJson = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Compare tokenizers on a corpus.

    Shows their statistics side by side, and where they cut it differently.
    """
    if len(tokenizers) < 2:
        raise typer.BadParameter("name at least two tokenizers before --corpus")
    loaded = [BPETokenizer.load(each, download=download) for each in tokenizers]
    with documents(corpus) as files, ProgressBar.shown() as bar:
        # The corpus is read once for each tokenizer, and once more line by line.
        size = sum(each.path.stat().st_size for each in files) * (len(loaded) + 1)
        bar.start("Reading", size, "MB", 1e6)
        reports = [
            make_report(str(name), tokenizer, files, under_used, bar.advance)
            for name, tokenizer in zip(tokenizers, loaded, strict=True)
        ]
        found = find_disagreements(loaded, files, bar.advance)
    result = as_json and {
        "tokenizers": [report.to_dict() for report in reports],
        "disagreements": found.to_dict(reports),
    }
    tables = [*report_tables(reports), *disagreement_tables(found, reports)]
    write_result(f"Tokenizers compared: {', '.join(map(str, tokenizers))}", reports, tables, html, result)
