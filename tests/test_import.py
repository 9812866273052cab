"""`import bpe_tokenizer` loads only what every program needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import bpe_tokenizer
from bpe_tokenizer import BPETokenizer

ROOMS = [
    *("chat", "compat", "corpus", "distributed", "formats"),
    *("inference", "reference", "train", "view", "cli"),
]
LIBRARIES = [
    *("typer", "rich", "jinja2", "asyncio", "http.client"),
    *("tiktoken", "torch", "tokenizers", "pyarrow"),
]


def modules_after(code: str) -> set[str]:
    """Return the modules that a fresh process has loaded after running code."""
    code = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=200
    )
    return set(run.stdout.split())


def test_rooms_and_libraries_load_on_use() -> None:
    loaded = modules_after("import bpe_tokenizer")
    unwanted = {f"bpe_tokenizer.{room}" for room in ROOMS} | {*LIBRARIES}
    assert sorted(unwanted & loaded) == []


def test_the_import_adds_few_modules() -> None:
    added = modules_after("import bpe_tokenizer") - modules_after("")
    roots = {name.split(".")[0] for name in added}
    assert roots - {"bpe_tokenizer"} <= sys.stdlib_module_names
    assert not added & {"pathlib", "hashlib", "json", "tempfile", "pickle"}  # each costs milliseconds
    ours = [name for name in added if name.startswith("bpe_tokenizer")]
    assert len(ours) <= 16, sorted(ours)


@pytest.mark.parametrize(
    ("call", "needs_numpy"),
    [
        ("decode(tokenizer.encode('low lower'))", False),
        ("count_tokens('low lower')", False),
        ("encode_with_offsets('low lower')", False),
        ("encode_to_numpy('low lower')", True),
    ],
)
def test_arrays_load_numpy(tokenizer: BPETokenizer, tmp_path: Path, call: str, needs_numpy: bool) -> None:
    tokenizer.save(tmp_path)
    load = f"import bpe_tokenizer\ntokenizer = bpe_tokenizer.BPETokenizer.load({str(tmp_path)!r})\n"
    assert ("numpy" in modules_after(f"{load}tokenizer.{call}")) is needs_numpy
    if needs_numpy:  # the import of a broken installation fails, and so does one that Ctrl-C ends
        caught = f"try: tokenizer.{call}\nexcept ImportError: raise SystemExit(3)"
        broken = f"import sys\nsys.modules['numpy'] = None\n{load}{caught}"
        assert subprocess.run([sys.executable, "-c", broken], timeout=200).returncode == 3


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
