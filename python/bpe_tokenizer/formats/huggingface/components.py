"""Shared by the components of a tokenizer.json: sequences of steps, and patterns.

The regular expressions of a file are Oniguruma's. `_core` translates them; `regex.py` refuses those that the
two engines read differently.
"""

from __future__ import annotations

import re
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, PatternError, shorten
from bpe_tokenizer.formats.huggingface.regex import objection, regex_escape
from bpe_tokenizer.formats.json_file import Field

__all__ = [
    "flatten_sequence",
    "join_sequence",
    "literal_text",
    "read_character",
    "read_pattern",
    "write_pattern",
]

_ESCAPED = re.compile(r"\\([^a-zA-Z0-9_])")


def flatten_sequence(field: Field, members: str) -> list[Field]:
    """Return the steps of a component in order, including those of nested `Sequence`s.

    Args:
        field: A component; null for none.
        members: The field of a `Sequence` that holds its steps.
    """
    steps: list[Field] = []
    rest = [] if field.is_null else [field]
    while rest:
        step = rest.pop()
        if step.need("type").text() == "Sequence":
            rest.extend(reversed(step.need(members).items()))
        else:
            steps.append(step)
    return steps


def join_sequence(steps: list[dict[str, Any]], members: str) -> dict[str, Any] | None:
    """Return the component of these steps: None, the only step, or a `Sequence`.

    >>> join_sequence([{"type": "NFC"}], "normalizers")
    {'type': 'NFC'}
    """
    if len(steps) > 1:
        return {"type": "Sequence", members: steps}
    return steps[0] if steps else None


def read_character(field: Field) -> str:
    """Return a text of one character.

    Raises:
        FormatError: The text has another length.
    """
    if len(field.text()) != 1:
        raise field.refused("must be one character")
    return field.text()


def read_pattern(field: Field) -> str:
    r"""Read a pattern and translate it to the core's dialect.

    Raises:
        FormatError: The pattern is invalid, or the two regex engines may read it differently.

    >>> from pathlib import Path
    >>> print(read_pattern(Field(Path("tokenizer.json"), "pattern", {"String": "a.b"})))
    a\.b
    """
    if set(field.members()) == {"String"}:
        text = field.get("String").text()
        if not text:
            raise field.get("String").error(
                "is empty, which is not supported; it matches between all characters"
            )
        return regex_escape(text)
    if set(field.members()) != {"Regex"}:
        raise field.refused('must be {"Regex": pattern} or {"String": text}')
    regex = field.get("Regex")
    problem = objection(regex.text(), oniguruma=True)
    if problem is not None:
        raise regex.refused(f"is not supported: it {problem}")
    try:
        pattern = _core.SplitPattern.from_oniguruma(regex.text())
        _core.SplitPattern(pattern)
    except PatternError as error:
        raise regex.refused(f"is not supported: {error}") from error
    return pattern


def write_pattern(pattern: str, component: str) -> dict[str, str]:
    r"""Return a pattern of the core as the file holds it.

    Args:
        pattern: The pattern.
        component: The component of the file, for messages.

    Raises:
        FormatError: The two regex engines may read it differently.

    >>> write_pattern(r"a\.b", "normalizer"), write_pattern(r"a+", "normalizer")
    ({'String': 'a.b'}, {'Regex': 'a+'})
    """
    text = literal_text(pattern)
    if text:
        return {"String": text}
    problem = objection(pattern, oniguruma=False)
    if problem is not None:
        raise FormatError(
            f"{component}: the pattern {shorten(pattern)} {problem}: tokenizer.json cannot hold it"
        )
    try:
        return {"Regex": _core.SplitPattern(pattern).to_oniguruma()}
    except PatternError as error:
        raise FormatError(f"{component}: tokenizer.json cannot hold a pattern: {error}") from error


def literal_text(pattern: str) -> str | None:
    r"""Return the text of a pattern that matches one literal text; None for other patterns.

    >>> literal_text(r"a\.b"), literal_text("a.b")
    ('a.b', None)
    """
    text = _ESCAPED.sub(r"\1", pattern)
    return text if regex_escape(text) == pattern else None
