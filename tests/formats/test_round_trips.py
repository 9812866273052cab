"""From any format that can hold a tokenizer to any other and back: the same tokens, ids and bytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, FormatError, Model, PostProcessor
from bpe_tokenizer.formats import registry
from bpe_tokenizer.formats.verify import differences
from bpe_tokenizer.special_tokens import AllowedSpecial
from hostile import hostile_texts

ALL = ("huggingface", "tiktoken", "gpt2", "gguf", "minbpe", "base64-json")
SUFFIXES = {"minbpe": "x.model", "huggingface": "hf", "gpt2": "pair"}


def through(model: Model, kind: str, directory: Path) -> Model:
    """The model as a format gives it back."""
    path = directory / SUFFIXES.get(kind, "x")
    saved = registry.save(model, path, kind)
    assert all(file.is_file() for file in saved.files)
    assert registry.detect(path)[0].name == kind
    return registry.load(path, **saved.load_kwargs)


def plain(texts: list[str]) -> Model:
    return BPETokenizer("gpt2", None).train(texts, 700, verbose=False).model


def with_special_tokens(texts: list[str]) -> Model:
    tokenizer = BPETokenizer("llama3", None)
    special = {"<|begin_of_text|>": 700, "<|end_of_text|>": 701, "<|x|>": 702}
    return tokenizer.train(texts, 700, special_tokens=special, verbose=False).model


def with_special_tokens_inside(texts: list[str]) -> Model:
    return (
        BPETokenizer("gpt2", None).train(texts, 700, special_tokens=["<|end|>", "<s>"], verbose=False).model
    )


def normalised(texts: list[str]) -> Model:
    return BPETokenizer("qwen2", "NFC").train(texts, 700, special_tokens=["<|im_end|>"], verbose=False).model


def ranks(texts: list[str]) -> Model:
    """Ids that are ranks, the bytes in another order, as in OpenAI's files."""
    learned = BPETokenizer("cl100k", None).train(texts, 700, verbose=False)
    vocab = {
        (token_id * 7 % 256 if token_id < 256 else token_id): token
        for token_id, token in learned.vocab.items()
    }
    return BPETokenizer.from_vocab(vocab, None, {"<|endoftext|>": 700}, "cl100k").model


def template(texts: list[str]) -> Model:
    """What no simple format holds: a template, a named token and flags."""
    model = with_special_tokens_inside(texts)
    added = [
        AddedToken("<|end|>", 256),
        AddedToken("<s>", 257, lstrip=True),
        AddedToken("zwxqv", 800, special=False),
    ]
    return Model(model.core.with_added_tokens(added), {"pad": "<|end|>"}, PostProcessor((257,), (256, 256)))


# What each can be held by. Others must refuse it.
HELD: dict[Callable[[list[str]], Model], tuple[str, ...]] = {
    plain: ALL,
    with_special_tokens: ("huggingface", "tiktoken", "gguf", "minbpe", "base64-json"),
    with_special_tokens_inside: ("huggingface", "tiktoken", "gpt2", "gguf", "base64-json"),
    normalised: ("huggingface", "gpt2", "base64-json"),
    ranks: ("huggingface", "tiktoken", "gguf", "base64-json"),
    template: ("huggingface", "base64-json"),
}


@pytest.fixture(scope="module", params=HELD, ids=lambda make: make.__name__)
def made(
    request: pytest.FixtureRequest, stdlib_texts: list[str], mixed_text: str
) -> tuple[Model, tuple[str, ...]]:
    return request.param([*stdlib_texts, mixed_text]), HELD[request.param]


def assert_same(model: Model, other: Model) -> None:
    assert differences(model, other) == []
    ours, theirs = BPETokenizer.from_model(model), BPETokenizer.from_model(other)
    texts = [*hostile_texts(200), "a<|end|>b<s> <|x|><|endoftext|><|im_end|>zwxqv"]
    every: tuple[AllowedSpecial, ...] = ("none", "all")
    for add, allowed in itertools.product((False, True), every):
        ids: Any = [ours.encode(text, add, allowed) for text in texts]
        assert ids == [theirs.encode(text, add, allowed) for text in texts]
    assert [ours.decode_bytes(row) for row in ids] == [theirs.decode_bytes(row) for row in ids]


@pytest.mark.sampled(0.16)
def test_from_any_format_to_any_other_and_back(made: tuple[Model, tuple[str, ...]], tmp_path: Path) -> None:
    model, kinds = made
    read = {kind: through(model, kind, tmp_path / kind) for kind in kinds}
    for kind, copy in read.items():
        assert_same(model, copy)
        for other in kinds:
            there = through(copy, other, tmp_path / f"{kind}-{other}")
            assert differences(model, there) == []
            assert differences(model, through(there, kind, tmp_path / f"{kind}-{other}-{kind}")) == []


def test_the_others_refuse(made: tuple[Model, tuple[str, ...]], tmp_path: Path) -> None:
    model, kinds = made
    for kind in ALL:
        if kind not in kinds:
            with pytest.raises(FormatError, match=r"^[a-z_]+: "):
                registry.save(model, tmp_path / SUFFIXES.get(kind, "x"), kind)
    assert not list(tmp_path.iterdir())
