"""Merging that is interrupted and goes on: the binding's `PieceCounter.train`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, ModelError, OptionError
from bpe_tokenizer._core import Model, PieceCounter
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN

Merges = list[tuple[bytes, bytes]]
TEXT = Path(__file__).read_text(encoding="utf-8")


@pytest.fixture
def counter() -> PieceCounter:
    counter = PieceCounter(split_patterns=[GPT2_SPLIT_PATTERN])
    counter.add_texts([TEXT])
    return counter


@pytest.mark.parametrize("tie_break", ["largest", "huggingface"])
def test_a_run_that_was_stopped_goes_on_to_the_same_result(counter: PieceCounter, tie_break: Any) -> None:
    options: Any = {"vocab_size": 400, "tie_break": tie_break, "reserved": [256, 300]}
    whole = counter.train(**options)
    for stop in (1, 7, 100):
        saved: Merges = []

        def save(merges: Merges, stop: int = stop, saved: Merges = saved) -> None:
            saved.extend(merges)
            if len(saved) >= stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            counter.train(checkpoint=save, checkpoint_seconds=0, **options)
        assert len(saved) == stop
        assert saved == whole[1][:stop]
        assert counter.train(begun=saved, **options) == whole


def test_the_number_of_threads_does_not_show(counter: PieceCounter) -> None:
    results = [counter.train(vocab_size=400, threads=threads) for threads in (0, 1, 2, 5)]
    assert all(result == results[0] for result in results)


def test_a_rare_checkpoint_is_not_called(counter: PieceCounter) -> None:
    counter.train(vocab_size=300, checkpoint=lambda _: pytest.fail("called"), checkpoint_seconds=1e6)


def test_a_vocabulary_is_extended(counter: PieceCounter) -> None:
    base = BPETokenizer("gpt2", None).train(TEXT, 300, special_tokens={"<|end|>": 301}, verbose=False)
    core = base.model.core
    vocab, merges = counter.train(vocab_size=310, model=core)
    assert list(vocab) == list(range(302, 310))
    assert [left + right for left, right in merges] == list(vocab.values())
    assert counter.train(vocab_size=310, model=core, begun=merges[:3]) == (vocab, merges)


def test_what_cannot_be_is_refused(counter: PieceCounter) -> None:
    for begun, reason in [
        ([(b"a", b"bc")], "merge 0 of the warm start.*'?bc'?.*is not a token yet"),
        ([(b"a", b"b"), (b"a", b"b")], "merge 1 of the warm start.*is already a token"),
        ([(b"a", b"b"), (b"ab", b"c")], "2 merges, but vocab_size 257 leaves ids for 1"),
    ]:
        with pytest.raises(OptionError, match=reason):
            counter.train(vocab_size=257 if "leaves" in reason else 300, begun=begun)
    for seconds in (-1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="checkpoint_seconds"):
            counter.train(vocab_size=300, checkpoint_seconds=seconds)
    letters = {number: character.encode() for number, character in enumerate("abc")}
    characters = Model(letters, [], alphabet="characters")
    with pytest.raises(ModelError, match="byte-level"):
        counter.train(vocab_size=300, model=characters)
