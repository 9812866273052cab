"""The binding's `PieceCounter.train`: what it refuses, and when it calls a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_tokenizer import ModelError, OptionError
from bpe_tokenizer._core import Model, PieceCounter
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN


def test_what_cannot_be_is_refused() -> None:
    counter = PieceCounter(split_patterns=[GPT2_SPLIT_PATTERN])
    counter.add_texts([Path(__file__).read_text(encoding="utf-8")])
    counter.train(vocab_size=300, checkpoint=lambda _: pytest.fail("called"), checkpoint_seconds=1e6)
    for begun, vocab_size, reason in [
        ([(b"a", b"bc")], 300, "merge 0 of the warm start.*'?bc'?.*is not a token yet"),
        ([(b"a", b"b"), (b"ab", b"c")], 257, "2 merges, but vocab_size 257 leaves ids for 1"),
    ]:
        with pytest.raises(OptionError, match=reason):
            counter.train(vocab_size=vocab_size, learned=begun)
    for seconds in (-1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="checkpoint_seconds"):
            counter.train(vocab_size=300, checkpoint_seconds=seconds)
    letters = {number: character.encode() for number, character in enumerate("abc")}
    characters = Model(letters, [], alphabet="characters")
    with pytest.raises(ModelError, match="byte-level"):
        counter.train(vocab_size=300, model=characters)
