"""The text of a row of JSON or of a table: of a field, of a field of a field, or of several in a template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from string import Formatter
from typing import Any

from bpe_tokenizer.errors import OptionError, shorten

__all__ = ["field_names", "parse_field", "row_text"]


@lru_cache
def parse_field(field: str) -> tuple[tuple[str, str | None], ...]:
    r"""Return what a document is made of: texts, each with the path of the field whose text follows it.

    A field with braces is a template, as of `str.format`; any other is the path of one field.

    Args:
        field: The option.

    Raises:
        OptionError: The template is not valid.

    >>> parse_field("meta.text"), parse_field("{title}\n{meta.text}.")
    ((('', 'meta.text'),), (('', 'title'), ('\n', 'meta.text'), ('.', None)))
    """
    if "{" not in field and "}" not in field:
        return (("", field),)
    try:
        parts = [
            (text, name, bool(rest or conversion))
            for text, name, rest, conversion in Formatter().parse(field)
        ]
    except ValueError as error:
        raise OptionError(f"field is {shorten(field)}, which is no template: {error}") from None
    if not any(name for _, name, _ in parts) or any(name == "" or more for _, name, more in parts):
        raise OptionError(
            f"field is {shorten(field)}; a template names fields in braces, as in '{{title}}: {{text}}', and "
            "nothing else"
        )
    return tuple((text, name) for text, name, _ in parts)


def field_names(field: str) -> list[str]:
    """Return the paths of the fields that a document is made of. Errors: `parse_field`."""
    return [name for _, name in parse_field(field) if name is not None]


def row_text(row: Mapping[str, Any], field: str, as_json: bool = False) -> tuple[str | None, str]:
    """Return the text of a row, or None and what is wrong with the row.

    Args:
        row: The row.
        field: What a document is made of.
        as_json: Whether a value that is no string gives its JSON.

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
