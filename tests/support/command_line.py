"""Runs the command line as a process, and what the tests of it share."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pytest

from bpe_tokenizer.cli import main

TEXT = "low low low low low lower lower newest newest newest newest newest newest widest widest widest\n"
HOSTILE = "Grüße,\r\n\tdu 🙂!\x00 <|end|> ﬁn\n\n  e\u0301"


class Result(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode("utf-8")


Run = Callable[..., Result]


class TextResult(NamedTuple):
    code: int
    out: str
    err: str


TextRun = Callable[..., TextResult]


def in_process(capture: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line in this process.

    `stdin` is piped in; None is the keyboard of a terminal.
    """

    def run(*arguments: object, stdin: bytes | None = b"") -> Result:
        keyboard = _Terminal(io.BytesIO())
        monkeypatch.setattr(sys, "stdin", keyboard if stdin is None else io.TextIOWrapper(io.BytesIO(stdin)))
        capture.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main([str(each) for each in arguments])
        sys.stdout.flush()
        out, err = capture.readouterr()
        assert isinstance(exit_.value.code, int)
        return Result(exit_.value.code, out, err.decode("utf-8"))

    return run


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def process(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start the command line as a process with pipes on all sides."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "bpe_tokenizer", *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
