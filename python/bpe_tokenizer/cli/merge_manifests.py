"""`bpe-tokenizer merge-manifests`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpe_tokenizer import corpus as corpora
from bpe_tokenizer.cli.options import AsJson, Debug, Quiet, option
from bpe_tokenizer.cli.tokenize_corpus import print_result

__all__ = ["merge_manifests"]


def merge_manifests(
    output: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Directory of the parts, or its URL.", show_default=False),
    ],
    of: Annotated[int | None, option("N", "Number of parts, to name those that are missing.")] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare the hashes of all files, not only sizes and times.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make the manifest of a corpus that was tokenized in parts.

    It is the last step after all runs of `tokenize-corpus --part I --of N`, and can be repeated.
    """
    made = corpora.merge_manifests(output, of=of, verify=verify)
    print_result(made._replace(kept=0), output, as_json, quiet)
