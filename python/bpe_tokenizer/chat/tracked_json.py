"""JSON of values that hold content: content as a whole, and each part of it knows whose.

The quotes, braces and escapes belong to the part beside them. The text is `json.dumps`'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bpe_tokenizer.chat.tracked import Tag, Tracked, concat, merge_tags
from bpe_tokenizer.chat.values import tags_of

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
        value: What to write.
        ensure_ascii: Whether other characters than ASCII are written as escapes.
        indent: Spaces, or the text, that a level is indented by; None for one line.
        separators: What stands between items, and between a key and its value.
        sort_keys: Whether an object's keys are sorted.
    """
    encoder = json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
    text = encoder.encode(value)
    tags = set(tags_of((value, indent, separators)))
    if not tags:
        return text
    if len(tags) == 1:
        return Tracked(text, tags.pop())
    parts = list(_parts(value, encoder, 0))
    if "".join(part for part, _ in parts) != text:
        return Tracked(text, merge_tags(tags, "tojson was given something that cannot be followed"))
    return _tagged(parts)


_Part = tuple[str, Tag | None]


def _parts(value: Any, encoder: json.JSONEncoder, level: int) -> Iterator[_Part]:
    """Iterate over the JSON of a value in parts, each with its tag; None of punctuation."""
    if isinstance(value, dict):
        items = sorted(value.items()) if encoder.sort_keys else list(value.items())
        yield from _enclosed(
            "{}", [_member(key, item, encoder, level) for key, item in items], encoder, level
        )
    elif isinstance(value, (list, tuple)):
        yield from _enclosed("[]", [_parts(item, encoder, level + 1) for item in value], encoder, level)
    else:
        tags = tuple(tags_of(value))
        yield encoder.encode(value), merge_tags(tags) if tags else None


def _member(key: Any, item: Any, encoder: json.JSONEncoder, level: int) -> Iterator[_Part]:
    tags = tuple(tags_of(key))
    # A key that is no string is written as one, which only an object tells.
    text = json.dumps({key: 0}, ensure_ascii=encoder.ensure_ascii)[len("{") : -len(": 0}")]
    yield text, merge_tags(tags) if tags else None
    yield encoder.key_separator, None
    yield from _parts(item, encoder, level + 1)


def _enclosed(
    brackets: str, items: list[Iterator[_Part]], encoder: json.JSONEncoder, level: int
) -> Iterator[_Part]:
    """Iterate over the parts of an array or object, laid out as the encoder does."""
    indent = " " * encoder.indent if isinstance(encoder.indent, int) else encoder.indent
    line = "" if indent is None or not items else "\n" + indent * (level + 1)
    yield brackets[0], None
    for number, item in enumerate(items):
        yield (encoder.item_separator if number else "") + line, None
        yield from item
    yield ("" if not line else "\n" + (indent or "") * level) + brackets[1], None


def _tagged(parts: list[_Part]) -> str:
    """Join parts; punctuation takes the tag of the part before it, or of the first."""
    current = next(tag for _, tag in parts if tag is not None)
    tracked = []
    for text, tag in parts:
        current = tag or current
        tracked.append(Tracked(text, current))
    return concat(tracked)
