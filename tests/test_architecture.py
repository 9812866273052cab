"""ARCHITECTURE.md is the house as it stands: every room is there, and imports point downwards."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "bpe_tokenizer"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`((?:crates|python|tests|benchmarks|docs|tools|\.ci)/[\w./-]+)`", TEXT)
# The package's rooms as the table lists them, from top to bottom.
ROOMS = [
    room.rstrip("/") for room in re.findall(r"^\| `python/bpe_tokenizer/([\w./]+)` \|", TEXT, re.MULTILINE)
]
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.name not in ("__main__.py",))


def imported(path: Path) -> Iterator[str]:
    """Name the modules of the package that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "bpe_tokenizer")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bpe_tokenizer":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str:
    """Return the room of `bpe_tokenizer.room.name`; what the package itself exports is the tokenizer's."""
    name = module.split(".")[1]
    if name in ("BPETokenizer", "__version__"):
        return "tokenizer.py"
    return name if (PACKAGE / name).is_dir() else f"{name}.py"


def test_what_the_document_names_exists() -> None:
    assert len(NAMED) > 30
    assert [name for name in NAMED if not (ROOT / name).exists()] == []


def test_every_source_file_is_in_the_document() -> None:
    rooms = {Path(name) for name in NAMED}
    sources = [*(ROOT / "crates").glob("*/src/**/*.rs"), *FILES]
    named_nowhere = []
    for source in sources:
        path = source.relative_to(ROOT)
        if path.name not in ("lib.rs", "mod.rs", "__init__.py") and rooms.isdisjoint([path, path.parent]):
            named_nowhere.append(path.as_posix())
    assert named_nowhere == []


@pytest.mark.parametrize("path", FILES, ids=[path.relative_to(PACKAGE).as_posix() for path in FILES])
def test_imports_point_downwards(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0]
    if room == "__init__.py":
        return
    others = {room_of(module) for module in imported(path)} - {room, "_core.py"}
    if room == "reference":
        assert others == set()
    else:
        assert [other for other in others if ROOMS.index(other) < ROOMS.index(room)] == []
