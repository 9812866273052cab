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


BULLETS = re.compile(r"^ *- (.*\n(?:^ {2,}\S.*\n)*)", re.MULTILINE)


def arguments_of_class(node: ast.ClassDef) -> set[str]:
    """The arguments that a class describes for all its methods."""
    docstring = f"{ast.get_docstring(node)}\n"
    section = SECTION.search(docstring)
    named = ENTRY.findall(section[1]) if section else []
    return {*named, *re.findall(r"`(\w+)[`=]", "".join(BULLETS.findall(docstring)))}


def documented() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, list[str], set[str]]]:
    """The place of each function whose docstring has arguments, the function, their names, its class's."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shared = {
            id(each): arguments_of_class(node)
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for each in node.body
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                section = SECTION.search(f"{ast.get_docstring(node)}\n")
                if section:
                    place = f"{path.relative_to(PACKAGE)}:{node.lineno}: {node.name}"
                    yield place, node, ENTRY.findall(section[1]), shared.get(id(node), set())


def test_docstrings_name_each_argument_once() -> None:
    functions = list(documented())
    assert len(functions) > 300
    for place, node, names, shared in functions:
        arguments = node.args
        # Further keyword arguments may be described by their names.
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        expected = {each.arg for each in named} - {"self", "cls"}
        assert len(names) == len(set(names)), place
        assert expected <= {*names, *shared}, place
        assert arguments.kwarg or arguments.vararg or {*names} <= expected, place
