"""Extended and truncated vocabularies, opened by the libraries that other people use."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, Model, _core
from hostile import hostile_texts
from peers.hf_kinds import REAL_MODELS
from peers.hf_transformers import transformers

tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("default")]

WORDS = Path(__file__).read_text(encoding="utf-8")
GREETING = "Viele schöne Grüße aus Köln! 日本語のテキスト。 "


def assert_kept(after: BPETokenizer, before: BPETokenizer) -> None:
    old, new = before.vocab, after.vocab
    assert {token_id: new[token_id] for token_id in old} == old
    assert after.merges[: len(before.merges)] == before.merges
    assert after.special_tokens == before.special_tokens
    assert sorted(new)[len(old) :] == list(range(max(old) + 1, max(old) + 1 + len(new) - len(old)))


def assert_same(theirs: Any, ours: BPETokenizer, texts: list[str]) -> None:
    """Compare with a tokenizer of transformers or tiktoken."""
    options = (
        {"allowed_special": "all"} if isinstance(theirs, tiktoken.Encoding) else {"add_special_tokens": False}
    )
    for text in texts:
        assert theirs.encode(text, **options) == ours.encode(text, allowed_special="all"), repr(text[:200])


def texts(ours: BPETokenizer) -> list[str]:
    hostile = [text for text in hostile_texts(200) if len(text) < 1000 and text.isprintable()]
    return [WORDS, GREETING, *hostile, "a".join(ours.special_tokens) + GREETING]


@pytest.mark.parametrize("special_tokens", [None, ["<|a|>", "<|b|>"], {"<|a|>": 380, "<|b|>": 500}])
def test_transformers_opens_what_was_resized(tmp_path: Path, special_tokens: Any) -> None:
    before = BPETokenizer("cl100k", None).train(WORDS, 350, special_tokens=special_tokens, verbose=False)
    after = copy.copy(before).extend(GREETING * 9, 600, verbose=False)
    assert_kept(after, before)
    for ours in (after, after.truncate_vocab(300)):
        directory = tmp_path / str(len(ours.merges))
        ours.save(directory)
        theirs = transformers.AutoTokenizer.from_pretrained(str(directory))
        assert len(theirs) == len(ours)
        assert_same(theirs, ours, texts(ours))


@pytest.mark.parametrize("special_tokens", [{}, {"<|a|>": 350}, {"<|a|>": 100_257}])
def test_tiktoken_opens_what_was_resized(special_tokens: dict[str, int]) -> None:
    before = BPETokenizer("cl100k", None).train(WORDS, 350, special_tokens=special_tokens, verbose=False)
    after = copy.copy(before).extend(GREETING * 9, len(before) + 60, verbose=False)
    assert_kept(after, before)
    for ours in (after, copy.copy(after).truncate_vocab(300)):
        theirs = ours.to_tiktoken("resized")
        assert_same(theirs, ours, texts(ours))


@pytest.mark.sampled(0.12)
@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"])
def test_published_encodings_are_extended(
    name: str, ranks: Callable[[str], dict[bytes, int]], corpus: Callable[[str, int], str]
) -> None:
    pattern = {"cl100k_base": "cl100k", "o200k_base": "o200k"}.get(name, "gpt2")
    vocab = {rank: token for token, rank in ranks(name).items()}
    before = BPETokenizer.from_vocab(vocab, None, {"<|endoftext|>": max(vocab) + 1}, pattern)
    text = corpus("multi", 200_000)
    after = copy.copy(before).extend(text, len(before) + 500, verbose=False)
    assert len(after) == len(before) + 500
    assert_kept(after, before)
    assert after.decode(after.encode(text)) == text
    assert len(after.encode(text)) < len(before.encode(text))
    theirs = after.to_tiktoken("extended")
    assert_same(theirs, after, [text, *texts(after)])
    small = copy.copy(after).truncate_vocab(1000)
    assert list(small.vocab) == [*range(1000), max(vocab) + 1]
    theirs = small.to_tiktoken("truncated")
    assert_same(theirs, small, [text])


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["falcon", "starcoder", "gpt-neox"])
def test_tokenizers_opens_an_extended_vocabulary_that_lacks_bytes(
    name: str, shared: Path, tmp_path: Path
) -> None:
    path = shared / "vocab" / f"ggml-vocab-{name}.gguf"
    if name == "gpt-neox":
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(REAL_MODELS[name](shared)), encoding="utf-8")
    core = BPETokenizer.load(path).model.core
    assert len({data for data in core.vocab.values() if len(data) == 1}) < 256
    settings = {**core.settings, "keeps_gaps": False}  # as llama.cpp: no merge across a lost byte
    before = BPETokenizer.from_model(Model(_core.Model(core.vocab, core.merges, **settings)))
    after = copy.copy(before).extend(GREETING * 9, len(before) + 20, verbose=False)
    assert_kept(after, before)
    assert len(after.merges) > len(before.merges)
    after.save(tmp_path)
    theirs = pytest.importorskip("tokenizers").Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in texts(after):
        assert theirs.encode(text, add_special_tokens=False).ids == after.encode(text, allowed_special="all")
    assert after.truncate_vocab(before.n_vocab).encode(GREETING) == before.encode(GREETING)
