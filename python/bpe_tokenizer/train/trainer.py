"""Training: a corpus or its counts go in, a model comes out."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_choice, check_integer, thread_count
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.model import AddedToken, Model
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN
from bpe_tokenizer.special_tokens import SpecialTokens, assign_ids
from bpe_tokenizer.train.checkpoint import Checkpoint
from bpe_tokenizer.train.corpus import (
    Corpus,
    checked_weights,
    count_corpus,
    files_of,
)
from bpe_tokenizer.train.piece_counts import PieceCounts, check_cut_alike, check_not_empty, counter_of
from bpe_tokenizer.train.progress import ProgressBar

__all__ = [
    "TieBreak",
    "TrainingOptions",
    "print_shortfall",
    "train_bpe",
    "train_model",
    "train_model_from_counts",
]

TieBreak: TypeAlias = Literal["largest", "huggingface"]


@dataclass(frozen=True)
class TrainingOptions:
    """What a training run is asked for; checked when made.

    Args:
        vocab_size: Number of ids to fill: 256 bytes, reserved special tokens, learned tokens.
        min_frequency: Smallest count of a pair that is merged.
        special_tokens: A list, which takes the ids 256, 257, ..., or a dict of text to id.
        tie_break: Which of several pairs of the same count is merged: `"largest"`, the one with the
            greatest bytes, or `"huggingface"`, the one that Hugging Face's `BpeTrainer` takes.
        max_token_length: Longest token to learn, in bytes; None for no limit.
        threads: Number of threads that count; None for as many as there are processors.
        verbose: Show a progress bar (on a terminal) and a summary on stderr.

    Raises:
        ModelError: A special token is empty or there twice, or its id is taken, below 256 or too large.
        OptionError: Another option is out of its range.
    """

    vocab_size: int = 32000
    min_frequency: int = 2
    special_tokens: SpecialTokens | None = None
    tie_break: TieBreak = "largest"
    max_token_length: int | None = None
    threads: int | None = None
    verbose: bool = True
    added_tokens: tuple[AddedToken, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_integer("vocab_size", self.vocab_size, 257, "the 256 bytes are the first 256 ids")
        check_integer("vocab_size", self.vocab_size, 257, maximum=2**31 - 1)
        check_integer("min_frequency", self.min_frequency, 0)
        check_choice("tie_break", self.tie_break, ("largest", "huggingface"))
        if self.max_token_length is not None:
            check_integer("max_token_length", self.max_token_length, 1)
        thread_count(self.threads)
        added = assign_ids(self.special_tokens, self.vocab_size)
        object.__setattr__(self, "added_tokens", tuple(added))


def train_model(
    corpus: Corpus,
    split_patterns: Sequence[str],
    normalization: str | None,
    options: TrainingOptions,
    *,
    weights: Iterable[int] | None = None,
    max_memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
) -> Model:
    """Learn a vocabulary and merges from a corpus.

    Args:
        corpus: A `Path`; a `str` that names a file, or else is the text itself; an iterable of `str` or
            `bytes` (UTF-8), each a document; an iterable of `Path`, each file a document.
        split_patterns: What cuts documents into pieces, applied one after the other.
        normalization: What is done to the text first: a Unicode normalisation form or None.
        options: How merges are learned.
        weights: For a list of files: how often the pieces of each count.
        max_memory: How much memory this process may take, in bytes or as in `"500MB"`.
        checkpoint: A directory from which the run goes on if it is stopped at any moment.
        checkpoint_seconds: Work between two times of saving there.

    Raises:
        CorpusError: There is no text, a file cannot be read, or something is not UTF-8.
        ArgumentTypeError: The corpus, or an item of it, is of no accepted type.
        FormatError: The checkpoint is broken.
        MismatchError: The checkpoint is of another run.
        OptionError: Weights or a checkpoint, but no list of files.
    """
    began = time.perf_counter()
    special = [token.content for token in options.added_tokens]
    counts = PieceCounts(
        split_patterns, normalization, special, threads=options.threads, max_memory=max_memory
    )
    saved = None if checkpoint is None else Checkpoint(Path(checkpoint), checkpoint_seconds)
    with ProgressBar.shown(options.verbose) as progress:
        if saved is None:
            count_corpus(counter_of(counts), corpus, progress, weights)
        else:
            files = files_of(corpus)
            if files is None:
                raise OptionError(
                    "a checkpoint is for files, which can be read again from where a run stopped; give a "
                    "list of Path, or count parts of the corpus and save their PieceCounts"
                )
            each = checked_weights(weights, len(files))
            counts = saved.count(counts, files, each, progress)
        check_not_empty(counts)
        core = _train(counts, options, progress, saved)
    if options.verbose:
        _print_summary(counts, len(core.merges), options, time.perf_counter() - began)
    return Model(core)


def train_model_from_counts(
    counts: PieceCounts, split_patterns: Sequence[str], normalization: str | None, options: TrainingOptions
) -> Model:
    """Learn a vocabulary and merges from counts: exactly those that training on the corpus gives.

    Args:
        counts: The counts.
        split_patterns: What must have cut the corpus, with `normalization` and the special tokens.
        normalization: Likewise.
        options: How merges are learned.

    Raises:
        CorpusError: There is no piece.
        MismatchError: The corpus was cut otherwise; says what differs.
    """
    began = time.perf_counter()
    special = [token.content for token in options.added_tokens]
    check_cut_alike(counts, split_patterns, normalization, special)
    check_not_empty(counts)
    with ProgressBar.shown(options.verbose) as progress:
        core = _train(counts, options, progress, None)
    if options.verbose:
        _print_summary(counts, len(core.merges), options, time.perf_counter() - began)
    return Model(core)


def _train(
    counts: PieceCounts, options: TrainingOptions, progress: ProgressBar, saved: Checkpoint | None
) -> _core.Model:
    """Learn merges. With a checkpoint, continue from its merges and save new ones."""
    progress.start("Learning merges", unit="merges")
    train = partial(
        counter_of(counts).train,
        vocab_size=options.vocab_size,
        min_frequency=options.min_frequency,
        tie_break=options.tie_break,
        added_tokens=options.added_tokens,
        max_token_length=options.max_token_length,
        threads=options.threads or 0,
        progress=progress.update if progress.visible else None,
    )
    if saved is None:
        return train()
    settings = {
        "tie_break": options.tie_break,
        "min_frequency": options.min_frequency,
        "max_token_length": options.max_token_length,
    }
    reserved = sum(token.id < options.vocab_size for token in options.added_tokens)
    learned = saved.merges(settings, options.vocab_size - 256 - reserved)
    known = list(learned)

    def save(merges: list[tuple[bytes, bytes]]) -> None:
        known.extend(merges)
        saved.save_merges(settings, known)

    core = train(learned=learned, checkpoint=save, checkpoint_seconds=saved.seconds)
    saved.save_merges(settings, core.merges)
    return core


def train_bpe(
    input_path: str | os.PathLike[str], vocab_size: int, special_tokens: SpecialTokens | None = None
) -> tuple[dict[int, bytes], list[tuple[bytes, bytes]]]:
    """Learn a vocabulary and merges from a file, with GPT-2's split pattern and every default plain.

    No normalisation, no minimum frequency; of pairs with the same count the one with the lexicographically
    greatest bytes is merged first.

    Args:
        input_path: A UTF-8 text file.
        vocab_size: Number of ids: 256 bytes, special tokens, learned tokens.
        special_tokens: A list, which takes the ids 256, 257, ..., or a dict of text to id. Nothing is
            learned across them.

    Returns:
        The bytes of every id, special tokens included, and the merges in the order they were learned.

    Raises:
        CorpusError: There is no such file, it holds no text, or it is not UTF-8.
        ModelError: A special token is invalid.
        OptionError: `vocab_size` is 256 or less, or too small for the special tokens.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "corpus.txt")
    >>> _ = path.write_text("low low low lower<|end|>", encoding="utf-8")
    >>> vocab, merges = train_bpe(path, 260, ["<|end|>"])
    >>> merges
    [(b'o', b'w'), (b'l', b'ow'), (b' ', b'low')]
    >>> vocab[256], vocab[259]
    (b'<|end|>', b' low')
    """
    options = TrainingOptions(vocab_size, min_frequency=1, special_tokens=special_tokens, verbose=False)
    model = train_model(Path(input_path), (GPT2_SPLIT_PATTERN,), None, options)
    return model.core.vocab, model.core.merges


def _print_summary(counts: PieceCounts, merges: int, options: TrainingOptions, seconds: float) -> None:
    reserved = sum(token.id < options.vocab_size for token in options.added_tokens)
    wanted = options.vocab_size - 256 - reserved
    print(
        f"Trained on {counts.documents:,} documents: {counts.pieces:,} pieces, {counts.distinct:,} of "
        f"them distinct; learned {merges:,} merges in {seconds:.1f} s",
        file=sys.stderr,
    )
    if counts.dropped.distinct:
        print(counts.dropped.said(), file=sys.stderr)
    print_shortfall(wanted - merges, "vocab_size", options)


def print_shortfall(missing: int, size: str, options: TrainingOptions) -> None:
    """Say on stderr how many merges are missing, if any, to the size that was asked for by that name."""
    if missing > 0:
        print(
            f"Stopped {missing:,} merges short of {size}={options.vocab_size:,}: no pair is left "
            f"with a count of at least {options.min_frequency}",
            file=sys.stderr,
        )
