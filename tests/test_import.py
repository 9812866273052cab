"""`import bpe_tokenizer` loads only what every program needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import bpe_tokenizer

ROOMS = [
    "chat",
    "compat",
    "corpus",
    "distributed",
    "formats",
    "inference",
    "reference",
    "train",
    "view",
    "cli",
]
LIBRARIES = [
    "typer",
    "rich",
    "jinja2",
    "asyncio",
    "http.client",
    "tiktoken",
    "torch",
    "tokenizers",
    "pyarrow",
]


def modules_after(code: str) -> set[str]:
    """Return the modules that a fresh process has loaded after running code."""
    code = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(run.stdout.split())


def test_rooms_and_libraries_load_on_use() -> None:
    loaded = modules_after("import bpe_tokenizer")
    unwanted = {f"bpe_tokenizer.{room}" for room in ROOMS} | {*LIBRARIES}
    assert sorted(unwanted & loaded) == []


def test_the_import_adds_few_modules_to_numpys() -> None:
    added = modules_after("import bpe_tokenizer") - modules_after("import numpy")
    roots = {name.split(".")[0] for name in added}
    assert roots - {"bpe_tokenizer", "numpy"} <= sys.stdlib_module_names
    assert not added & {"pathlib", "hashlib", "inspect", "json", "tempfile"}  # each costs milliseconds
    ours = [name for name in added if name.startswith("bpe_tokenizer")]
    assert len(ours) <= 16, sorted(ours)
    assert len(added) <= 50, sorted(added)  # those of the standard library differ from one Python to the next


def test_dir_shows_the_public_names() -> None:
    assert bpe_tokenizer.__version__.count(".") >= 2
    assert dir(bpe_tokenizer) == sorted({*bpe_tokenizer.__all__})
    assert len(dir(bpe_tokenizer)) == len(bpe_tokenizer.__all__)


@pytest.mark.parametrize("name", bpe_tokenizer.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(bpe_tokenizer, name) is not None


@pytest.mark.parametrize("room", ["chat", "formats", "inference", "results", "train", "view"])
def test_rooms_are_attributes(room: str) -> None:
    assert f"bpe_tokenizer.{room}" in modules_after(f"import bpe_tokenizer; bpe_tokenizer.{room}")


def test_the_version_needs_no_command_line_library() -> None:
    loaded = modules_after(
        "from bpe_tokenizer.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass"
    )
    assert {"bpe_tokenizer", "bpe_tokenizer.cli"} <= loaded
    assert not loaded & {"typer", "rich", "jinja2", "bpe_tokenizer.formats"}


def test_another_interpreter_is_refused_in_one_sentence() -> None:
    interpreters = pytest.importorskip("concurrent.interpreters", reason="Python 3.14 has it")
    refused = "module bpe_tokenizer._core does not support loading in subinterpreters"
    with pytest.raises(interpreters.ExecutionFailed, match=refused):
        interpreters.create().exec("import bpe_tokenizer")
