"""`bpe-tokenizer count`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from bpe_tokenizer.cli.corpus_options import MaxMemory, Normalization, Special, Threads, Weights, named_files
from bpe_tokenizer.cli.run import Debug

__all__ = ["count"]


def count(
    corpus: Annotated[
        list[str],
        typer.Option(
            metavar="FILE...",
            help="Text files in UTF-8; - is standard input. A file is one document.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="File to save the counts in.", show_default=False)
    ],
    pattern: Annotated[
        str, typer.Option(metavar="NAME", help="Split pattern: a name (gpt2, cl100k, o200k, ...) or a regex.")
    ] = "cl100k",
    special: Special = None,
    normalization: Annotated[
        Normalization, typer.Option(help="Unicode normal form of the text.")
    ] = Normalization.NFC,
    weights: Weights = None,
    max_memory: MaxMemory = None,
    threads: Threads = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no summary.")] = False,
    debug: Debug = False,
) -> None:
    """Count the distinct pieces of text files, to learn a vocabulary from them later: `train --counts`.

    Counts of parts of a corpus, made anywhere, are added: training on them is training on the corpus.
    """
    from bpe_tokenizer.train.piece_counts import count as count_pieces

    begin = time.perf_counter()
    with named_files(corpus) as files:
        counts = count_pieces(
            files,
            pattern,
            normalization.form,
            special or (),
            weights=weights,
            threads=threads,
            max_memory=max_memory,
            verbose=not quiet,
        )
    seconds = time.perf_counter() - begin
    counts.save(output)
    if as_json:
        result = {
            "output": str(output),
            "documents": counts.documents,
            "pieces": counts.pieces,
            "distinct": counts.distinct,
            "dropped": counts.dropped._asdict(),
            "seconds": round(seconds, 3),
        }
        print(json.dumps(result))
    elif not quiet:
        print(f"{counts.pieces:,} pieces, {counts.distinct:,} of them distinct, saved in {output}")
        if counts.dropped.distinct:
            print(counts.dropped.said(), file=sys.stderr)
