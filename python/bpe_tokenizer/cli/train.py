"""`bpe-tokenizer train`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.options import (
    CORPUS,
    NORMALIZATION,
    OUTPUT,
    SPLIT_PATTERN,
    AsJson,
    Debug,
    Overwrite,
    Quiet,
    Special,
    Weights,
    choice,
    normal_form,
    option,
    options_of,
    special_argument,
    whole_number,
)
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.formats.huggingface import to_json
from bpe_tokenizer.formats.registry import check_directory, check_unused
from bpe_tokenizer.options import CountLimits, LearningOptions, MemoryLimits, ReadOptions, pick
from bpe_tokenizer.readers.inputs import find_inputs
from bpe_tokenizer.train.piece_counts import merged_counts

__all__ = ["train"]


@options_of(LearningOptions, CountLimits, ReadOptions)
def train(
    output: Annotated[Path, option("DIR", "Directory to save the tokenizer in.", names=OUTPUT)],
    corpus: Annotated[list[str] | None, CORPUS] = None,
    counts: Annotated[
        list[Path] | None, option("FILE...", "Piece counts of `bpe-tokenizer count`, instead of a corpus.")
    ] = None,
    vocab_size: Annotated[
        int,
        typer.Option(
            metavar="N",
            parser=whole_number,
            help="Number of ids: bytes, special tokens and learned tokens. 32k is 32000.",
        ),
    ] = 32000,
    min_frequency: Annotated[
        int, typer.Option(metavar="N", help="Stop when the most frequent pair is rarer than this.")
    ] = 2,
    split_pattern: Annotated[str | None, SPLIT_PATTERN] = None,
    special: Special = None,
    normalization: Annotated[
        Any, choice(NORMALIZATION, help="Unicode normal form of the text.", show_default="NFC")
    ] = None,
    weights: Weights = None,
    checkpoint: Annotated[
        Path | None, option("DIR", "Directory for checkpoints; the same command resumes from it.")
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time between two checkpoints.")
    ] = 30.0,
    *,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
    **options: Any,
) -> None:
    """Learn a vocabulary from text files, and save it.

    Instead of the files, it can learn from the counts of their pieces (`bpe-tokenizer count`).
    """
    if (corpus is None) == (counts is None):
        raise typer.BadParameter("give either --corpus or --counts")
    # Now, not after hours of training.
    check_directory(output)
    if not overwrite:
        check_unused([output])
    training: dict[str, Any] = {
        "vocab_size": vocab_size,
        "min_frequency": min_frequency,
        "special_tokens": special and special_argument(special),
        "verbose": not quiet,
    }
    begin = time.perf_counter()
    if counts is not None:
        if weights or checkpoint or options["sample"] or pick(ReadOptions, options) != ReadOptions():
            raise typer.BadParameter(
                "--weights, --checkpoint, --sample and what says how to read files need a --corpus, not "
                "--counts"
            )
        training |= vars(pick(LearningOptions, options))
        tokenizer = _train_from_counts(
            counts, split_pattern, normalization, pick(MemoryLimits, options), training
        )
    else:
        tokenizer = BPETokenizer(split_pattern or "cl100k", normal_form(normalization or "NFC"))
        if checkpoint is not None and "-" in (corpus or []):
            raise typer.BadParameter("--checkpoint needs files: standard input cannot be read again")
        _check_savable(tokenizer, training)
        tokenizer.train(
            find_inputs(corpus or []),
            **training,
            weights=weights,
            checkpoint=checkpoint,
            checkpoint_seconds=checkpoint_every,
            **options,
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
        print(f"{count_noun(tokenizer.vocab_size, 'token')} saved in {output}")


def _train_from_counts(
    files: Sequence[Path],
    split_pattern: str | None,
    normalization: str | None,
    limits: MemoryLimits,
    training: Mapping[str, Any],
) -> BPETokenizer:
    """Train from counts; without options, their own split pattern and normalisation apply."""
    merged = merged_counts(files, limits)
    tokenizer = BPETokenizer(
        merged.split_patterns if split_pattern is None else split_pattern,
        cast("Any", merged.normalization) if normalization is None else normal_form(normalization),
    )
    if training["special_tokens"] is None:
        training = {**training, "special_tokens": list(merged.special_tokens)}
    _check_savable(tokenizer, training)
    return tokenizer.train_from_counts(merged, **training)


def _check_savable(tokenizer: BPETokenizer, training: Mapping[str, Any]) -> None:
    """Find what tokenizer.json cannot hold now, not after hours of training."""
    like_it = BPETokenizer(tokenizer.split_pattern, cast("Any", tokenizer.normalization))
    to_json(like_it.train(["a", "b"], **{**training, "verbose": False}).model)
