"""Training: a corpus or its piece counts to a model."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.errors import ArgumentTypeError
from bpe_tokenizer.model import Model
from bpe_tokenizer.options import CountLimits, ReadOptions
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN
from bpe_tokenizer.special_tokens import SpecialTokens
from bpe_tokenizer.train.checkpoint import Checkpoint
from bpe_tokenizer.train.corpus import WHOLE_FILES, Corpus, count_corpus
from bpe_tokenizer.train.options import TrainingOptions
from bpe_tokenizer.train.piece_counts import (
    PieceCounts,
    check_not_empty,
    check_same_pretokenizer,
    core_counter,
    new_counts,
)
from bpe_tokenizer.train.progress import ProgressBar, say

__all__ = [
    "learn",
    "say_normalized",
    "say_shortfall",
    "train_bpe",
    "train_model",
    "train_model_from_counts",
]


def train_model(
    corpus: Corpus,
    split_patterns: Sequence[str],
    normalization: str | None,
    options: TrainingOptions,
    *,
    weights: Iterable[int] | None = None,
    limits: CountLimits | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
    read: ReadOptions = WHOLE_FILES,
) -> Model:
    """Learn a model from a corpus; `BPETokenizer.train` documents the other arguments and the errors.

    Args:
        corpus: The corpus.
        split_patterns: The regular expressions that cut documents into pieces, applied in sequence.
        normalization: The Unicode normalisation form, or None.
        options: The options of learning.
        weights: For a list of files.
        limits: Memory limits, and a sample of the documents.
        checkpoint: Directory for checkpoints.
        checkpoint_seconds: Seconds of work between two checkpoints.
        read: How documents are found in files.
    """
    began = time.perf_counter()
    special = [token.content for token in options.added_tokens]
    limits = limits or CountLimits()
    counts = new_counts(split_patterns, normalization, special, options.threads, limits)
    run = (
        nullcontext()
        if checkpoint is None
        else Checkpoint(check_path("checkpoint", checkpoint), checkpoint_seconds)
    )
    with run as saved, ProgressBar.shown(options.verbose) as progress:
        resume = (
            None
            if saved is None
            else partial(saved.count, counts, progress=progress, read=read, sample=limits.sample)
        )
        skipped = count_corpus(
            core_counter(counts),
            corpus,
            progress,
            weights,
            options=read,
            special_tokens=special,
            resume=resume,
        )
        check_not_empty(counts, skipped)
        core = _train(counts, options, progress, saved)
        if options.verbose and skipped.count:
            say(skipped.summary())
    if options.verbose:
        _say_summary(counts, len(core.merges), options, time.perf_counter() - began)
    return Model(core)


def train_model_from_counts(
    counts: PieceCounts,
    split_patterns: Sequence[str],
    normalization: str | None,
    options: TrainingOptions,
) -> Model:
    """Learn from counts the model that `train_model` learns from the corpus.

    Raises:
        CorpusError: There are no pieces.
        MismatchError: The counts were made with another pattern, normalisation or other special tokens.
    """
    began = time.perf_counter()
    special = [token.content for token in options.added_tokens]
    check_same_pretokenizer(counts, split_patterns, normalization, special)
    with ProgressBar.shown(options.verbose) as progress:
        core = _train(counts, options, progress, None)
    if options.verbose:
        _say_summary(counts, len(core.merges), options, time.perf_counter() - began)
    return Model(core)


def learn(counter: _core.PieceCounter, options: TrainingOptions, **others: Any) -> _core.Model:
    """Learn merges from counts, with the other arguments of the core's method."""
    return counter.train(needs=_say_needs if options.verbose else None, **options.core_options(), **others)


def _train(
    counts: PieceCounts,
    options: TrainingOptions,
    progress: ProgressBar,
    saved: Checkpoint | None,
) -> _core.Model:
    """Learn merges."""
    check_not_empty(counts)
    if options.verbose:
        say(
            f"Counted {count_noun(counts.documents, 'document')}: {count_noun(counts.pieces, 'piece')}, "
            f"{counts.distinct:,} of them distinct"
        )
    progress.start("Learning merges", unit="merges")
    train = partial(
        learn,
        core_counter(counts),
        options,
        vocab_size=options.vocab_size,
        added_tokens=options.added_tokens,
        progress=_Log(progress, options.verbose) if progress.visible or options.verbose else None,
    )
    core = train() if saved is None else _train_with_checkpoint(train, options, saved)
    progress.end(len(core.merges))
    return core


