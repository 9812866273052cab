"""The docstrings name each argument once, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import bpe_tokenizer

PACKAGE = Path(bpe_tokenizer.__file__).parent
SECTION = re.compile(r"^Args:\n((?: {4}.*\n|\n)*)", re.MULTILINE)
ENTRY = re.compile(r"^ {4}\*{0,2}(\w+):", re.MULTILINE)


def documented() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, list[str]]]:
    """The place of each function whose docstring has arguments, the function, and their names."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                section = SECTION.search(f"{ast.get_docstring(node)}\n")
                if section:
                    place = f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.name}"
                    yield place, node, ENTRY.findall(section[1])


def test_docstrings_name_each_argument_once() -> None:
    functions = list(documented())
    assert len(functions) > 300
    for place, node, names in functions:
        arguments = node.args
        # Further keyword arguments may be described by their names.
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        expected = {each.arg for each in named} - {"self", "cls"}
        assert len(names) == len(set(names)), place
        assert expected <= set(names), place
        assert arguments.kwarg or arguments.vararg or expected == set(names), place
