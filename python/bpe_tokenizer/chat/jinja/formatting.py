"""Python's `%` operator and `str.format`, with the provenance of each inserted value.

Python computes the result. This module builds the same text from its parts, with their provenance. If the two
texts differ, because of an unusual conversion, the result is Python's and is content as a whole.

Source: https://docs.python.org/3/library/stdtypes.html#printf-style-string-formatting and
https://docs.python.org/3/library/string.html#format-string-syntax
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

from bpe_tokenizer.chat.jinja.tainted_str import TaintedStr, concat, merge_provenances
from bpe_tokenizer.chat.jinja.values import holds_content, provenances_of, to_output

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
        return _tainted_whole(text, (template, arguments), "% was given content as its template")
    positional = list(arguments) if isinstance(arguments, tuple) else [arguments]
    parts: list[str] = []
    start = 0
    for match in _CONVERSION.finditer(template):
        if match["kind"] == "(":
            return _untracked(text, (template, arguments))  # parentheses inside a key
        parts.append(template[start : match.start()])
        start = match.end()
        parts.append(_convert(match, arguments, positional))
    parts.append(template[start:])
    return _verify(concat(parts), text, (template, arguments))


def _convert(match: re.Match[str], named: Any, positional: list[Any]) -> str:
    """Return the text of a conversion such as `%5.1f`. Removes its values from `positional`."""
    conversion, kind = match.group(), match["kind"]
    if kind == "%":
        return "%"
    stars = conversion.count("*", match.start("flags") - match.start())
    values = [positional.pop(0) for _ in range(stars)]
    if match["key"] is not None:
        value = named[match["key"]]
        text = str.__mod__(conversion, {match["key"]: value})
    else:
        value = positional.pop(0)
        text = str.__mod__(conversion, (*values, value))
    if kind == "s" and not stars:
        return _truncate_and_pad(to_output(value), match)
    provenances = tuple(provenances_of((value, *values)))
    return TaintedStr(text, merge_provenances(provenances)) if provenances else text


def _truncate_and_pad(text: str, match: re.Match[str]) -> str:
    """Return a text as a conversion such as `%-10.5s` writes it."""
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
        template: The format string.
        arguments: The positional arguments.
        named: The named arguments.
        formatter: Looks up fields such as `{0.name[key]}`.
    """
    formatter = formatter or Formatter()
    text = formatter.vformat(str.__str__(template), arguments, named)
    everything = (template, tuple(arguments), named)
    if not holds_content(everything):
        return text
    if holds_content(template):
        return _tainted_whole(text, everything, "format() was called with content as its template")
    fields = list(formatter.parse(str.__str__(template)))
    if any(form and "{" in form for _, _, form, _ in fields):
        return _tainted_whole(text, everything, "a format string has nested fields")
    counter = iter(range(len(arguments)))
    parts: list[str] = []
    for literal, field, form, conversion in fields:
        parts.append(literal)
        if field is not None:
            if field == "" or field.startswith((".", "[")):
                field = f"{next(counter)}{field}"
            value, _ = formatter.get_field(field, arguments, named)
            parts.append(_field(value, form or "", conversion, formatter))
    return _verify(concat(parts), text, everything)


def _field(value: Any, form: str, conversion: str | None, formatter: Formatter) -> str:
    """Return the text of a replacement field."""
    if not form and conversion in (None, "s"):
        return to_output(value)
    text = format(formatter.convert_field(value, conversion), form)
    provenances = tuple(provenances_of(value))
    return TaintedStr(text, merge_provenances(provenances)) if provenances else text


def _verify(text: str, expected: str, inputs: Any) -> str:
    return text if text == expected else _untracked(expected, inputs)


def _untracked(text: str, inputs: Any) -> TaintedStr:
    return _tainted_whole(text, inputs, "a format string does something that cannot be tracked")


def _tainted_whole(text: str, inputs: Any, reason: str) -> TaintedStr:
    return TaintedStr(str.__str__(text), merge_provenances(provenances_of(inputs), reason))
