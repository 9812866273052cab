"""What a template's source says before it is rendered: its literals, and what its code charges."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from bpe_tokenizer.chat import template_budget
from bpe_tokenizer.chat.jinja.context import ROLES
from bpe_tokenizer.chat.jinja.literals import TemplateLiterals
from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.errors import ChatTemplateError
from jinja_rendering import USER, pieces

pytestmark = pytest.mark.usefixtures("new_environment")


def literals(*texts: str) -> TemplateLiterals:
    """The literals of a template that outputs the first text and has the others as constants."""
    source = "".join(f"{{{{ {text!r} }}}}" for text in texts[1:])
    return TemplateLiterals(Environment().parse(texts[0] + source))


few_texts = st.lists(st.text(st.sampled_from("<|us"), max_size=4), min_size=1, max_size=4)


@settings(max_examples=60)
@given(few_texts, st.lists(st.text(st.sampled_from("<|us"), min_size=1, max_size=9), max_size=9))
def test_a_template_can_write_the_joins_of_its_literals(texts: list[str], sought: list[str]) -> None:
    """The oracle is a regular expression: a suffix of a part, whole parts, a prefix of a part."""
    parts = [part for part in {*texts, *ROLES} if part]
    suffixes = "|".join(re.escape(part[at:]) for part in parts for at in range(len(part)))
    prefixes = "|".join(re.escape(part[:end]) for part in parts for end in range(1, len(part) + 1))
    joined = re.compile(f"(?:{suffixes})(?:{'|'.join(map(re.escape, parts))})*(?:{prefixes})")
    written = literals(*texts)
    for text in (*sought, *("".join(pair) for pair in pairwise(sought))):
        inside = any(text in literal for literal in texts)
        assert (text in written) == (inside or joined.fullmatch(text) is not None), text


def test_fields_of_formats_split_a_literal() -> None:
    assert "<think:x>" in literals("", "<think{}>", ":x")
    assert "<think:x>" in literals("", "<think%s>", ":x")
    assert "<think:y>" not in literals("", "<think%s>", ":x")


def test_long_tokens_are_found_inside_one_literal_only() -> None:
    written = literals("a" * 70, "-" * 70)
    assert "a" * 32 + "-" * 32 in written
    assert "a" * 33 + "-" * 32 not in written
    assert "a" * 70 in written
    assert "a" * 71 not in written


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<{{ 'a' }}{{ 1 + 1 }}{{ none }}{{ c }}", [("<a2None", None), ("Hi<|x|>", "content")]),
        ("{{ ('-' ~ c, c ~ '+') | tojson }}", [('["-Hi<|x|>", "Hi<|x|>+"]', "content")]),
        ("{% set a, b = '-' ~ c, c ~ '+' %}{{ a }}", [("-", None), ("Hi<|x|>", "content")]),
        ("{{ '-' ~ c in ['-Hi<|x|>'], '-' ~ c not in ['-Hi<|x|>'] }}", [("(True, False)", None)]),
        ("{% for m in messages if m.content == c %}{{ loop.length }}{% endfor %}", [("1", None)]),
        ("{% for m in [1, 2, 3] if m is odd %}{{ m }}{% endfor %}", [("13", None)]),
    ],
)
def test_compiled_code_gives_what_the_source_says(
    source: str, expected: list[tuple[str, str | None]]
) -> None:
    assert pieces("{% set c = messages[0].content %}" + source) == expected


@pytest.mark.parametrize(
    "source",
    [
        # The passes of a loop, of a macro, of a call, and the items that a test sees.
        "{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}",
        "{% macro m(n) %}{{ m(n - 1) ~ m(n - 1) if n }}{% endmacro %}{{ m(30) }}",
        "{% macro m() %}{% for i in range(1000) %}{{ caller() }}{% endfor %}{% endmacro %}"
        "{% for i in range(1000) %}{% call m() %}{% set x = [1, 2, 3] %}{% endcall %}{% endfor %}",
        "{% for i in range(3000) %}{% for j in range(1000) if false %}{% endfor %}{% endfor %}",
        # What is searched, also for a constant.
        "{% set big = range(1000) | list %}{% for i in range(500) %}{{ 'a' in big }}{% endfor %}",
        "{% set big = range(1000) | list %}{% for i in range(500) %}{{ 'a' not in big }}{% endfor %}",
        # A body costs more the more is in it.
        "{% for i in range(20000) %}{% set x = [" + "1, " * 60 + "] %}{% endfor %}",
        # Constants are not computed before there is a budget.
        "{{ 'a' | center(10000000) | length }}",
        # A text that is doubled again and again has many parts.
        "{% set ns = namespace(x=messages[0].content[0]) %}{% for i in range(19) %}"
        "{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x[0] }}",
        "{% set ns = namespace(x='ab' * 512) %}{% for i in range(13) %}"
        "{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x[0] }}",
    ],
)
def test_every_pass_and_search_is_charged(source: str) -> None:
    with template_budget(0.1), pytest.raises(ChatTemplateError, match="does or writes too much"):
        JinjaTemplate(source).render(USER)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        # A comparison with a constant ends at once.
        ("{% for i in range(1000) %}{{ '' if big == 'a' else '' }}{% endfor %}-", "-"),
        ("{{ (big | length == 5000) and (x ~ 'a')[-2:] }}", "xa"),
    ],
)
def test_what_takes_little_time_costs_little(source: str, text: str) -> None:
    start = "{% set big = range(5000) | list %}{% set x = 'x' * 5000000 %}"
    assert JinjaTemplate(start + source).render(USER).text == text


def doubled(times: int, what: str) -> Any:
    source = (
        "{% set ns = namespace(x='ab' * 512) %}"
        f"{{% for i in range({times}) %}}{{% set ns.x = ns.x ~ ns.x %}}{{% endfor %}}{{{{ ns.x | {what} }}}}"
    )
    return JinjaTemplate(source).render(USER).text


def test_the_length_of_a_text_is_known_before_it_is_joined() -> None:
    assert doubled(20, "length") == doubled(20, "count") == str(2**30)
    with pytest.raises(ChatTemplateError, match="does or writes too much"):
        doubled(20, "upper")
    with pytest.raises(ChatTemplateError, match="joins too much text"):
        doubled(30, "length")
    with pytest.raises(ChatTemplateError, match="does or writes too much"):
        JinjaTemplate("{{ 'a' | center(10 ** 9) }}").render(USER)
