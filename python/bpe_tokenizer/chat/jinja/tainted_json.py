"""JSON of values that hold content. The text is `json.dumps`'s.

All of it is content, with the provenance of each value. Punctuation has that of the value before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bpe_tokenizer.chat.jinja.tainted_str import Provenance, TaintedStr, concat, merge_provenances
from bpe_tokenizer.chat.jinja.values import provenances_of

__all__ = ["to_json"]


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return the JSON of a value, as Hugging Face's templates write it.

    Args:
        value: The value to write.
        ensure_ascii: Write non-ASCII characters as escapes.
        indent: The indentation of a level, a number of spaces or a text; None for one line.
        separators: The text between items, and between a key and its value.
        sort_keys: Sort the keys of objects.
    """
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    text = encoder.encode(value)
    provenances = set(provenances_of((value, indent, separators)))
    if not provenances:
        return text
    if len(provenances) == 1:
        return TaintedStr(text, provenances.pop())
    parts = list(_parts(value, encoder, 0))
    if "".join(part for part, _ in parts) != text:
        return TaintedStr(
            text, merge_provenances(provenances, "tojson was given a value that cannot be tracked")
        )
    return _join_parts(parts)


_Part = tuple[str, Provenance | None]


def _parts(value: Any, encoder: json.JSONEncoder, level: int) -> Iterator[_Part]:
    """Iterate over the JSON of a value in parts with their provenance; None for punctuation."""
    if isinstance(value, dict):
        items = sorted(value.items()) if encoder.sort_keys else list(value.items())
        yield from _enclosed(
            "{}", [_member(key, item, encoder, level) for key, item in items], encoder, level
        )
    elif isinstance(value, (list, tuple)):
        yield from _enclosed("[]", [_parts(item, encoder, level + 1) for item in value], encoder, level)
    else:
        provenances = tuple(provenances_of(value))
        yield encoder.encode(value), merge_provenances(provenances) if provenances else None


def _member(key: Any, item: Any, encoder: json.JSONEncoder, level: int) -> Iterator[_Part]:
    provenances = tuple(provenances_of(key))
    # Only the encoding of an object shows how a key that is not a string is written.
    text = json.dumps({key: 0}, ensure_ascii=encoder.ensure_ascii)[len("{") : -len(": 0}")]
    yield text, merge_provenances(provenances) if provenances else None
    yield encoder.key_separator, None
    yield from _parts(item, encoder, level + 1)


def _enclosed(
    brackets: str, items: list[Iterator[_Part]], encoder: json.JSONEncoder, level: int
) -> Iterator[_Part]:
    """Iterate over the parts of an array or object, with the encoder's layout."""
    indent = " " * encoder.indent if isinstance(encoder.indent, int) else encoder.indent
    line = "" if indent is None or not items else "\n" + indent * (level + 1)
    yield brackets[0], None
    for number, item in enumerate(items):
        yield (encoder.item_separator if number else "") + line, None
        yield from item
    yield ("" if not line else "\n" + (indent or "") * level) + brackets[1], None


def _join_parts(parts: list[_Part]) -> str:
    """Join parts. Punctuation has the provenance of the part before it, or of the first part."""
    current = next(provenance for _, provenance in parts if provenance is not None)
    tainted = []
    for text, provenance in parts:
        current = provenance or current
        tainted.append(TaintedStr(text, current))
    return concat(tainted)
