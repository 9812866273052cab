"""Resizes vocabularies: learns further tokens, or keeps the first tokens only."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping

from bpe_tokenizer import _core
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.errors import ModelError, OptionError, shorten
from bpe_tokenizer.model import Model
from bpe_tokenizer.options import CountLimits, ReadOptions
from bpe_tokenizer.train.corpus import WHOLE_FILES, Corpus, count_corpus
from bpe_tokenizer.train.options import TrainingOptions
from bpe_tokenizer.train.piece_counts import check_not_empty
from bpe_tokenizer.train.progress import ProgressBar, say
from bpe_tokenizer.train.trainer import learn, say_shortfall

__all__ = ["extend_model", "truncate_model"]


def extend_model(
    model: Model,
    corpus: Corpus,
    size: int,
    options: TrainingOptions,
    limits: CountLimits | None = None,
    read: ReadOptions = WHOLE_FILES,
) -> Model:
    """Return a model with further merges, learned from a corpus; every id keeps its token.

    Args:
        model: A byte-level model whose text is cut with split patterns only.
        corpus: As in `BPETokenizer.train`.
        size: The number of ids of the result. All special tokens count: the new ids follow them, so all are
            in its vocabulary.
        options: As in training, but for `vocab_size` and `special_tokens`, which are not read.
        limits: Memory limits, and a sample of the documents.
        read: How documents are found in files.

    Raises:
        CorpusError: The corpus cannot be read, or holds no text.
        ModelError: The model is not byte-level, or does more to text.
        OptionError: `size` ids or more are in use.
    """
    core = model.core
    _check_plain_pretokenizer(core)
    wanted = size - len(core)
    if wanted < 1:
        raise OptionError(
            f"new_vocab_size is {size:,}, and {len(core):,} ids are in use: ask for {len(core) + 1:,} or more"
        )
    began = time.perf_counter()
    special = [token.content for token in core.added_tokens]
    counter = _core.PieceCounter(
        split_patterns=core.split_patterns or [],
        normalization=core.normalization,
        special_tokens=special,
        threads=options.threads or 0,
        **(limits or CountLimits()).core_options(),
    )
    with ProgressBar.shown(options.verbose) as progress:
        skipped = count_corpus(counter, corpus, progress, options=read, special_tokens=special)
        if options.verbose and skipped.count:
            say(skipped.summary())
        check_not_empty(counter, skipped)
        progress.start("Learning merges", unit="merges")
        report = progress.update if progress.visible else None
        extended = learn(counter, options, model=core, vocab_size=core.n_vocab + wanted, progress=report)
        learned = len(extended) - len(core)
        progress.end(learned)
    if options.verbose:
        say(
            f"Extended with {count_noun(counter.documents, 'document')}: "
            f"{count_noun(counter.pieces, 'piece')}, {counter.distinct:,} of them distinct; "
            f"learned {count_noun(learned, 'further merge')} in {time.perf_counter() - began:.1f} s"
        )
        say_shortfall(wanted - learned, size, options)
    return dataclasses.replace(model, core=extended) if learned else model


def truncate_model(model: Model, size: int) -> Model:
    """Return a model with only the learned tokens below an id; added tokens keep their ids.

    Args:
        model: A byte-level model.
        size: The first id to remove.

    Raises:
        ModelError: The model is not byte-level, or a token below `size` is merged from one above it.
        OptionError: A byte or a special token between the bytes and the learned tokens would be removed.
    """
    core = model.core
    _check_byte_level(core)
    vocab = _entries(core)
    # Several ids may have the same bytes: merges use the lowest.
    ids = {token: token_id for token_id, token in reversed(vocab.items())}
    _check_reserved_ids(core, ids, size)
    merges = [pair for pair in core.merges if ids[pair[0] + pair[1]] < size]
    for pair in merges:
        for part in pair:
            if ids[part] >= size:
                token = pair[0] + pair[1]
                raise ModelError(
                    f"the token {shorten(token)} (id {ids[token]:,}) is merged from {shorten(part)} (id "
                    f"{ids[part]:,}), which would be removed: n must be {ids[part] + 1:,} or more, "
                    f"or {ids[token]:,} or less"
                )
    kept = {token_id: token for token_id, token in vocab.items() if token_id < size}
    return _with_entries(model, kept, merges)


def _check_reserved_ids(core: _core.Model, ids: Mapping[bytes, int], size: int) -> None:
    """Check that `size` keeps the bytes, and the special tokens right after them, as a list puts them."""
    single = [token for token in ids if len(token) == 1]
    last = max(single, key=ids.__getitem__, default=b"")
    reserved = ids.get(last, -1)
    if size <= reserved:
        raise OptionError(
            f"n is {size:,}, and the byte 0x{last.hex()} has the id {reserved:,}; all bytes stay: "
            f"ask for {reserved + 2:,} or more"
        )
    added = {token.id: token.content for token in core.added_tokens}
    while reserved + 1 in added:
        reserved += 1
    if size <= reserved:
        raise OptionError(
            f"n is {size:,}, and the special token {shorten(added[reserved])} lies between the bytes and the "
            f"learned tokens with the id {reserved:,}; ask for {reserved + 1:,} or more"
        )


def _entries(core: _core.Model) -> dict[int, bytes]:
    """Return the vocabulary without added tokens outside it, in the order of the ids."""
    outside = {token.id for token in core.added_tokens}.difference(core.added_ids_in_vocab)
    entries = {token_id: token for token_id, token in core.vocab.items() if token_id not in outside}
    plain = [token for token_id, token in entries.items() if token_id not in core.added_ids_in_vocab]
    if len(set(plain)) < len(plain):
        raise ModelError("two ids of this vocabulary have the same bytes; merges could mean either")
    return entries


def _with_entries(model: Model, vocab: Mapping[int, bytes], merges: list[tuple[bytes, bytes]]) -> Model:
    return dataclasses.replace(model, core=_core.Model(vocab, merges, **model.core.settings))


def _check_byte_level(core: _core.Model) -> None:
    if core.alphabet != "bytes" or core.byte_fallback:
        raise ModelError(
            "this model merges characters: only a byte-level vocabulary can be extended or truncated"
        )


def _check_plain_pretokenizer(core: _core.Model) -> None:
    """Check that counting pieces does everything that the model does to text."""
    _check_byte_level(core)
    names = ", ".join
    if core.split_patterns is None:
        what = f"pre-tokeniser ({names(step.type for step in core.pre_tokenizers)})"
    elif core.add_prefix_space:
        what = "pre-tokeniser (PrefixSpace)"
    elif core.normalizers and core.normalization is None:
        what = f"normaliser ({names(step.type for step in core.normalizers)})"
    else:
        return
    raise ModelError(
        f"a corpus is cut with split patterns and brought to a Unicode normal form, and the {what} of this "
        "model does more: it cannot be extended"
    )
