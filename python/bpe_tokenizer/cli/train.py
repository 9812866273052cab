"""`bpe-tokenizer train`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bpe_tokenizer.cli.corpus_options import MaxMemory, Normalization, Special, Threads, Weights, named_files
from bpe_tokenizer.cli.run import Debug

if TYPE_CHECKING:
    from bpe_tokenizer import BPETokenizer

__all__ = ["train"]


class TieBreak(str, Enum):
    """Which of two equally frequent pairs is merged first."""

    LARGEST = "largest"
    HUGGINGFACE = "huggingface"


def train(
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory to save the tokenizer in.", show_default=False)
    ],
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE...",
            help="Text files in UTF-8; - is standard input. A file is one document.",
            show_default=False,
        ),
    ] = None,
    counts: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...",
            help="Piece counts that `bpe-tokenizer count` wrote, instead of a corpus.",
            show_default=False,
        ),
    ] = None,
    vocab_size: Annotated[
        int, typer.Option(metavar="N", help="Number of ids: bytes, special tokens and learned tokens.")
    ] = 32000,
    min_frequency: Annotated[
        int, typer.Option(metavar="N", help="Stop when the most frequent pair is rarer than this.")
    ] = 2,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Split pattern: a name (gpt2, cl100k, o200k, ...) or a regex.",
            show_default="cl100k",
        ),
    ] = None,
    special: Special = None,
    normalization: Annotated[
        Normalization | None, typer.Option(help="Unicode normal form of the text.", show_default="NFC")
    ] = None,
    tie_break: Annotated[
        TieBreak,
        typer.Option(
            help="Which of equally frequent pairs comes first: the largest bytes, or Hugging Face's."
        ),
    ] = TieBreak.LARGEST,
    max_token_length: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Longest token to learn.", show_default="any")
    ] = None,
    weights: Weights = None,
    max_memory: MaxMemory = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep there what the run has come to; the same command goes on from it after a stop.",
            show_default=False,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Work between two times of saving there.")
    ] = 30.0,
    threads: Threads = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no summary.")] = False,
    debug: Debug = False,
) -> None:
    """Learn a vocabulary from text files, or from counts of their pieces, and save it."""
    from bpe_tokenizer import BPETokenizer

    if (corpus is None) == (counts is None):
        raise typer.BadParameter("give either --corpus or --counts")
    learning: dict[str, Any] = {
        "vocab_size": vocab_size,
        "min_frequency": min_frequency,
        "special_tokens": special,
        "verbose": not quiet,
        "tie_break": tie_break.value,
        "max_token_length": max_token_length,
        "threads": threads,
    }
    begin = time.perf_counter()
    if counts is not None:
        if weights or max_memory or checkpoint:
            raise typer.BadParameter(
                "--weights, --max-memory and --checkpoint are for a --corpus; counts are counted"
            )
        tokenizer = _from_counts(counts, pattern, normalization, learning)
    else:
        tokenizer = BPETokenizer(pattern or "cl100k", (normalization or Normalization.NFC).form)
        if checkpoint is not None and "-" in (corpus or []):
            raise typer.BadParameter("a --checkpoint is for files: standard input cannot be read again")
        with named_files(corpus or []) as files:
            tokenizer.train(
                files,
                **learning,
                weights=weights,
                max_memory=max_memory,
                checkpoint=checkpoint,
                checkpoint_seconds=checkpoint_every,
            )
    seconds = time.perf_counter() - begin
    tokenizer.save(output)
    if as_json:
        result = {
            "output": str(output),
            "vocab_size": tokenizer.vocab_size,
            "merges": len(tokenizer.merges),
            "seconds": round(seconds, 3),
        }
        print(json.dumps(result))
    elif not quiet:
        print(f"{tokenizer.vocab_size:,} tokens saved in {output}")


def _from_counts(
    files: Sequence[Path],
    pattern: str | None,
    normalization: Normalization | None,
    learning: Mapping[str, Any],
) -> BPETokenizer:
    """Learn from counts; what is not said about the corpus is what the counts say."""
    from bpe_tokenizer import BPETokenizer
    from bpe_tokenizer.train.piece_counts import merged_counts

    merged = merged_counts(files)
    tokenizer = BPETokenizer(
        merged.split_patterns if pattern is None else pattern,
        cast("Any", merged.normalization) if normalization is None else normalization.form,
    )
    return tokenizer.train_from_counts(merged, **learning)