def _train_with_checkpoint(
    train: Callable[..., _core.Model], options: TrainingOptions, saved: Checkpoint
) -> _core.Model:
    """Continue from the merges of a checkpoint, and save new ones."""
    settings = {name: value for name, value in options.core_options().items() if name != "threads"}
    if settings["min_count"] <= 1:
        del settings["min_count"]  # which checkpoints of earlier versions lack
    learned = saved.merges(settings, options.wanted_merges)
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
    """Learn a vocabulary and merges from a file, with GPT-2's split pattern and nothing else.

    There is no normalisation and no minimum frequency. Of pairs with equal counts, the one with the
    lexicographically greatest bytes is merged first.

    Args:
        input_path: A file that `BPETokenizer.train` reads, such as text in UTF-8, plain or compressed.
        vocab_size: Number of ids: 256 bytes, special tokens, learned tokens.
        special_tokens: A list, which takes the ids 256, 257, ..., or a dict of text to id. No learned
            token crosses them.

    Returns:
        The bytes of every id, special tokens included, and the merges in the order they were learned.

    Raises:
        ArgumentTypeError: `input_path` is not a path.
        CorpusError: The file does not exist, holds no text, or is not UTF-8.
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
    if isinstance(input_path, bytes) or not isinstance(input_path, str | os.PathLike):
        raise ArgumentTypeError(
            f"train_bpe takes the path of a text file, not {type(input_path).__name__}; "
            "BPETokenizer.train(texts, vocab_size) trains on texts"
        )
    options = TrainingOptions(vocab_size, min_frequency=1, special_tokens=special_tokens, verbose=False)
    model = train_model(check_path("input_path", input_path), (GPT2_SPLIT_PATTERN,), None, options)
    return model.core.vocab, model.core.merges


class _Log:
    """Reports learned merges: to the progress bar, and if verbose a line after each tenth of them."""

    def __init__(self, progress: ProgressBar, verbose: bool) -> None:
        self._progress = progress
        self._verbose = verbose
        self._tenths = 0

    def __call__(self, learned: int, wanted: int) -> None:
        self._progress.update(learned, wanted)
        tenths = 10 * learned // max(wanted, 1)
        if self._verbose and self._tenths < tenths < 10:
            self._tenths = tenths
            say(f"Learned {learned:,} of {count_noun(wanted, 'merge')}")


def _say_summary(counts: PieceCounts, merges: int, options: TrainingOptions, seconds: float) -> None:
    say(
        f"Trained on {count_noun(counts.documents, 'document')}: {count_noun(counts.pieces, 'piece')}, "
        f"{counts.distinct:,} of them distinct; learned {count_noun(merges, 'merge')} in {seconds:.1f} s"
    )
    say_normalized(counts)
    say_shortfall(options.wanted_merges - merges, options.vocab_size, options)


def say_normalized(counts: PieceCounts) -> None:
    """Say that normalisation changed text, if it did, and which option keeps every text."""
    if core_counter(counts).normalized:
        changed = f"{counts.normalization} changed text in the corpus"
        say(f"{changed}; normalization=None keeps every text as it is")


def _say_needs(distinct: int, memory: int, limit: int | None) -> None:
    """Say what learning needs, if its memory is limited."""
    if limit is not None:
        say(
            f"Learning from {count_noun(distinct, 'distinct piece')} needs {memory / 1e6:,.0f} MB of memory, "
            f"and max_memory leaves {limit / 1e6:,.0f} MB for it"
        )


def say_shortfall(missing: int, size: int, options: TrainingOptions) -> None:
    """Say how many merges are missing for `size` ids, and why."""
    if missing > 0:
        limits = [f"a count of at least {options.min_frequency:,}"]
        if options.min_count is not None:
            limits.append(f"in pieces that occur at least {options.min_count:,} times")
        if options.max_token_length is not None:
            limits.append(f"of at most {options.max_token_length:,} bytes")
        say(
            f"Stopped {count_noun(missing, 'merge')} short of {size:,} ids: no pair is left with "
            f"{', '.join(limits)}"
        )
