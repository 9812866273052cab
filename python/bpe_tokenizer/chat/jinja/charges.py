"""What the operators, methods, filters and functions of templates charge, before they start.

An operation whose result or time is bounded by its input charges the size of its input. The others are
listed here, each with a bound of its result or time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from typing import Any

from bpe_tokenizer.chat.jinja.budget import charge_tree, over_budget, spend, wrapped
from bpe_tokenizer.chat.jinja.values import CONTAINERS, to_output

__all__ = [
    "charge_call",
    "charge_filter",
    "charge_method",
    "charge_operator",
    "charge_percent",
    "charge_text",
]

# About 40,000 digits. Python multiplies and divides in quadratic time.
_MAX_BITS = 2**17
# Python makes an object of each piece of a text, with its provenance.
_PIECE = 60
_NUMBERS = re.compile(r"\d+")
_CONVERSION = re.compile(r"%(?:\((\w*)\))?[-#0 +]*(\*|\d+)?(?:\.(\*|\d*))?[hlL]?(.)", re.DOTALL)
_CODECS = frozenset(("ascii", "cp1252", "iso88591", "latin1", "utf16", "utf32", "utf8", "utf8sig"))
# Methods that read a text, and do not copy it.
_READING = frozenset(("count", "endswith", "find", "index", "rfind", "rindex", "startswith"))
# These handlers of errors write the name or the number of a character, of up to 100 characters.
_LONG_ERRORS = frozenset(("backslashreplace", "namereplace", "xmlcharrefreplace"))


def _length(value: Any) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _integer(value: Any, default: int = 0) -> int:
    return int(value) if isinstance(value, int) else default


def charge_text(value: Any) -> None:
    """Charge for a visit of a text or of the items of a container."""
    if isinstance(value, (str, bytes)):
        spend(1, len(value))
    elif isinstance(value, Sized):
        spend(1 + len(value) / 4, 2 * len(value))
    else:
        spend(1)


def charge_integer(value: Any) -> None:
    """Reject an integer with very many digits."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise over_budget("calculates with very long integers")


def charge_operator(operator: str, left: Any, right: Any) -> None:
    """Charge for `left operator right`."""
    if isinstance(left, int) and isinstance(right, int):
        charge_integer(left)
        charge_integer(right)
        spend(1, left.bit_length() * right.bit_length() / 2**13)
        bits = left.bit_length() + right.bit_length()
        if operator == "**" and right > 0 and left not in (-1, 0, 1):
            bits = left.bit_length() * right
        if operator in ("*", "**") and bits > _MAX_BITS:
            raise over_budget("calculates with very long integers")
        return
    left, right = wrapped(left), wrapped(right)
    if operator == "*":
        times = right if isinstance(right, int) else left if isinstance(left, int) else 1
        repeated = left if times is right else right
        size = max(times, 0) * _length(repeated)
        spend(2 + (0 if isinstance(repeated, (str, bytes)) else size / 4), 2 * size)
    elif operator == "%":
        spend(1)
        if isinstance(left, (str, bytes)):
            charge_percent(left, right)
    else:
        size = _length(left) + _length(right)
        spend(1 + size / 16, 2 * size)
        if operator == "-" and size:
            # The difference of the keys of a dict hashes all items.
            charge_tree((left, right))


def charge_percent(template: str | bytes, arguments: Any) -> None:
    """Charge for `template % arguments`."""
    text = template.decode("latin-1") if isinstance(template, bytes) else str.__str__(template)
    _, characters = charge_tree(arguments)
    charge_text(template)
    named = arguments if isinstance(arguments, Mapping) else {}
    sizes: dict[str, int] = {}
    has_stars = False
    for conversion in _CONVERSION.finditer(text):
        key, width, precision, _ = conversion.groups()
        if key is not None and key not in sizes:
            nodes, length = charge_tree(named.get(key))
            # The text of a number in a list has about 10 characters.
            sizes[key] = length + 10 * nodes
        has_stars |= "*" in (width, precision)
        numbers = sum(int(number[:12]) for number in (width, precision) if number and number != "*")
        spend(1, numbers + sizes.get(key or "", 10))
    if has_stars:
        values = arguments if isinstance(arguments, tuple) else (arguments,)
        spend(1, sum(abs(value) for value in values if isinstance(value, int)))
    elif not named:
        spend(1, characters)


