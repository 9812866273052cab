"""Merges equal to those of Hugging Face's `BpeTrainer`, under its rule for pairs of the same count."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hostile import hostile_texts
from small_tokenizers import without_surrogates

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")

pytestmark = pytest.mark.peer

# More bytes than a corpus has.
MATCH_ALL = 30_000_000


def merges_of_the_library(pattern: str, documents: Sequence[str], vocab_size: int, min_frequency: int) -> Any:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    regex = tokenizers.Regex(_core.SplitPattern(pattern).to_oniguruma())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(regex, "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    return [tuple(merge) for merge in json.loads(tokenizer.to_str())["model"]["merges"]]


def assert_same_merges(
    name: str, documents: Sequence[str], vocab_size: int, min_frequency: int = 2
) -> BPETokenizer:
    (pattern,) = NAMED_PATTERNS[name].patterns
    ours = BPETokenizer(split_pattern=name, normalization=None).train(
        documents, vocab_size, min_frequency, tie_break="huggingface", verbose=False
    )
    merges = ours.model.core.printable_merges()
    assert merges == merges_of_the_library(pattern, documents, vocab_size, min_frequency)
    return ours


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "qwen2"])
def test_the_standard_library(name: str, stdlib_texts: list[str]) -> None:
    ours = assert_same_merges(name, stdlib_texts, 2000)
    assert len(ours.merges) == 2000 - 256


@pytest.mark.parametrize("min_frequency", [1, 2, 5])
def test_small_corpora_of_many_ties(min_frequency: int, mixed_text: str) -> None:
    well_formed = [without_surrogates(text) for text in hostile_texts(300)]
    for documents in (
        ["low low lower newest widest"],
        [mixed_text],
        ["ab", "ba", "aab", "abb"] * 3,
        well_formed,
    ):
        assert_same_merges("gpt2", documents, 1500, min_frequency)


@pytest.mark.slow
@pytest.mark.fixtures
@pytest.mark.parametrize(("corpus_name", "name"), [("code", "gpt2"), ("multi", "gpt2"), ("zh", "cl100k")])
def test_whole_corpora(documents: Callable[[str, int], list[str]], corpus_name: str, name: str) -> None:
    ours = assert_same_merges(name, documents(corpus_name, MATCH_ALL), 32_000)
    assert len(ours.merges) == 32_000 - 256


@pytest.mark.slow
@pytest.mark.fixtures
def test_the_whole_of_books_as_a_file(documents: Callable[[str, int], list[str]], tmp_path: Path) -> None:
    texts = documents("books", MATCH_ALL)
    ours = assert_same_merges("gpt2", texts, 32_000)
    ours.save(tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in texts[:2000]:
        assert ours.encode(text) == theirs.encode(text).ids
