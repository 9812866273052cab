"""Runs every option of every command with hostile values, in one process; prints what ends wrongly.

The options come from the application itself, so a new command is covered without a change here.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from typer.main import get_command

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli import main
from bpe_tokenizer.cli.app import create_app
from bpe_tokenizer.cli.commands import COMMANDS

VALUES = [
    *(str(2**70), "-1", "0", "", "a\0b", "\udcff\udcfe", ".", "missing/file", "9" * 5000, "nan", "1e400"),
    "NaN MB",
]
# Arguments that make a command do its work; a new command without a line here runs with its option alone.
WORKING = {
    "train": ["--corpus", "text", "--output", "out", "--vocab-size", "260", "--quiet"],
    "count": ["--corpus", "text", "--output", "counts"],
    "encode": ["--tokenizer", "saved", "--text", "low"],
    "decode": ["--tokenizer", "saved", "--ids", "97"],
    "chat": ["--tokenizer", "saved", "--model", "missing.gguf", "--message", "low"],
    "info": ["--tokenizer", "saved"],
    "convert": ["--tokenizer", "saved", "--output", "converted.json", "--to", "base64-json"],
    "compare": ["saved", "saved", "--corpus", "text"],
    "report": ["--tokenizer", "saved", "--corpus", "text"],
    "tokenize-corpus": ["--tokenizer", "saved", "--input", "text", "--output", "shards"],
    "merge-manifests": ["shards"],
    "view": ["--tokenizer", "saved", "--text", "low", "--plain"],
    "demo": ["--sources", "sources"],
    "doctor": [],
}


class Late(BaseException):
    """A command took too long."""


def late(*_: object) -> None:
    raise Late


def options(command: str) -> list[str]:
    """The options of a command that take a value."""
    group: Any = get_command(create_app(command))
    parameters = group.get_command(click.Context(group), command).params
    return [each.opts[0] for each in parameters if each.opts[0].startswith("--") and not each.is_flag]


def replaced(arguments: list[str], option: str, value: str) -> list[str]:
    """The arguments with another value of an option."""
    if option in arguments:
        at = arguments.index(option)
        return [*arguments[:at], f"{option}={value}", *arguments[at + 2 :]]
    return [*arguments, f"{option}={value}"]


def wrong(arguments: list[str]) -> str:
    """How a command ends wrongly; "" if it does its work, or says one line with a code of 1 or 2."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
    signal.setitimer(signal.ITIMER_REAL, 20)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(arguments)
    except SystemExit as exit_:
        said = err.getvalue()
        lines = said.rstrip("\n").count("\n") + 1
        if exit_.code == 1 and (not said.startswith("bpe-tokenizer: ") or lines != 1 or len(said) > 6000):
            return f"said {said[:300]!r}"
        expected = exit_.code in (0, 1, 2) and "Traceback" not in said and ": unexpected " not in said
        return "" if expected else f"code {exit_.code}: {said[-300:]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "it returned"


def run(commands: list[str]) -> None:
    """Print each command line that ends wrongly, and the number of command lines."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    signal.signal(signal.SIGALRM, late)
    count = 0
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        Path("text").write_text("low lower lowest low")
        Path("sources").mkdir()
        BPETokenizer().train(["low lower"], 258, verbose=False).save("saved")
        for command in commands:
            for option in options(command):
                for value in VALUES:
                    count += 1
                    arguments = [command, *replaced(WORKING.get(command, []), option, value)]
                    if problem := wrong(arguments):
                        print(json.dumps([[each[:60] for each in arguments], problem]), file=sys.__stdout__)
        os.chdir("/")
    print(count, file=sys.__stdout__)


if __name__ == "__main__":
    run(sys.argv[1:] or list(COMMANDS))
