"""What the documents show is what happens: their Python and console blocks are run, in their order."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from page_core import HAS_CORE
from pages import ROOT, blocks, run_console, run_python


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
@pytest.mark.parametrize(
    ("document", "python", "console"),
    [
        ("README.md", 5, 1),
        ("docs/training.md", 12, 0),
        pytest.param("docs/command-line.md", 0, 1, marks=pytest.mark.sampled(0.25, "long tests")),
        ("docs/tiktoken.md", 3, 0),
        ("docs/formats.md", 1, 0),
        ("docs/streams.md", 2, 0),
        ("docs/chat.md", 6, 0),
        ("docs/inference.md", 2, 0),
        ("docs/batches.md", 1, 0),
        ("docs/differences.md", 3, 0),
        ("docs/rows.md", 9, 0),
        ("docs/migrate-sentencepiece.md", 1, 0),
        ("docs/migrate-minbpe.md", 1, 0),
        ("docs/corpora.md", 6, 0),
        ("docs/columns.md", 2, 0),
        ("docs/distributed.md", 1, 0),
        ("docs/index.md", 2, 0),
        ("docs/cookbook/counting-and-cutting.md", 6, 0),
        ("docs/cookbook/conversations.md", 7, 0),
        ("docs/cookbook/training.md", 7, 0),
        ("docs/cookbook/data-for-models.md", 6, 0),
        ("docs/cookbook/inspecting.md", 7, 0),
        ("docs/api/errors.md", 1, 0),
        ("docs/api/patterns.md", 1, 0),
    ],
)
def test_the_blocks_of_a_document(
    document: str, python: int, console: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if document == "docs/command-line.md" and not HAS_CORE:
        pytest.skip("core.wasm is missing: run `make wasm`")
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


def test_the_make_targets_that_the_documents_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", path.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, path.name


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_make_wasm_fails_without_a_core_where_the_other_targets_go_on(tmp_path: Path) -> None:
    for name in ("core", "formats", "wasm", "readers", "python"):
        (tmp_path / "crates" / name).mkdir(parents=True)
    for name, line in (("rustc", "echo /nonexistent"), ("rustup", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "Cargo.toml").touch()
    shutil.copy(ROOT / "Makefile", tmp_path)
    core = tmp_path / "page" / "core.wasm"
    page = tmp_path / "python" / "bpe_tokenizer" / "view" / "page.html"
    core.parent.mkdir()
    page.parent.mkdir(parents=True)
    (core.parent / "build.py").write_text("import sys, pathlib\npathlib.Path(sys.argv[1]).touch()\n")

    def make(target: str) -> tuple[bool, list[str]]:
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        own = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL")}
        done = subprocess.run(
            ["make", target],
            cwd=tmp_path,
            env={**own, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode == 0, done.stdout.splitlines()

    said = [
        "the page has no core: the Rust target wasm32-unknown-unknown is missing and rustup cannot add it"
    ]
    assert make("wasm") == (False, said)
    assert make(str(page.relative_to(tmp_path))) == (True, said)  # what the other targets need
    core.touch()
    assert make("wasm") == (True, [])
    assert page.exists()
    os.utime(core, (10**9, 10**9))  # an old core is not the core of these sources
    assert make("wasm") == (False, said)
