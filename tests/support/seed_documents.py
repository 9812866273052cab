"""Cuts programs and calls out of the source documents, by their structure, and runs them as they are."""

from __future__ import annotations

import ast
import contextlib
import io
import logging
import os
import re
import sys
import types
from inspect import signature
from pathlib import Path
from typing import Any, cast

import pytest

from bpe_tokenizer import reference
from bpe_tokenizer.compat import tiktoken
from tiktoken_files import fill_cache

__all__ = [
    *("DIFFERENT", "cells", "check_arguments", "check_signatures", "commented", "definitions"),
    *("document", "fenced", "is_python", "run", "seed_directory"),
]

# Which printed place differs, and the heading of docs/differences.md that says why.
DIFFERENT = {
    "000: special tokens in encode": "Special tokens are text by default",
    "002: decode of unknown ids": "Unknown ids are errors",
    "002: special tokens over learned ids": "Ids are reserved, not overwritten",
    "003: ids from 257": "The lesson",
    "004: unfinished encode": "The lesson",
}


def seed_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the documents; the current directory is empty, and their imports are ours."""
    fixtures = os.environ.get("BPE_TOKENIZER_FIXTURES")
    if fixtures is None or not (Path(fixtures) / "seeds").is_dir():
        pytest.skip("BPE_TOKENIZER_FIXTURES names no directory with seeds")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "ranks"))
    (tmp_path / "ranks").mkdir()
    fill_cache(tmp_path / "ranks", Path(fixtures) / "vocab", ["gpt2", "cl100k_base"])
    for name, module in {
        "legollm": types.ModuleType("legollm"),
        "legollm.core": types.ModuleType("legollm.core"),
        "legollm.core.tokenization": reference,
        "legollm.core.utils": module_with(read_file=lambda path: Path(path).read_text(encoding="utf-8")),
        "legollm.logging": module_with(logger=logging.getLogger("legollm")),
        "tiktoken": tiktoken,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    return Path(fixtures) / "seeds"


def module_with(**names: object) -> types.ModuleType:
    module = types.ModuleType("made")
    vars(module).update(names)
    return module


def document(seeds: Path, number: str) -> str:
    """The text of a document; the spaces of 002 that Python cannot read are plain ones."""
    return (seeds / f"{number}.txt").read_text(encoding="utf-8").replace("\N{NO-BREAK SPACE}", " ")


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run(source: str, names: dict[str, Any], shows_last: bool = False) -> str:
    """Run a source, and return what it prints; like a notebook, with its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if shows_last and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "document", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(cast("ast.Expr", last).value), "document", "eval"), names)
            if value is not None:
                print(repr(value))
    return printed.getvalue()


def commented(source: str) -> str:
    """What the comments after `print` say that it prints."""
    return "".join(f"{comment}\n" for comment in re.findall(r"^print\(.*\) +# (.*)$", source, re.MULTILINE))


def definitions(source: str) -> dict[str, ast.FunctionDef]:
    """The functions of the chapters of 002: each ends at the first line without indentation."""
    found = {}
    for match in re.finditer(r"^def \w+\((?:.*\n)(?:[ )].*\n|\s*\n)*", source, re.MULTILINE):
        (function,) = ast.parse(match.group()).body
        assert isinstance(function, ast.FunctionDef)
        found[function.name] = function
    return found


def cells(text: str) -> list[tuple[str, str]]:
    """The code of each cell, and what follows it: the output, and text.

    The code is the longest part that Python can read, up to an empty line, without literals at its end: an
    output may be Python, too.
    """
    found = []
    for cell in re.split(r"^In \[.*\]:$", text, flags=re.MULTILINE)[1:]:
        paragraphs = re.split(r"(\n\s*\n)", cell.strip())
        ends = [end for end in range(1, len(paragraphs) + 1, 2) if is_python("".join(paragraphs[:end]))]
        end = max(ends, default=0)
        while end > 1 and is_output(paragraphs[end - 1]):
            end -= 2
        found.append(("".join(paragraphs[:end]).strip(), "".join(paragraphs[end:]).strip()))
    return found


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def is_output(paragraph: str) -> bool:
    if not is_python(paragraph):
        return False
    values = [node.value for node in ast.parse(paragraph).body if isinstance(node, ast.Expr)]
    shown = {"bytearray", "Counter", "deque"}
    calls = [
        value for value in values if isinstance(value, ast.Call) and getattr(value.func, "id", "") in shown
    ]
    literals = [value for value in values if isinstance(value, ast.Constant | ast.List | ast.Tuple)]
    return bool(values) and len(calls) + len(literals) == len(ast.parse(paragraph).body)


def check_signatures(defined: list[Any], module: Any) -> int:
    """Check that our functions take the printed arguments, by position and by name; return how many."""
    functions = [(node, getattr(module, node.name)) for node in defined if isinstance(node, ast.FunctionDef)]
    for node in defined:
        for method in node.body if isinstance(node, ast.ClassDef) else []:
            ours = getattr(getattr(module, node.name), getattr(method, "name", ""), None)
            private = "_(?!_call|_init)"
            if isinstance(method, ast.FunctionDef) and callable(ours) and not re.match(private, method.name):
                functions.append((method, ours))
    for function, ours in functions:
        check_arguments(function, ours)
    return len(functions)


def check_arguments(printed: ast.FunctionDef, ours: Any) -> None:
    names = [argument.arg for argument in printed.args.args if argument.arg not in ("self", "cls")]
    mine = [name for name in signature(ours).parameters if name != "self"]
    assert mine[: len(names)] == names, printed.name
    required = len(names) - len(printed.args.defaults)
    own = ["self"] if "self" in signature(ours).parameters else []
    signature(ours).bind(*own, *names[:required])  # What is printed is enough.
