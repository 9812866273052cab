"""Prints the code lines of each room beside its budget: `make size`.

A code line is not blank, not a comment, not in a docstring, and not in the inline tests of a Rust file. All
lines of tests count. The budgets are goals: more than a budget is not an error.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Tokens that make no line a code line.
IGNORED = {"COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER"}
RUST_TESTS = re.compile(
    r"^#\[cfg\(test\)\]\n(?:#\[.*\]\n)*(?:pub\(crate\) )?mod \w+ \{\n(?s:.*?)^\}\n", re.MULTILINE
)
SUFFIXES = {".py", ".rs", ".js", ".css", ".html"}
# Made of the sources in page/.
BUILT = "page.html"
COMMENTS = re.compile(r"^\s*(?:/\*.*?\*/|//[^\n]*|<!--.*?-->)", re.MULTILINE | re.DOTALL)
PACKAGE = "python/bpe_tokenizer/"
# The totals with their rooms. A file belongs to the first room that contains it; "." is the package's root.
BUDGETS = """
Rust 23500: crates/core/src/ 14000, crates/formats/src/ 4500, crates/readers/src/ 500,
    crates/python/src/ 3000, crates/wasm/src/ 1200
page 5500: page/ 5500
Python 19000: tokenizer.py 1100, formats/ 1000, chat/ 3300, train/ 1000, readers/ 1100, corpus/ 2600,
    distributed/ 800, columns/ 150, inference/ 1600, view/ 1700, display/ 300, cli/ 1500, compat/ 900,
    reference/ 700, . 1600
course 1500: course/ 1500
tests 40000: tests/ 40000
"""


def python_lines(source: str) -> int:
    """Count the code lines of a Python file."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if tokenize.tok_name[token.type] not in IGNORED:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            lines -= set(range(first.lineno, (first.end_lineno or 0) + 1)) if first else set()
    return len(lines)


def all_lines(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def code_lines(path: Path) -> int:
    """Count the code lines of a file."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return python_lines(source)
    return sum(1 for line in COMMENTS.sub("", RUST_TESTS.sub("", source)).splitlines() if line.strip())


def report(root: Path = ROOT) -> Iterator[tuple[str, int, int]]:
    """Yield each room and each total with its lines and its budget."""
    counted: set[Path] = set()
    for paragraph in re.split(r"\n(?=\w)", BUDGETS.strip()):
        total, budget, rooms = re.split(r"[ :]+", paragraph, maxsplit=2)
        count = all_lines if total == "tests" else code_lines
        whole = 0
        for name, limit in (room.split() for room in rooms.split(",")):
            place = root / (PACKAGE if total == "Python" else "") / name
            files = {
                path
                for path in (place, *place.rglob("*"))
                if path.suffix in SUFFIXES and path.name != BUILT and path.is_file()
            }
            files -= counted
            counted |= files
            lines = sum(map(count, files))
            whole += lines
            yield name, lines, int(limit)
        yield f"{total} in all", whole, int(budget)


if __name__ == "__main__":
    print(f"{'':32} {'lines':>7} {'budget':>7}")
    for name, lines, budget in report():
        print(f"{name:32} {lines:7,} {budget:7,}{'  over' if lines > budget else ''}")
