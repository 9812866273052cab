"""What the documents show is what happens: their Python and console blocks are run, in their order."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
FLAGS = doctest.ELLIPSIS
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    language: str
    text: str
    line: int


def blocks(document: str) -> Iterator[Block]:
    for found in BLOCK.finditer(document):
        yield Block(found[1], found[2], document.count("\n", 0, found.start()) + 1)


def run_python(document: str, block: Block, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, {}, document, document, block.line)
    test.globs = names
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append, clear_globs=False)
    assert results.attempted > 0
    assert results.failed == 0, "".join(report)


def run_console(document: str, block: Block) -> None:
    """Run each line after `$ ` in a shell that finds this environment's commands, and compare the output."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80"}
    environment["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), environment["PATH"]])
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert commands[0] == ""
    assert len(commands) > 1
    for each in commands[1:]:
        command, _, expected = each.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, env=environment, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        printed = done.stdout if not done.stdout or done.stdout.endswith("\n") else done.stdout + "\n"
        same = doctest.OutputChecker().check_output(expected, printed, FLAGS)
        assert same, f"{document}, block at line {block.line}: {command}\n{printed}"


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
@pytest.mark.parametrize(
    ("document", "python", "console"),
    [
        ("README.md", 10, 1),
        ("docs/training.md", 10, 0),
        ("docs/command-line.md", 0, 1),
        ("docs/tiktoken.md", 3, 0),
        ("docs/formats.md", 1, 0),
        ("docs/streams.md", 2, 0),
        ("docs/chat.md", 7, 0),
        ("docs/inference.md", 2, 0),
        ("docs/batches.md", 1, 0),
        ("docs/differences.md", 11, 0),
        ("docs/rows.md", 9, 0),
        ("docs/migrate-tiktoken.md", 1, 0),
        ("docs/migrate-transformers.md", 1, 0),
        ("docs/migrate-sentencepiece.md", 1, 0),
        ("docs/migrate-minbpe.md", 2, 0),
        ("docs/corpora.md", 1, 0),
        ("docs/distributed.md", 1, 0),
    ],
)
def test_the_blocks_of_a_document(
    document: str, python: int, console: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    ran = []
    for block in blocks((ROOT / document).read_text(encoding="utf-8")):
        if block.language == "python":
            run_python(document, block, names)
        elif block.language == "console":
            run_console(document, block)
        ran.append(block.language)
    assert ran.count("python") == python
    assert ran.count("console") == console


@pytest.mark.parametrize(
    "document", [path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]]
)
def test_links_to_files_lead_somewhere(document: str) -> None:
    path = ROOT / document
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{document} links to {target}"


def test_the_make_targets_that_the_documents_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, path.name
