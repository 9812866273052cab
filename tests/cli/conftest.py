"""Fixtures of the tests of the command line."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli import main
from command_line import TEXT, Result, Run


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process, with `stdin` piped in; None: the keyboard of a terminal."""

    def run_it(*arguments: object, stdin: bytes | None = b"") -> Result:
        keyboard = _Terminal(io.BytesIO())
        monkeypatch.setattr(sys, "stdin", keyboard if stdin is None else io.TextIOWrapper(io.BytesIO(stdin)))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(each) for each in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        assert isinstance(exit_.value.code, int)
        return Result(exit_.value.code, out, err.decode("utf-8"))

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
