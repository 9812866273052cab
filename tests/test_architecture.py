"""ARCHITECTURE.md names every file, and the package's imports form no circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "bpe_tokenizer"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`((?:crates|python|tests|benchmarks|docs|tools|\.ci)/[\w./-]+)`", TEXT)
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imported(path: Path) -> Iterator[str]:
    """Yield the package's modules that a file imports, inside functions too, but not for type checkers."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module in FILES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in FILES else node.module for name in names)


def test_what_the_document_names_exists() -> None:
    assert len(NAMED) > 30
    assert [name for name in NAMED if not (ROOT / name).exists()] == []


def test_every_source_file_is_in_the_document() -> None:
    rooms = {Path(name) for name in NAMED}
    sources = [*(ROOT / "crates").glob("*/src/**/*.rs"), *FILES.values()]
    named_nowhere = []
    for source in sources:
        path = source.relative_to(ROOT)
        if path.name in ("lib.rs", "mod.rs", "__init__.py", "__main__.py"):
            continue
        if rooms.isdisjoint([path, path.parent]):
            named_nowhere.append(path.as_posix())
    assert named_nowhere == []


def test_imports_form_no_circle() -> None:
    arrows = {name: set(imported(path)) - {name} for name, path in FILES.items()}
    # What the package exports is imported by users, and by rooms above the tokenizer.
    arrows["bpe_tokenizer"] = set()
    try:
        order = list(TopologicalSorter(arrows).static_order())
    except CycleError as error:
        raise AssertionError(f"a circle of imports: {' <- '.join(error.args[1])}") from None
    assert len(order) >= len(FILES)
