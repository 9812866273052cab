"""Merging that is interrupted and goes on: the binding's `PieceCounter.train`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, ModelError, OptionError
from bpe_tokenizer._core import Model, PieceCounter
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN

Merges = list[tuple[bytes, bytes]]
RESERVED = [AddedToken("<a>", 256), AddedToken("<b>", 300)]
TEXT = Path(__file__).read_text(encoding="utf-8")


@pytest.fixture
def counter() -> PieceCounter:
    counter = PieceCounter(split_patterns=[GPT2_SPLIT_PATTERN])
    counter.add_texts([TEXT])
    return counter


@pytest.mark.parametrize("tie_break", ["largest", "huggingface"])
def test_a_run_that_was_stopped_goes_on_to_the_same_result(counter: PieceCounter, tie_break: Any) -> None:
    options: Any = {"vocab_size": 400, "tie_break": tie_break, "added_tokens": RESERVED}
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
        assert saved == whole.merges[:stop]
        resumed = counter.train(learned=saved, **options)
        assert (resumed.vocab, resumed.merges) == (whole.vocab, whole.merges)


def test_the_number_of_threads_does_not_show(counter: PieceCounter) -> None:
    results = [counter.train(vocab_size=400, threads=threads) for threads in (0, 1, 2, 5)]
    assert all((each.vocab, each.merges) == (results[0].vocab, results[0].merges) for each in results)


def test_a_rare_checkpoint_is_not_called(counter: PieceCounter) -> None:
    counter.train(vocab_size=300, checkpoint=lambda _: pytest.fail("called"), checkpoint_seconds=1e6)


def test_a_vocabulary_is_extended(counter: PieceCounter) -> None:
    base = BPETokenizer("gpt2", None).train(TEXT, 300, special_tokens={"<|end|>": 301}, verbose=False)
    core = base.model.core
    extended = counter.train(vocab_size=310, model=core)
    learned = extended.merges[len(core.merges) :]
    assert list(extended.vocab) == [*core.vocab, *range(302, 310)]
    assert extended.merges[: len(core.merges)] == core.merges
    assert [left + right for left, right in learned] == list(extended.vocab.values())[-8:]
    assert extended.added_tokens == core.added_tokens == [AddedToken("<|end|>", 301)]
    resumed = counter.train(vocab_size=310, model=core, learned=learned[:3])
    assert (resumed.vocab, resumed.merges) == (extended.vocab, extended.merges)


def test_the_model_has_the_added_tokens_and_the_split_of_the_counter(counter: PieceCounter) -> None:
    added = [AddedToken("<a>", 256), AddedToken("<b>", 999, special=False)]
    core = counter.train(vocab_size=300, added_tokens=added)
    assert core.added_tokens == added
    assert (core.vocab[256], core.vocab_size, len(core)) == (b"<a>", 300, 301)
    assert core.split_patterns == [GPT2_SPLIT_PATTERN]


def test_what_cannot_be_is_refused(counter: PieceCounter) -> None:
    for begun, reason in [
        ([(b"a", b"bc")], "merge 0 of the warm start.*'?bc'?.*is not a token yet"),
        ([(b"a", b"b"), (b"a", b"b")], "merge 1 of the warm start.*is already a token"),
        ([(b"a", b"b"), (b"ab", b"c")], "2 merges, but vocab_size 257 leaves ids for 1"),
    ]:
        with pytest.raises(OptionError, match=reason):
            counter.train(vocab_size=257 if "leaves" in reason else 300, learned=begun)
    for seconds in (-1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="checkpoint_seconds"):
            counter.train(vocab_size=300, checkpoint_seconds=seconds)
    letters = {number: character.encode() for number, character in enumerate("abc")}
    characters = Model(letters, [], alphabet="characters")
    with pytest.raises(ModelError, match="byte-level"):
        counter.train(vocab_size=300, model=characters)
