"""The `%` and `{}` of Python's strings, with the tags of what is put in.

Python says what the result is; here it is put together again from its parts. Where the two differ, because a
part does something unusual, the result is Python's and untrusted as a whole.

Source: https://docs.python.org/3/library/stdtypes.html#printf-style-string-formatting and
https://docs.python.org/3/library/string.html#format-string-syntax
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

from bpe_tokenizer.chat.tracked import Tracked, concat, merge_tags
from bpe_tokenizer.chat.values import holds_content, printed, tags_of

__all__ = ["brace_format", "percent_format"]

_CONVERSION = re.compile(
    r"""
    % (?: \( (?P<key> [^()]* ) \) )?
    (?P<flags> [#0\ +-]* ) (?P<width> \* | \d+ )? (?P<precision> \. (?: \* | \d* ) )?
    [hlL]? (?P<kind> . )
    """,
    re.DOTALL | re.VERBOSE,
)


def percent_format(template: str, arguments: Any) -> str:
    """Return `template % arguments`."""
    text = str.__mod__(template, arguments)
    if not holds_content((template, arguments)):
        return text
    if holds_content(template):
        return _untracked(text, (template, arguments), "% was given content as its template")
    named = arguments if isinstance(arguments, Mapping) else None
    positional = list(arguments) if isinstance(arguments, tuple) else [arguments]
    parts: list[str] = []
    start = 0
    for match in _CONVERSION.finditer(template):
        parts.append(template[start : match.start()])
        start = match.end()
        parts.append(_converted(match, named, positional))
    parts.append(template[start:])
    return _checked(concat(parts), text, (template, arguments))


def _converted(match: re.Match[str], named: Mapping[str, Any] | None, positional: list[Any]) -> str:
    """Return what a conversion such as `%5.1f` gives, taking its values away from `positional`."""
    conversion, kind = match.group(), match["kind"]
    if kind == "%":
        return "%"
    stars = conversion.count("*", match.start("flags") - match.start())
    values = [positional.pop(0) for _ in range(min(stars, len(positional)))]
    if match["key"] is not None and named is not None:
        value, key = named[match["key"]], {match["key"]: named[match["key"]]}
        text = str.__mod__(conversion, key)
    elif positional:
        value = positional.pop(0)
        text = str.__mod__(conversion, (*values, value))
    else:
        return ""
    if kind == "s" and not stars:
        return _padded(printed(value), match)
    tags = tuple(tags_of((value, *values)))
    return Tracked(text, merge_tags(tags)) if tags else text


def _padded(text: str, match: re.Match[str]) -> str:
    """Return a text as `%-10.5s` writes it."""
    if match["precision"]:
        text = text[: int(match["precision"][1:] or 0)]
    width = int(match["width"] or 0)
    return text.ljust(width) if "-" in match["flags"] else text.rjust(width)


def brace_format(
    template: str,
    arguments: Sequence[Any],
    named: Mapping[str, Any],
    formatter: Formatter | None = None,
) -> str:
    """Return `template.format(*arguments, **named)`.

    Args:
        template: The template.
        arguments: Its positional arguments.
        named: Its named arguments.
        formatter: Says how fields such as `{0.name[key]}` are looked up.
    """
    formatter = formatter or Formatter()
    text = formatter.vformat(str.__str__(template), arguments, named)
    everything = (template, tuple(arguments), dict(named) if isinstance(named, Mapping) else named)
    if not holds_content(everything):
        return text
    if isinstance(template, Tracked) and template.is_content:
        return _untracked(text, everything, "format() was called with content as its template")
    fields = list(formatter.parse(str.__str__(template)))
    if any("{" in (form or "") for _, _, form, _ in fields):
        return _untracked(text, everything, "a format string has fields in a field")
    counter = iter(range(len(arguments)))
    parts: list[str] = []
    for literal, field, form, conversion in fields:
        parts.append(literal)
        if field is not None:
            if field == "" or field.startswith((".", "[")):
                field = f"{next(counter, '')}{field}"
            value, _ = formatter.get_field(field, arguments, named)
            parts.append(_field(value, form or "", conversion, formatter))
    return _checked(concat(parts), text, everything)


def _field(value: Any, form: str, conversion: str | None, formatter: Formatter) -> str:
    """Return what a replacement field gives."""
    if not form and conversion in (None, "s"):
        return printed(value)
    text = format(formatter.convert_field(value, conversion), form)
    tags = tuple(tags_of(value))
    return Tracked(text, merge_tags(tags)) if tags else text


def _checked(text: str, expected: str, inputs: Any) -> str:
    if text == expected:
        return text
    return _untracked(expected, inputs, "a format string did something that cannot be followed")


def _untracked(text: str, inputs: Any, why: str) -> Tracked:
    return Tracked(str.__str__(text), merge_tags(tags_of(inputs), why))