def charge_format_field(value: Any, form: str) -> None:
    """Charge for a field of `str.format`, whose form is complete."""
    nodes, characters = charge_tree(value)
    widths = sum(int(number[:12]) for number in _NUMBERS.findall(form))
    spend(1, widths + characters + 10 * nodes)


# Methods.


def charge_method(owner: Any, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Charge for `owner.name(*arguments, **named)`, of one of Python's own types."""
    if isinstance(owner, (str, bytes)):
        size = len(owner)
        spend(1, size / 16 if name in _READING else size)
        # Rewriting a text visits each of its parts.
        spend(len(getattr(owner, "ends", ())) / 4)
        charge = _TEXT_METHODS.get(name)
        if charge is not None:
            charge(owner, *arguments, **named)
        return
    if isinstance(owner, int):
        charge_integer(owner)
        # No other method of an integer takes an operand.
        if name == "to_bytes":
            spend(1, sum(value for value in (*arguments, *named.values()) if isinstance(value, int)))
        return
    visited = sum(charge_tree(value)[0] for value in (*arguments, *named.values()))
    size = _length(owner)
    # `list.index(value)` compares the value with each item. Other methods hash their argument.
    spend(1 + (size * visited if name in ("count", "index") else 0) / 16, 2 * size if name == "copy" else 0)


def _charge_width(text: str | bytes, width: Any = 0, *_: Any, **__: Any) -> None:
    spend(1, _integer(width))


def _charge_expandtabs(text: Any, tabsize: Any = 8, *_: Any, **__: Any) -> None:
    tabs = text.count(b"\t" if isinstance(text, bytes) else "\t")
    spend(1, tabs * max(_integer(tabsize), 0))


def _charge_replace(text: Any, old: Any = None, new: Any = None, count: Any = -1, *_: Any, **__: Any) -> None:
    if not isinstance(old, bytes if isinstance(text, bytes) else str):
        return
    found = text.count(old)
    times = _integer(count, -1)
    spend(1, (min(found, times) if times >= 0 else found) * (_length(new) + _PIECE / 2))


def _charge_split(text: Any, sep: Any = None, maxsplit: Any = -1, *_: Any, **__: Any) -> None:
    if isinstance(sep, (str, bytes)) and sep and isinstance(sep, bytes) == isinstance(text, bytes):
        pieces = text.count(sep) + 1
    else:
        spaces = (
            (b" ", b"\n", b"\t", b"\r")
            if isinstance(text, bytes)
            else (" ", "\n", "\t", "\r", "\u3000", "\xa0")
        )
        pieces = sum(map(text.count, spaces)) + len(text) // 16
    times = _integer(maxsplit, -1)
    spend(1, _PIECE * (min(pieces, times + 1) if times >= 0 else pieces))


def _charge_from_right(text: Any, part: Any = None, *_: Any, **named: Any) -> None:
    """Charge for a search from the right, which Python does in the time of both lengths' product."""
    size = _length(named.get("sep", part))
    spend(1, max(len(text) - size, 0) * size / 16)


def _charge_rsplit(text: Any, *arguments: Any, **named: Any) -> None:
    _charge_from_right(text, *arguments, **named)
    _charge_split(text, *arguments, **named)


def _charge_strip(text: Any, chars: Any = None, *_: Any, **__: Any) -> None:
    """Charge for the search of each character in all of `chars`."""
    spend(1, len(text) * _length(chars) / 32)


def _charge_affix(text: Any, affix: Any = None, *_: Any, **__: Any) -> None:
    affixes = affix if isinstance(affix, tuple) else (affix,)
    spend(len(affixes) / 4, sum(map(_length, affixes)) / 16)


def _charge_join(text: Any, pieces: Any = (), *_: Any, **__: Any) -> None:
    lengths = map(_length, pieces) if isinstance(pieces, CONTAINERS) else ()
    spend(1 + _length(pieces) / 4, len(text) * _length(pieces) + sum(lengths))


def _charge_striptags(text: Any, *_: Any, **__: Any) -> None:
    spend(1, len(text) ** 2 / 256)


def _charge_lines(text: Any, *_: Any, **__: Any) -> None:
    spend(1, _PIECE * _lines(text))


def _lines(text: Any) -> int:
    return (
        len(text) + 1
        if isinstance(text, bytes)
        else sum(map(text.count, "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")) + 1
    )


def _charge_translate(text: Any, table: Any = None, *_: Any, **__: Any) -> None:
    values = (
        table.values() if isinstance(table, dict) else table if isinstance(table, (str, list, tuple)) else ()
    )
    charge_text(table)
    spend(1, len(text) * max((_length(value) for value in values), default=1))


def _charge_codec(text: Any, encoding: Any = "utf-8", errors: Any = "strict", *_: Any, **__: Any) -> None:
    name = re.sub(r"[-_ ]", "", str(encoding).lower())
    longest = 100 if errors in _LONG_ERRORS else 4
    spend(1, longest * len(text) if name in _CODECS else len(text) ** 2)


def _charge_maketrans(text: Any, *arguments: Any, **_: Any) -> None:
    spend(1, sum(_PIECE * _length(value) for value in arguments))


_TEXT_METHODS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _charge_width),
    **dict.fromkeys(("encode", "decode"), _charge_codec),
    **dict.fromkeys(("rfind", "rindex", "rpartition"), _charge_from_right),
    **dict.fromkeys(("lstrip", "rstrip", "strip"), _charge_strip),
    **dict.fromkeys(("endswith", "startswith"), _charge_affix),
    "expandtabs": _charge_expandtabs,
    "join": _charge_join,
    "maketrans": _charge_maketrans,
    "replace": _charge_replace,
    "rsplit": _charge_rsplit,
    "split": _charge_split,
    "striptags": _charge_striptags,
    "splitlines": _charge_lines,
    "translate": _charge_translate,
}


