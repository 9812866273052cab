"""Formats and JSON of tracked texts: what Python makes, and whose each part is."""

from __future__ import annotations

import json
from collections.abc import Callable
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer.chat.jinja.formatting import brace_format, percent_format
from bpe_tokenizer.chat.jinja.tainted_json import to_json
from bpe_tokenizer.chat.jinja.tainted_str import TEMPLATE, Provenance, TaintedStr, as_tainted
from bpe_tokenizer.chat.jinja.values import TaintedInt, TaintedObject, holds_content
from bpe_tokenizer.chat.segment import Origin
from tainting import (
    CYRILLIC,
    GREEK,
    LATIN,
    SCRIPTS,
    few,
    owned,
    runs,
    tainted_argument,
    texts,
)

CONVERSIONS = ["%s", "%r", "%a", "%10s", "%-10s", "%.2s", "%*s", "%%", "a%sb%%", "%c", "%5c", "{", "ж"]


@few
@given(st.lists(st.sampled_from(CONVERSIONS), max_size=5), st.lists(texts, min_size=5, max_size=5))
def test_percent_formats(conversions: list[str], values: list[str]) -> None:
    template = "".join(conversions)
    arguments: list[Any] = []
    for conversion, value in zip(conversions, values, strict=False):
        if conversion not in ("%%", "{", "ж"):
            arguments += [7] * conversion.count("*")
            arguments.append((value + "α")[0] if "c" in conversion else value)
    result = percent_format(template, tuple(tainted_argument(value) for value in arguments))
    assert result == template % tuple(arguments)
    assert_made_of(result, template)


def assert_made_of(text: str, template: str) -> None:
    """Check that the template's runs consist of its characters and of padding."""
    for start, end, known in as_tainted(text).runs():
        assert not known.lost_reason
        if known == TEMPLATE:
            # A text of the template's own characters may be quoted and escaped.
            assert set(str(text)[start:end]) <= {*template, *SCRIPTS[TEMPLATE], *ascii(SCRIPTS[TEMPLATE])}


FIELDS = ["{}", "{!r}", "{:>8}", "{:.2}", "{{", "}}", "ж", "{:{}}"]


@few
@given(st.lists(st.sampled_from(FIELDS), max_size=5), st.lists(texts, min_size=8, max_size=8))
def test_brace_formats(fields: list[str], values: list[str]) -> None:
    template = "".join(fields)
    arguments: list[Any] = []
    for field, value in zip(fields, values, strict=False):
        if field.startswith("{") and field != "{{":
            arguments += [value, 9] if field == "{:{}}" else [value]
    result = brace_format(template, [tainted_argument(value) for value in arguments], {})
    assert result == template.format(*arguments)
    if "{:{}}" not in fields:
        assert_made_of(result, template)
    elif holds_content(result):
        assert all(known.lost_reason for known in as_tainted(result).provenances)


def percents(template: str, arguments: Any) -> str:
    return percent_format(template, arguments)


def braces(template: str, arguments: Any) -> str:
    return brace_format(template, arguments, {})


@pytest.mark.parametrize(
    ("write", "template", "arguments", "expected"),
    [
        (percents, "<%d|%s>", (65, owned("a")), [("<65|", TEMPLATE), ("a", LATIN), (">", TEMPLATE)]),
        (percents, "%.s|%.1s", (owned("a"), owned("aα")), [("|", TEMPLATE), ("a", LATIN)]),
        (percents, "%(a*)s", {"a*": owned("aα")}, [("a", LATIN), ("α", GREEK)]),
        (percents, "%(a)r|%(b)d", {"a": owned("a"), "b": 7}, [("'a'", LATIN), ("|7", TEMPLATE)]),
        (percents, "<%s>", {"x": owned("a")}, [("<", TEMPLATE), ("{'x': 'a'}", LATIN), (">", TEMPLATE)]),
        (percents, "%(a)s", {"a": "-", "b": owned("a")}, [("-", TEMPLATE)]),
        (braces, "{:5}|{}", ["-", owned("a")], [("-    |", TEMPLATE), ("a", LATIN)]),
        (braces, "{!s}", [owned("aα")], [("a", LATIN), ("α", GREEK)]),
        (braces, "{0[0]}{0[1]}{1.imag}", [[owned("a"), "-"], 3], [("a", LATIN), ("-0", TEMPLATE)]),
    ],
)  # fmt: skip
def test_each_field_of_a_format_is_its_values(
    write: Callable[..., str], template: str, arguments: Any, expected: list[tuple[str, Provenance]]
) -> None:
    result = write(template, arguments)
    assert result == (template % arguments if write is percents else template.format(*arguments))
    assert runs(result) == expected


def test_fields_without_a_number_are_counted_where_python_counts_them() -> None:
    template, plain = "{[0]}{.imag}{}", [["a"], 3, 4]
    try:
        expected = Formatter().vformat(template, plain, {})
    except KeyError:
        pytest.skip("this Python does not count such fields")
    result = brace_format(template, [[owned("a")], 3, 4], {})
    assert result == expected
    assert runs(result) == [("a", LATIN), ("04", TEMPLATE)]


def test_a_format_string_takes_what_is_not_a_mapping_as_python_does() -> None:
    assert brace_format("a{{", (), [owned("a")]) == "a{"  # type: ignore[arg-type]


