"""The page's core gives what the package gives for published vocabularies."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.formats import gguf
from bpe_tokenizer.view.page import published_names
from hostile import hostile_texts
from view.test_wasm import assert_info, assert_same, packed
from wasm_core import WASM, WasmCore

pytestmark = pytest.mark.skipif(not WASM.exists(), reason="core.wasm is missing: make wasm builds it")


@pytest.fixture(scope="module")
def corpus_texts(shared: Path) -> list[str]:
    """The beginnings of the corpora, in parts."""
    texts = []
    for path in sorted((shared / "corpora").glob("*.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            text = file.read(60_000)
        texts += [text, *(text[start : start + 500] for start in range(0, 10_000, 500))]
    return texts


REAL = ["cl100k_base", "o200k_base", "p50k_base", "r50k_base"]


@pytest.mark.fixtures
@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("name", REAL)
def test_real_rank_files(core: WasmCore, name: str, shared: Path, corpus_texts: list[str]) -> None:
    path = shared / "vocab" / f"{name}.tiktoken"
    ours = BPETokenizer.from_tiktoken(path)
    texts = [*hostile_texts(mixtures=500), *corpus_texts]
    known = next(each for each in published_names() if each["name"] == name)
    theirs = core.load_ranks(path.read_bytes(), known["patterns"], known["specialTokens"])
    assert_info(theirs, ours)
    assert_same(theirs, ours, texts)
    assert_same(packed(core, ours), ours, texts)


GGUF = ["falcon", "gpt-2", "llama-bpe", "qwen2", "starcoder"]


@pytest.mark.fixtures
@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("name", GGUF)
def test_real_vectors(
    core: WasmCore, name: str, tmp_path: Path, shared: Path, corpus_texts: list[str]
) -> None:
    path = shared / "vocab" / f"ggml-vocab-{name}.gguf"
    ours = BPETokenizer.from_model(gguf.load(path))
    loaded = [packed(core, ours)]
    if not ours.model.core.keeps_gaps:
        ours.save(tmp_path)
        loaded.append(packed(core, BPETokenizer.load(tmp_path)))
    texts = path.with_suffix(".gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = path.with_suffix(".gguf.out").read_text(encoding="utf-8").split("\n")
    for theirs in loaded:
        for text, line in zip(texts, lines, strict=False):
            assert theirs.ids(text) == [int(number) for number in line.split()], text
        assert_same(theirs, ours, [*texts, *hostile_texts(mixtures=200), *corpus_texts])
