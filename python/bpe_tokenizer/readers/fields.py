"""The text of a row of JSON or of a table: of a field, of a field of a field, or of several in a template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bpe_tokenizer.errors import shorten
from bpe_tokenizer.options import parse_field

__all__ = ["row_text"]


def row_text(row: Mapping[str, Any], field: str, as_json: bool = False) -> tuple[str | None, str]:
    """Return the text of a row, or None and what is wrong with the row.

    Args:
        row: The row.
        field: What a document is made of.
        as_json: Whether another value than a string gives its JSON.

    >>> row_text({"meta": {"text": "low"}, "n": 3}, "{meta.text}!"), row_text({"n": 3}, "n", as_json=True)
    (('low!', ''), ('3', ''))
    >>> row_text({"n": 3}, "n")[1]
    "has no text in the field 'n', but int"
    """
    texts: list[str] = []
    for text, name in parse_field(field):
        texts.append(text)
        if name is None:
            continue
        try:
            value = _value(row, name)
        except KeyError:
            return None, f"has no field {shorten(name, 40)} (its first fields: {_shown(row)})"
        if as_json and not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False)
        if not isinstance(value, str):
            return None, f"has no text in the field {shorten(name, 40)}, but {type(value).__name__}"
        texts.append(value)
    return "".join(texts), ""


def _value(row: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path: of the field of that name, or else of a field of the first one."""
    if path in row:
        return row[path]
    outer, _, rest = path.partition(".")
    if rest and isinstance(row.get(outer), dict):
        return _value(row[outer], rest)
    raise KeyError(path)


def _shown(names: Iterable[str]) -> str:
    return ", ".join(shorten(name, 20) for name in list(names)[:5]) or "none"
