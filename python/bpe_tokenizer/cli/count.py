"""`bpe-tokenizer count`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

from bpe_tokenizer.atomic import check_writable
from bpe_tokenizer.cli.options import (
    NORMALIZATION,
    OUTPUT,
    SPLIT_PATTERN,
    AsJson,
    Corpus,
    Debug,
    Quiet,
    Special,
    Threads,
    Weights,
    choice,
    normal_form,
    option,
    options_of,
    special_argument,
)
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.options import CountLimits, ReadOptions
from bpe_tokenizer.readers.inputs import find_inputs
from bpe_tokenizer.train import piece_counts
from bpe_tokenizer.train.trainer import say_normalized

__all__ = ["count"]


@options_of(CountLimits, ReadOptions)
def count(
    corpus: Corpus,
    output: Annotated[Path, option("FILE", "File to save the counts in.", names=OUTPUT)],
    split_pattern: Annotated[str | None, SPLIT_PATTERN] = None,
    special: Special = None,
    normalization: Annotated[str, choice(NORMALIZATION, help="Unicode normal form of the text.")] = "NFC",
    weights: Weights = None,
    min_count: Annotated[int | None, option("N", "Leave out pieces that occur less often.", "1")] = None,
    *,
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
    **options: Any,
) -> None:
    """Count pieces, to train later (tokens: `encode --count`).

    `bpe-tokenizer train --counts` learns a vocabulary from the distinct pieces of text files. Counts of the
    parts of a corpus add up, wherever they were made: training on them all is training on the corpus.
    `bpe-tokenizer encode --count` prints the number of tokens of a text.
    """
    check_writable(output)
    begin = time.perf_counter()
    counts = piece_counts.count(
        find_inputs(corpus),
        split_pattern or "cl100k",
        normal_form(normalization),
        special_argument(special),
        weights=weights,
        threads=threads,
        min_count=min_count,
        verbose=not quiet,
        **options,
    )
    seconds = time.perf_counter() - begin
    counts.save(output)
    if as_json:
        result = {
            "output": str(output),
            "documents": counts.documents,
            "pieces": counts.pieces,
            "distinct": counts.distinct,
            "seconds": round(seconds, 3),
        }
        print(json.dumps(result))
    elif not quiet:
        print(
            f"{count_noun(counts.pieces, 'piece')}, {counts.distinct:,} of them distinct, saved in {output}"
        )
        say_normalized(counts)
