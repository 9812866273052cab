"""Names of parametrised cases: their values, where pytest would number them (`options0`, `<lambda>3`)."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

__all__ = ["case_id"]

_LONGEST = 60


def case_id(value: object) -> str | None:
    """A short text for a value, the same in every process; None where pytest's own name is as good."""
    text = _text(value)
    if text is None or len(text) <= _LONGEST:
        return None if isinstance(value, str | bytes) else text
    return text[: _LONGEST - 3] + "..."


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str | bytes | int | float):
        return repr(value) if isinstance(value, str | bytes) else str(value)
    if isinstance(value, FunctionType):
        if value.__name__ == "<lambda>":
            return _source(value.__code__)
        cells = [_part(cell.cell_contents) for cell in value.__closure__ or ()]
        return f"{value.__name__}({', '.join(cells)})" if cells else value.__name__
    if isinstance(value, Mapping):
        items = [f"{_part(key)}: {_part(item)}" for key, item in value.items()]
        return f"{{{', '.join(items)}}}"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(_part, value)))}}}"  # the order of a set differs by process
    if isinstance(value, Sequence):
        opening, closing = "()" if isinstance(value, tuple) else "[]"
        return opening + ", ".join(map(_part, value)) + closing
    if is_dataclass(value) and not isinstance(value, type):
        values = [_part(getattr(value, field.name)) for field in fields(value)]
        return f"{type(value).__name__}({', '.join(values)})"
    return None


def _part(value: object) -> str:
    return _text(value) or str(getattr(value, "__name__", type(value).__name__))


def _source(code: CodeType) -> str | None:
    """The body of a lambda; of several in one line, the one that names the same things."""
    for each in _lambdas(code.co_filename)[code.co_firstlineno]:
        compiled: Any = eval(compile(ast.Expression(each), code.co_filename, "eval"))  # makes the function
        if (compiled.__code__.co_names, compiled.__code__.co_consts) == (code.co_names, code.co_consts):
            return ast.unparse(each.body)
    return None


@cache
def _lambdas(path: str) -> defaultdict[int, list[ast.Lambda]]:
    found: defaultdict[int, list[ast.Lambda]] = defaultdict(list)
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Lambda):
            found[node.lineno].append(node)
    return found