# Functions.


def charge_call(function: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Charge for a call of a function that is not a macro."""
    function = wrapped(function)
    owner = getattr(function, "__self__", None)
    if owner is not None and isinstance(
        owner, (str, bytes, int, float, list, tuple, dict, set, frozenset, range)
    ):
        charge_method(owner, getattr(function, "__name__", ""), arguments, named)
        return
    spend(5 + len(arguments) + len(named))
    for value in (*arguments, *named.values()):
        if type(value) is not bool and type(value) is not int:
            nodes, _ = charge_tree(value)
            spend(nodes, _PIECE * _length(value))


def charge_lipsum(n: Any = 5, html: Any = True, *words_in_paragraph: Any, **named: Any) -> None:
    """Charge for `lipsum(n, html, min, max)`."""
    longest = max((100, *map(_integer, (*words_in_paragraph, *named.values()))))
    words = _integer(n) * longest
    spend(2 * words, 10 * words)


# Filters.


def charge_filter(name: str, value: Any, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Charge for `value | name(*arguments, **named)`."""
    spend(2)
    charge = _FILTERS.get(name)
    if charge is None:
        charge_text(value)
    else:
        try:
            charge(value, *arguments, **named)
        except TypeError:
            # The filter reports arguments that it does not know.
            charge_text(value)


def _charge_one(*_: Any, **__: Any) -> None:
    spend(1)


def _charge_tree(value: Any, *arguments: Any, **_: Any) -> None:
    nodes, characters = charge_tree(value)
    spend(nodes / 2, 8 * characters + _PIECE * _length(value))


def _charge_center(value: Any, width: Any = 80) -> None:
    charge_tree(value)
    spend(1, _integer(width))


def _charge_indent(value: Any, width: Any = 4, *_: Any, **__: Any) -> None:
    charge_text(value)
    size = len(width) if isinstance(width, str) else max(_integer(width), 0)
    spend(1, (_lines(value) if isinstance(value, str) else 1) * (size + _PIECE))


def _charge_wordwrap(
    value: Any, width: Any = 79, break_long_words: Any = True, wrapstring: Any = None, *_: Any, **__: Any
) -> None:
    charge_text(value)
    if isinstance(value, str):
        wide = max(_integer(width, 79), 1)
        longest = max(map(len, str.split(value)), default=0)
        lines = 2 * len(value) // wide + _lines(value)
        # A long word is copied for each of its lines.
        spend(len(value) / 8, lines * (_PIECE + _length(wrapstring)) + longest * longest / wide)


def _charge_replace_filter(value: Any, old: Any = None, new: Any = None, count: Any = None) -> None:
    text, old, new = map(to_output, (value, old, new))
    charge_text(text)
    _charge_replace(text, old, new, count)


def _charge_percent_filter(value: Any, *arguments: Any, **named: Any) -> None:
    charge_percent(to_output(value), named or arguments)


def _charge_json(
    value: Any, ensure_ascii: Any = False, indent: Any = None, separators: Any = None, *_: Any, **__: Any
) -> None:
    nodes, characters = charge_tree(value)
    size = _integer(indent) if not isinstance(indent, str) else len(indent)
    spend(
        nodes / 4, 2 * characters + nodes * (10 + sum(map(_length, separators or ())) + _depth(value) * size)
    )


def _depth(value: Any) -> int:
    """Return how deeply containers are nested."""
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [
            item
            for holder in level
            if isinstance(holder, (dict, list, tuple))
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, (dict, list, tuple))
        ]
    return depth


