"""Every way of `BPETokenizer` from and to files; the formats themselves have tests of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, NotTrainedError


class Mine(BPETokenizer):
    """A subclass is what its constructors make."""


@pytest.fixture(scope="module")
def small() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train("low low lower lowest", 260, verbose=False)


SAVES: dict[str, Callable[[BPETokenizer, Path], Any]] = {
    "huggingface": lambda tokenizer, path: tokenizer.save(path),
    "exported": lambda tokenizer, path: tokenizer.export(path, "huggingface"),
    "tiktoken": lambda tokenizer, path: tokenizer.export(path, "tiktoken"),
    "gguf": lambda tokenizer, path: tokenizer.export(path, "gguf"),
    "gpt2": lambda tokenizer, path: tokenizer.export(path, "gpt2"),
    "minbpe": lambda tokenizer, path: tokenizer.export(path.with_suffix(".model"), "minbpe"),
    "base64-json": lambda tokenizer, path: tokenizer.export(path, "base64-json"),
    "readable": lambda tokenizer, path: tokenizer.save_readable(path),
}
LOADS: dict[str, Callable[[Path], BPETokenizer]] = {
    "huggingface": Mine.from_pretrained,
    "hub": Mine.from_huggingface,
    "tiktoken": lambda path: Mine.from_tiktoken(path, "gpt2", {}),
    "exported": lambda path: Mine.load(path, "huggingface"),
    "gguf": lambda path: Mine.load(path, "gguf"),
    "gpt2": lambda path: Mine.load(path, "gpt2"),
    "minbpe": lambda path: Mine.load(path.with_suffix(".model"), "minbpe"),
    "base64-json": lambda path: Mine.load(path, "base64-json"),
    "any": Mine.load,
}


@pytest.mark.parametrize("kind", LOADS)
def test_back_and_forth(kind: str, small: BPETokenizer, tmp_path: Path) -> None:
    written = {"hub": "huggingface", "any": "gpt2"}.get(kind, kind)
    SAVES[written](small, tmp_path / "new" / "x")
    loaded = LOADS[kind](tmp_path / "new" / "x")
    assert type(loaded) is Mine
    assert loaded.vocab == small.vocab
    assert loaded.encode("lowest low!") == small.encode("lowest low!")


@pytest.mark.parametrize("kind", SAVES)
def test_nothing_to_save(kind: str, tmp_path: Path) -> None:
    with pytest.raises(NotTrainedError):
        SAVES[kind](BPETokenizer(), tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_str_is_a_path_too(small: BPETokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = small.export("ranks", "tiktoken")
    assert BPETokenizer.from_tiktoken("ranks", **given).vocab == small.vocab
    assert BPETokenizer.load("ranks", **given).vocab == small.vocab
    small.export("pair", "gpt2")
    assert BPETokenizer.load("pair/vocab.json", "gpt2", merges="pair/merges.txt").vocab == small.vocab
