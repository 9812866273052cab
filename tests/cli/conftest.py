"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from command_line import TEXT, Run, TextResult, TextRun, in_process


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process, with `stdin` piped in; None: the keyboard of a terminal."""
    return in_process(capfdbinary, monkeypatch)


@pytest.fixture
def run_text(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> TextRun:
    """As `run`, with the output as text."""
    run = in_process(capfdbinary, monkeypatch)

    def run_it(*arguments: object, stdin: bytes | None = b"") -> TextResult:
        result = run(*arguments, stdin=stdin)
        return TextResult(result.code, result.text, result.err)

    return run_it


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return path


@pytest.fixture(scope="module")
def directory(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a tokenizer without normalisation, with two special tokens."""
    path = tmp_path_factory.mktemp("tokenizer") / "saved"
    tokenizer = BPETokenizer(normalization=None)
    tokenizer.train(corpus, vocab_size=270, special_tokens=["<|end|>", "<|other|>"], verbose=False)
    tokenizer.save(path)
    return path


@pytest.fixture(scope="module")
def tokenizer(directory: Path) -> BPETokenizer:
    return BPETokenizer.from_pretrained(directory)