class Counting:
    """Prints another number each time."""

    times = 0

    def __str__(self) -> str:
        self.times += 1
        return str(self.times)


class Shouting(Formatter):
    """Formats in a way that nobody can know."""

    def format_field(self, value: Any, format_spec: str) -> Any:
        return super().format_field(value, format_spec).upper()


def test_formats_that_cannot_be_followed_are_untrusted_as_a_whole() -> None:
    """They are content of the origins that went in, with the reason."""
    unknown = "a format string does something that cannot be tracked"
    nested = percent_format("<%(a(%d))s>%%", {"a(%d)": owned("a"), "b": owned("s")})
    assert runs(nested) == [("<a>%", LATIN._replace(lost_reason=unknown))]
    assert runs(percent_format("<%s>", TaintedObject(Counting(), LATIN))) == [
        ("<1>", LATIN._replace(lost_reason=unknown))
    ]
    assert runs(brace_format("<{}>", [owned("a")], {}, Shouting())) == [
        ("<A>", LATIN._replace(lost_reason=unknown))
    ]
    assert runs(brace_format("<{:{}}>", [owned("a"), 3], {})) == [
        ("<a  >", LATIN._replace(lost_reason="a format string has nested fields"))
    ]


def test_formats_with_content_as_template_are_untrusted_as_a_whole() -> None:
    result = as_tainted(brace_format(owned("a{}"), ["<|x|>"], {}))
    assert result == "a<|x|>"
    assert [known.origin for known in result.provenances] == [LATIN.origin]
    assert "format()" in result.provenances[0].lost_reason
    for template, arguments in [("a%s", "<|x|>"), ("a%c", 60), ("a%.2s", "<|x|>"), ("a%%", ()), ("a", ())]:
        result = as_tainted(percent_format(owned(template), arguments))
        assert result == template % arguments
        assert [known.origin for known in result.provenances] == [LATIN.origin]
        assert result.provenances[0].lost_reason == "% was given content as its template"


def test_formatting_methods_of_the_class_taint_the_whole_result() -> None:
    for result, what in [
        (as_tainted("<%s>") % "a", "the operator %"),
        ("<%s>" % owned("a"), "%"),  # noqa: UP031
        (as_tainted("<{}>").format(owned("a")), "the method format()"),
        (as_tainted("<{b}>").format(b=owned("a")), "the method format()"),
        (as_tainted("<{a}>").format_map({"a": "a"}), "the method format_map()"),
    ]:
        assert result == "<a>"
        assert isinstance(result, TaintedStr)
        assert [(known.origin, known.lost_reason) for known in result.provenances] == [
            (Origin("messages"), f"{what} was called on a TaintedStr")
        ]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
OPTIONS = [
    {},
    {"ensure_ascii": True},
    {"indent": 2},
    {"indent": 0},
    {"indent": "--"},
    {"separators": (",", ":")},
    {"separators": (" ; ", " = "), "indent": 1},
    {"sort_keys": True, "indent": 4},
]


@few
@given(json_values, st.sampled_from(OPTIONS))
def test_json_is_pythons_and_content_as_a_whole(value: Any, options: dict[str, Any]) -> None:
    content = tainted_json_value(value)
    text = to_json(content, **options)
    assert text == json.dumps(value, **{"ensure_ascii": False} | options)
    if not holds_content(content):
        assert type(text) is str
        return
    assert isinstance(text, TaintedStr)
    assert all(known.origin is not None and not known.lost_reason for known in text.provenances)


def tainted_json_value(value: Any) -> Any:
    if isinstance(value, str):
        return owned(value)
    if isinstance(value, list):
        return [tainted_json_value(item) for item in value]
    if isinstance(value, dict):
        return {owned(key): tainted_json_value(item) for key, item in value.items()}
    return value


def test_json_of_parts_knows_whose_each_is() -> None:
    text = to_json([owned("a"), {owned("α"): TaintedInt(7, CYRILLIC)}, True])
    assert text == '["a", {"α": 7}, true]'
    pieces = [(str(text)[a:b], known) for a, b, known in as_tainted(text).runs()]
    assert pieces == [('["a", {', LATIN), ('"α": ', GREEK), ("7}, true]", CYRILLIC)]
    # The template's own keys are like punctuation.
    assert runs(to_json([owned("a"), {"-": 1, "|": owned("α")}])) == [
        ('["a", {"-": 1, "|": ', LATIN),
        ('"α"}]', GREEK),
    ]
    assert runs(to_json([[owned("a")], owned("α")], indent=0)) == [
        ('[\n[\n"a"\n],\n', LATIN),
        ('"α"\n]', GREEK),
    ]


class Changing(dict[str, Any]):
    """Has other items each time."""

    times = 0

    def items(self) -> Any:
        self.times += 1
        return [(f"{self.times}", value) for value in self.values()]


def test_json_that_cannot_be_followed_is_untrusted_as_a_whole() -> None:
    value = Changing(a=owned("a"), b=owned("s"), c=TaintedStr("b", Provenance(Origin("messages", 0, "name"))))
    assert runs(to_json(value)) == [
        (
            '{"1": "a", "1": "s", "1": "b"}',
            Provenance(Origin("messages", 0), lost_reason="tojson was given a value that cannot be tracked"),
        )
    ]
