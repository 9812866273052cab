"""The JavaScript package gives the ids of this one: from ranks, from tokenizer.json, and after training."""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.formats import huggingface
from hostile import hostile_texts
from small_tokenizers import without_surrogates
from wasm_core import WASM

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "javascript"

pytestmark = [
    pytest.mark.skipif(not WASM.exists(), reason="core.wasm is missing: make wasm builds it"),
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the package."""
    made = tmp_path_factory.mktemp("javascript") / "node_modules" / "bpe-tokenizer"
    subprocess.run([sys.executable, str(SOURCES / "build.py"), str(made)], check=True, timeout=200)
    return made


def node(*arguments: str, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        ["node", *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
        cwd=cwd,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


def encoded(folder: Path, load: str, texts: Sequence[str]) -> list[dict[str, Any]]:
    """What the package makes of texts: `load` is an expression of JavaScript for a tokenizer."""
    project = folder.parents[1]
    (project / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    (project / "encode.mjs").write_text(
        'import { readFileSync } from "node:fs";\n'
        'import { loadRanks, loadTokenizerJson, train } from "bpe-tokenizer";\n'
        f"const tokenizer = {load};\n"
        "console.log(JSON.stringify(JSON.parse(readFileSync('texts.json', 'utf8')).map((text) => {\n"
        "  const ids = tokenizer.encode(text);\n"
        "  const all = tokenizer.encode(text, { special: 'all' });\n"
        "  const [count, decoded] = [tokenizer.count(text), tokenizer.decode(all)];\n"
        "  return { ids: [...ids], all: [...all], count, text: decoded };\n"
        "})));\n",
        encoding="utf-8",
    )
    found: list[dict[str, Any]] = json.loads(node("encode.mjs", cwd=project))
    return found


def assert_same(folder: Path, load: str, ours: BPETokenizer, texts: Sequence[str]) -> None:
    texts = [without_surrogates(text) for text in texts]
    texts += [f"{text[:50]}{token}" for text, token in zip(texts, ours.special_tokens, strict=False)]
    for text, found in zip(texts, encoded(folder, load, texts), strict=True):
        assert found["ids"] == ours.encode(text), text
        assert found["all"] == ours.encode(text, allowed_special="all"), text
        assert found["count"] == len(found["ids"])
        assert found["text"] == ours.decode(found["all"], errors="replace"), text


def test_of_the_package(folder: Path) -> None:
    node("--test", str(SOURCES / "tests.mjs"), cwd=folder, BPE_TOKENIZER_PACKAGE=str(folder))


def test_the_example_of_the_readme(folder: Path) -> None:
    readme = (SOURCES / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall("```js\n(.*?)```", readme, re.DOTALL)
    (folder.parents[1] / "example.mjs").write_text(example, encoding="utf-8")
    (expected,) = re.findall("^// (.*)$", example, re.MULTILINE)
    assert node("example.mjs", cwd=folder.parents[1]).strip() == expected


def test_the_types_describe_what_is_exported(folder: Path) -> None:
    program = 'import("bpe-tokenizer").then((module) => console.log(Object.keys(module).join(" ")))'
    exported = node("--eval", program, cwd=folder.parents[1]).split()
    described = re.findall(
        r"^export (?:class|const|function) (\w+)", (SOURCES / "index.d.ts").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(exported) == sorted(described)


@pytest.mark.parametrize("pattern", ["gpt2", "o200k", "llama3"])
def test_a_trained_tokenizer(folder: Path, pattern: str, tmp_path: Path) -> None:
    corpus = " ".join(hostile_texts(mixtures=100))
    tokenizer = BPETokenizer(pattern, "NFC")
    tokenizer.train(without_surrogates(corpus), 600, special_tokens=["<|end|>", "<|x|>"], verbose=False)
    tokenizer.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    ours = BPETokenizer.from_model(huggingface.loads(path.read_text(encoding="utf-8")))
    load = f"loadTokenizerJson(readFileSync({json.dumps(str(path))}))"
    assert_same(folder, load, ours, hostile_texts(mixtures=200))


def test_training_learns_the_same(folder: Path) -> None:
    text = "low low lower lowest newer wider, the quick é 日本語 日本 " * 5
    ours = BPETokenizer("gpt2", None).train(text, 300, special_tokens={"<|end|>": 256}, verbose=False)
    options = '{ vocabSize: 300, pattern: "gpt2", specialTokens: { "<|end|>": 256 } }'
    assert_same(folder, f"train({json.dumps(text)}, {options}).tokenizer", ours, [text, "lower newest 日本"])


@pytest.mark.fixtures
@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
def test_published_vocabularies(folder: Path, name: str, shared: Path, tmp_path: Path) -> None:
    texts = hostile_texts(mixtures=300)
    for corpus in sorted((shared / "corpora").glob("*.xz")):
        with lzma.open(corpus, "rt", encoding="utf-8") as file:
            texts += file.read(60_000).split("\n\n")
    path = shared / "vocab" / f"{name}.tiktoken"
    ours = BPETokenizer.from_tiktoken(path)
    assert_same(folder, f'loadRanks(readFileSync({json.dumps(str(path))}), "{name}")', ours, texts)
    ours.save(tmp_path)
    json_file = tmp_path / "tokenizer.json"
    alone = BPETokenizer.from_model(huggingface.loads(json_file.read_text(encoding="utf-8")))
    assert_same(folder, f"loadTokenizerJson(readFileSync({json.dumps(str(json_file))}))", alone, texts)
