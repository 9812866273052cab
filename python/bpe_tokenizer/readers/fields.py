"""The text or the id of a row of JSON or of a table: a field, a field of a field, or a template."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bpe_tokenizer.errors import shorten
from bpe_tokenizer.options import parse_field

__all__ = ["row_id", "row_text"]


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
    return _filled(row, field, "text", _text_or_json if as_json else _text)


def row_id(row: Mapping[str, Any], field: str) -> tuple[str | None, str]:
    """Return the id of a row, a string or an integer, as text; nothing for null; or None and what is wrong.

    >>> row_id({"meta": {"id": 3}}, "meta.id"), row_id({"id": None}, "id")
    (('3', ''), ('', ''))
    >>> row_id({"id": [3]}, "id")[1]
    "has no id in the field 'id', but list"
    """
    return _filled(row, field, "id", _id)


def _filled(
    row: Mapping[str, Any], field: str, what: str, read: Callable[[Any], str | None]
) -> tuple[str | None, str]:
    """Return a field, as `read` has its value, or a template of several; or None and what is wrong."""
    texts: list[str] = []
    for text, name in parse_field(field):
        texts.append(text)
        if name is None:
            continue
        try:
            value = _value(row, name)
        except KeyError:
            return None, f"has no field {shorten(name, 40)} (its first fields: {_shown(row)})"
        found = read(value)
        if found is None:
            return None, f"has no {what} in the field {shorten(name, 40)}, but {type(value).__name__}"
        texts.append(found)
    return "".join(texts), ""


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _text_or_json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _id(value: Any) -> str | None:
    if value is None:
        return ""
    return str(value) if type(value) in (str, int) else None


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
