"""ARCHITECTURE.md names every room; the package's imports have no circle and no upward arrow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "python" / "bpe_tokenizer"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
THREADS = (ROOT / "crates" / "core" / "THREADS.md").read_text(encoding="utf-8")
NAMED = re.findall(
    r"`((?:crates|python|course|tests|fuzz|benchmarks|docs|tools|page|\.ci)/[\w./-]+)`", TEXT + THREADS
)
FILES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
# The rows of the package's table from top to bottom: folders and files.
PACKAGE_TABLE = TEXT.partition("## The package")[2].partition("\n### ")[0]
ROWS = re.findall(r"^\| `python/(bpe_tokenizer/[\w/.]+)` \|", PACKAGE_TABLE, re.MULTILINE)
# A row after the row of its folder describes a part of that room; before it, it is a room.
ROOMS = [row for number, row in enumerate(ROWS) if not row.startswith(tuple(ROWS[:number]))]
MAX_ROOT_MODULES = 21
MAX_INHERITANCE = 2


# Every worker of pytest-xdist imports this file, and one runs its tests: what is slow is a function.
@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


@cache
def exports() -> dict[str, str]:
    """Return the module that defines each public name, from the imports of the package's `__init__`."""
    return {
        alias.name: node.module
        for node in ast.walk(trees()["bpe_tokenizer"])
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the package's modules that a file imports, inside functions too, but not for type checkers."""
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
        elif isinstance(node, ast.ImportFrom) and node.module == "bpe_tokenizer":
            # A public name stands for the module that defines it.
            for alias in node.names:
                module = f"bpe_tokenizer.{alias.name}"
                yield module if module in FILES else exports().get(alias.name, "bpe_tokenizer._core")
        elif isinstance(node, ast.ImportFrom) and node.module in FILES:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in FILES else node.module for name in names)


@cache
def arrows() -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    imports = {name: set(imported(tree)) - {name} for name, tree in trees().items()}
    # `__init__` exports what users import; inside the package `exports` resolves such an import.
    return imports | {"bpe_tokenizer": set()}


def room(module: str) -> str | None:
    """Return the most specific room that a module is in."""
    path = FILES[module].relative_to(PACKAGE.parent).as_posix()
    fitting = [name for name in ROOMS if path == name or (name.endswith("/") and path.startswith(name))]
    return max(fitting, key=len, default=None)


def test_what_the_document_names_exists() -> None:
    assert len(NAMED) > 30
    assert [name for name in NAMED if not (ROOT / name).exists()] == []
    files = [
        f"/{path.relative_to(ROOT).as_posix()}"
        for top in ("crates", "python", "tests")
        for path in (ROOT / top).rglob("*.*")
    ]
    ends = [
        name for name in re.findall(r"`([\w/]+\.(?:rs|py))`", TEXT + THREADS) if not (ROOT / name).exists()
    ]
    assert len(ends) > 50
    assert [name for name in ends if not any(file.endswith(f"/{name}") for file in files)] == []


def test_the_first_line_of_every_source_file_says_what_it_does() -> None:
    sources = [*(ROOT / "crates").glob("*/src/**/*.rs"), *FILES.values(), *(ROOT / "course").rglob("*.py")]
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in sources
        if not path.read_text(encoding="utf-8").startswith(("//! ", '"""', 'r"""'))
    ]
    assert silent == []


def test_the_document_names_every_room() -> None:
    rooms = {Path(name) for name in NAMED} - {PACKAGE.relative_to(ROOT)}
    own = {PACKAGE / "__init__.py", PACKAGE / "__main__.py"}
    files = [*(ROOT / "crates").glob("*/src/**/*.rs"), *({*FILES.values()} - own)]
    sources = [path.relative_to(ROOT) for path in files]
    assert [path.as_posix() for path in sources if rooms.isdisjoint([path, *path.parents])] == []


def test_imports_form_no_circle() -> None:
    try:
        order = list(TopologicalSorter(arrows()).static_order())
    except CycleError as error:
        raise AssertionError(f"a circle of imports: {' <- '.join(error.args[1])}") from None
    assert len(order) >= len(FILES)


def test_rooms_import_downwards_only() -> None:
    assert len(ROOMS) > 15
    upward = []
    for module, targets in arrows().items():
        for target in targets & FILES.keys():
            above, below = room(module), room(target)
            if above is not None and below is not None and ROOMS.index(above) > ROOMS.index(below):
                upward.append(f"{module} imports {target}, which is in a higher room")
    assert sorted(upward) == []


def test_the_lesson_is_alone() -> None:
    lesson = {name for name in FILES if name.startswith("bpe_tokenizer.reference")}
    assert [name for name in lesson if arrows()[name] - lesson] == []
    # Only the course, tests and examples import it.
    assert [name for name, targets in arrows().items() if name not in lesson and targets & lesson] == []


def test_at_most_two_levels_of_inheritance() -> None:
    bases = {
        node.name: [base.id for base in node.bases if isinstance(base, ast.Name)]
        for _, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }

    @cache
    def depth(name: str) -> int:
        # `TokenizerError` only marks the errors of the package.
        own = [base for base in bases[name] if base in bases and base not in (name, "TokenizerError")]
        return 1 + max(map(depth, own), default=0)

    assert {name: depth(name) for name in bases if depth(name) > MAX_INHERITANCE} == {}


def test_the_root_has_few_modules() -> None:
    modules = [path.name for path in PACKAGE.glob("*.py")]
    assert len(modules) <= MAX_ROOT_MODULES, sorted(modules)
