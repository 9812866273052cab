"""Runs the command line as a process, and what the tests of it share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

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


def process(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start the command line as a process with pipes on all sides."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "bpe_tokenizer", *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
