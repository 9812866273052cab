"""The code blocks of pages, and how they are run."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
FLAGS = doctest.ELLIPSIS
_BLOCK = re.compile(r"^(<!-- fixtures -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    text: str
    line: int
    needs_files: bool


def blocks(document: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(document):
        yield Block(found[2], found[3], document.count("\n", 0, found.start(2)) + 1, bool(found[1]))


def run_python(document: str, block: Block, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, {}, document, document, block.line)
    test.globs = names
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert results.attempted > 0
    assert results.failed == 0, "".join(report)


def run_console(
    document: str, block: Block, scripts: Path | None = None, *, shows_progress: bool = False
) -> None:
    """Run each line after `$ ` in a shell that finds an environment's commands, and compare the output.

    The environment is this one, or that of `scripts`. With `shows_progress`, stderr may have anything.
    """
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
    found = str(scripts or sysconfig.get_path("scripts"))
    environment["PATH"] = os.pathsep.join([found, environment["PATH"]])
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert commands[0] == ""
    assert len(commands) > 1
    for each in commands[1:]:
        command, _, expected = each.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, env=environment, check=False
        )
        assert (done.returncode, "" if shows_progress else done.stderr) == (0, ""), command + done.stderr
        printed = done.stdout if not done.stdout or done.stdout.endswith("\n") else done.stdout + "\n"
        same = doctest.OutputChecker().check_output(expected, printed, FLAGS)
        assert same, f"{document}, block at line {block.line}: {command}\n{printed}"
