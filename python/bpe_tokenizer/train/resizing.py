"""Vocabularies over time: more tokens behind those that there are, or the first of them only."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Mapping
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import ModelError, OptionError
from bpe_tokenizer.model import Model
from bpe_tokenizer.train.corpus import Corpus, count_corpus
from bpe_tokenizer.train.piece_counts import check_not_empty
from bpe_tokenizer.train.progress import ProgressBar
from bpe_tokenizer.train.trainer import TrainingOptions, print_shortfall

__all__ = ["extended", "truncated"]


def extended(model: Model, corpus: Corpus, options: TrainingOptions) -> Model:
    """Return a model with further merges, learned from a corpus; every id stays what it is.

    Args:
        model: A byte-level model whose text is cut with split patterns only.
        corpus: In any form that training takes.
        options: `vocab_size` is that of the result.

    Raises:
        CorpusError: The corpus cannot be read, or holds no text.
        ModelError: The model is of another kind.
        OptionError: The ids that there are already fill `vocab_size`.
    """
    core = model.core
    _check_is_counted(core)
    largest = max(core.vocab)
    if options.vocab_size <= largest + 1:
        raise OptionError(
            f"new_vocab_size is {options.vocab_size:,}, and the ids end at {largest:,} already: "
            f"ask for {largest + 2:,} or more"
        )
    began = time.perf_counter()
    counter = _core.PieceCounter(
        split_patterns=core.split_patterns or [],
        normalization=core.normalization,
        special_tokens=[token.content for token in core.added_tokens],
        threads=options.threads or 0,
    )
    further = _extend(core, corpus, counter, options)
    # The learned tokens are the ids that the result has in addition.
    learned = len(further) - len(core)
    if options.verbose:
        wanted = options.vocab_size - largest - 1
        _print_summary(counter, learned, wanted, options, time.perf_counter() - began)
    return dataclasses.replace(model, core=further) if learned else model


def _extend(
    core: _core.Model, corpus: Corpus, counter: _core.PieceCounter, options: TrainingOptions
) -> _core.Model:
    """Count the corpus, and learn merges that follow those of the model."""
    with ProgressBar.shown(options.verbose) as progress:
        count_corpus(counter, corpus, progress)
        check_not_empty(counter)
        progress.start("Learning merges", unit="merges")
        return counter.train(
            model=core,
            vocab_size=options.vocab_size,
            min_frequency=options.min_frequency,
            tie_break=options.tie_break,
            max_token_length=options.max_token_length,
            threads=options.threads or 0,
            progress=progress.update if progress.visible else None,
        )


def _print_summary(
    counter: _core.PieceCounter, merges: int, wanted: int, options: TrainingOptions, seconds: float
) -> None:
    print(
        f"Extended with {counter.documents:,} documents: {counter.pieces:,} pieces, {counter.distinct:,} of "
        f"them distinct; learned {merges:,} further merges in {seconds:.1f} s",
        file=sys.stderr,
    )
    print_shortfall(wanted - merges, "new_vocab_size", options)


def truncated(model: Model, size: int) -> Model:
    """Return a model with the learned tokens below an id; added tokens stay where they are.

    Args:
        model: A byte-level model.
        size: The first id that no learned token has any more.

    Raises:
        ModelError: The model is of another kind, or a token that is left is made of one that is not.
        OptionError: A byte or a special token in front of the learned ones would have to go.
    """
    core = model.core
    _check_is_bytes(core)
    vocab = _entries(core)
    # Of ids with the same bytes the lowest stands for them.
    ids = {token: token_id for token_id, token in reversed(vocab.items())}
    _check_front(core, ids, size)
    merges = [pair for pair in core.merges if ids[pair[0] + pair[1]] < size]
    for pair in merges:
        for part in pair:
            if ids[part] >= size:
                token = pair[0] + pair[1]
                raise ModelError(
                    f"the token {token!r} (id {ids[token]:,}) is made of {part!r} (id {ids[part]:,}), which "
                    f"would have to go: n must be {ids[part] + 1:,} or more, or {ids[token]:,} or less"
                )
    kept = {token_id: token for token_id, token in vocab.items() if token_id < size}
    return _with_entries(model, kept, merges)


def _check_front(core: _core.Model, ids: Mapping[bytes, int], size: int) -> None:
    """Refuse to cut the bytes, or the special tokens that a list put right behind them."""
    last = max(range(256), key=lambda byte: ids[bytes([byte])])
    front = ids[bytes([last])]
    if size <= front:
        raise OptionError(
            f"n is {size:,}, and the byte 0x{last:02x} has the id {front:,}; all 256 bytes stay: "
            f"ask for {front + 2:,} or more"
        )
    added = {token.id: token.content for token in core.added_tokens}
    while front + 1 in added:
        front += 1
    if size <= front:
        raise OptionError(
            f"n is {size:,}, and the special token {added[front]!r} stands between the bytes and the learned "
            f"tokens with the id {front:,}; ask for {front + 1:,} or more"
        )


def _entries(core: _core.Model) -> dict[int, bytes]:
    """Return the vocabulary without the added tokens outside of it, in the order of the ids."""
    outside = {token.id for token in core.added_tokens}.difference(core.added_ids_in_vocab)
    entries = {token_id: token for token_id, token in core.vocab.items() if token_id not in outside}
    plain = [token for token_id, token in entries.items() if token_id not in core.added_ids_in_vocab]
    if len(set(plain)) < len(plain):
        raise ModelError("two ids of this vocabulary have the same bytes; merges could mean either")
    return entries


def _with_entries(model: Model, vocab: Mapping[int, bytes], merges: list[tuple[bytes, bytes]]) -> Model:
    settings: dict[str, Any] = model.core.__getnewargs_ex__()[1]
    return dataclasses.replace(model, core=_core.Model(vocab, merges, **settings))


def _check_is_bytes(core: _core.Model) -> None:
    if core.alphabet != "bytes" or core.byte_fallback or not core.requires_all_bytes:
        raise ModelError(
            "merging begins with characters in this model, or lacks some bytes: only a byte-level vocabulary "
            "can be extended or truncated"
        )


def _check_is_counted(core: _core.Model) -> None:
    """Refuse, by name, what counting pieces does not do."""
    _check_is_bytes(core)
    names = ", ".join
    if core.split_patterns is None:
        what = f"pre-tokeniser ({names(step[0] for step in core.pre_tokenizers)})"
    elif core.add_prefix_space:
        what = "pre-tokeniser (PrefixSpace)"
    elif core.normalizers and core.normalization is None:
        what = f"normaliser ({names(step[0] for step in core.normalizers)})"
    else:
        return
    raise ModelError(
        f"a corpus is cut with split patterns and brought to a Unicode normal form, and the {what} of this "
        "model does more: it cannot be extended"
    )