def _charge_batch(value: Any, linecount: Any = 1, fill_with: Any = None) -> None:
    charge_text(value)
    if fill_with is not None:
        spend(1, 2 * _integer(linecount))


def _charge_slice(value: Any, slices: Any = 1, *_: Any, **__: Any) -> None:
    charge_text(value)
    spend(_integer(slices), _PIECE * _integer(slices))


def _charge_sum(value: Any, attribute: Any = None, start: Any = 0) -> None:
    nodes, _ = charge_tree(value)
    if not isinstance(start, (int, float)):
        # Each step copies the sum.
        spend(1, nodes * _length(value))


def _charge_round(value: Any, precision: Any = 0, *_: Any, **__: Any) -> None:
    charge_integer(value)
    places = abs(_integer(precision))
    if places > 1_000:
        raise over_budget("calculates with very long integers")
    bits = value.bit_length() if isinstance(value, int) else 0
    # `round(2, "floor")` multiplies anything, also a text, by 100.
    spend(1, bits * places / 2**11 + _length(value) * 10 ** min(places, 9))


def _charge_int(value: Any, *_: Any, **__: Any) -> None:
    charge_integer(value)
    spend(1, _length(value) ** 2 / 64 if isinstance(value, str) else 1)


def _charge_list(value: Any, *_: Any, **__: Any) -> None:
    charge_text(value)
    spend(1, (_PIECE if isinstance(value, str) else 2) * _length(value))


def _charge_trim(value: Any, chars: Any = None) -> None:
    charge_text(value)
    _charge_strip(to_output(value), chars)


def _charge_pprint(value: Any, *_: Any, **__: Any) -> None:
    """Charge for a print of each container at each depth."""
    _charge_slow(value)
    nodes, characters = charge_tree(value)
    spend(nodes * _depth(value), characters * _depth(value))


def _charge_urlize(value: Any, *arguments: Any, **named: Any) -> None:
    """Charge for the arguments, which each word is compared with, or each address is written with."""
    _charge_quadratic(value)
    size = sum(charge_tree(argument)[1] + _length(argument) for argument in (*arguments, *named.values()))
    spend(1, (charge_tree(value)[1] + 4) / 4 * size)


def _charge_slow(value: Any, *_: Any, **__: Any) -> None:
    """Charge for regular expressions and loops in Python."""
    characters = charge_tree(value)[1]
    spend(characters / 16, 8 * characters)


def _charge_quadratic(value: Any, *_: Any, **__: Any) -> None:
    """Charge for a filter that is quadratic in the length of a text."""
    characters = charge_tree(value)[1]
    spend(characters / 16, 8 * characters + characters * characters / 256)


_FILTERS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(
        ("attr", "count", "d", "default", "first", "items", "last", "length", "random"), _charge_one
    ),
    **dict.fromkeys(
        ("dictsort", "groupby", "max", "min", "sort", "string", "unique", "xmlattr"), _charge_tree
    ),
    **dict.fromkeys(
        ("capitalize", "e", "escape", "forceescape", "lower", "safe", "upper", "urlencode"), _charge_tree
    ),
    **dict.fromkeys(("filesizeformat", "title", "wordcount"), _charge_slow),
    **dict.fromkeys(("list", "reverse"), _charge_list),
    "batch": _charge_batch,
    "center": _charge_center,
    "format": _charge_percent_filter,
    "indent": _charge_indent,
    "int": _charge_int,
    "pprint": _charge_pprint,
    "replace": _charge_replace_filter,
    "round": _charge_round,
    "slice": _charge_slice,
    "striptags": _charge_quadratic,
    "sum": _charge_sum,
    "tojson": _charge_json,
    "trim": _charge_trim,
    "urlize": _charge_urlize,
    "wordwrap": _charge_wordwrap,
}
