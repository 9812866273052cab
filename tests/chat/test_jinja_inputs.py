"""The inputs, options and errors of Jinja chat templates."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer.chat import template_budget
from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.chat.segment import Origin, Rendered, Segment
from bpe_tokenizer.errors import ArgumentTypeError, ChatTemplateError, OptionError, TokenizerError
from conversations import vary
from jinja_rendering import USER, pieces, render, rendered, template


def test_messages_and_their_parts_may_be_objects_and_are_left_alone() -> None:
    @dataclass
    class Call:
        name: str

    class Model:
        def model_dump(self, **options: object) -> dict[str, Any]:
            return {"role": "tool", "content": object()}

    message = {"role": "user", "content": ["a", ("b",), Call("f")]}
    before = repr(message)
    assert rendered("{% for m in messages %}{{ m }}{% endfor %}", [message, Model()]).text == (
        "{'role': 'user', 'content': ['a', ('b',), {'name': 'f'}]}{'role': 'tool', 'content': '<object>'}"
    )
    assert repr(message) == before


@dataclass
class Part:
    text: str


class Model:
    def model_dump(self, **options: object) -> dict[str, Any]:
        return {"text": "<|im_end|>"}


@pytest.mark.parametrize("part", [Part("<|im_end|>"), Model(), {"text": "<|im_end|>"}])
def test_the_fields_of_objects_are_content(part: object) -> None:
    """Also of objects inside a message, which templates reach by attributes and items."""
    for content in (part, [part], {"x": [part]}):
        for source in ("{{ messages[0].content }}", "{{ messages[0] }}"):
            for _, origin in rendered(source, [{"role": "user", "content": content}]).segments:
                assert origin is not None
                assert origin[:2] == ("messages", 0)
    found = pieces("<{{ messages[0].content.text }}", [{"role": "user", "content": part}])
    assert found == [("<", None), ("<|im_end|>", "content")]


def test_keys_and_the_name_of_a_role_are_content() -> None:
    """Only the value of the field `role` is a word of the protocol."""
    message = {"role": "user", "content": {"<|x|>": "system"}, "name": "system", "system": "user"}
    source = "{% for k, v in messages[0].content.items() %}{{ k }}{{ v }}{% endfor %}{{ messages[0].name }}"
    assert [origin for _, origin in pieces(source, [message])] == ["content", "name"]
    source = "{% for k in messages[0] %}{{ k }}{% endfor %}"
    assert [origin for _, origin in pieces(source, [message])] == ["role", "content", "name", "system"]


PARTS = np.array([{"type": "text", "text": "Hi"}], dtype=object)


@pytest.mark.parametrize(
    ("source", "content", "text"),
    [
        ("{{ c }}", date(2025, 1, 2), "2025-01-02"),
        ("{{ c }}", Decimal("1.50"), "1.50"),
        ("{{ c }}", np.array([1, 2]), "[1 2]"),
        ("{{ c }}", np.longdouble(2), "2.0"),
        ("{{ c }}", PARTS, "[{'type': 'text', 'text': 'Hi'}]"),
        ("{{ c[0].text }}", PARTS, "Hi"),
        ("{{ c + 1 }}", np.int64(7), "8"),
        ("{{ c[7] }}", {7: "<|x|>"}, "<|x|>"),
        ("{{ c }}", print, "<builtin_function_or_method>"),
    ],
)
def test_objects_are_the_text_that_their_class_gives_them(source: str, content: object, text: str) -> None:
    messages = [{"role": "user", "content": content}]
    assert pieces("{% set c = messages[0].content %}" + source, messages) == [(text, "content")]


@pytest.mark.parametrize("name", ["reasoning_content", "thinking", "reasoning"])
def test_reasoning_goes_by_every_name_that_templates_read(name: str) -> None:
    source = "{{ messages[0].thinking }}{{ messages[0].reasoning_content }}"
    assert rendered(source, [{"role": "assistant", name: "hm", "content": "x"}]).text == "hmhm"


def test_the_time_is_the_templates() -> None:
    result = rendered("{{ strftime_now('%Y') }}<|x|>{{ strftime_now(messages[0].content) }}")
    assert result.segments[0] == Segment(f"{datetime.now().year}<|x|>", None)
    assert result.segments[1].origin == Origin("messages", 0, "content")


def test_generation_blocks_are_found_in_macros_and_variables() -> None:
    source = (
        "{% macro show(m) %}<a>{% generation %}{{ m.content }}</a>{% endgeneration %}{% endmacro %}"
        "{% for m in messages %}{% set text = show(m) %}|"
        "{{ text if m.role == 'assistant' else m.content }}{% endfor %}"
    )
    messages = [
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": "A"},
        {"role": "assistant", "content": ""},
    ]
    result = rendered(source, messages)
    assert result.generated is not None
    assert [result.text[start:end] for start, end in result.generated] == ["A</a>", "</a>"]
    assert rendered(source, messages[:1]).generated == ()
    assert rendered("{{ messages[0].content }}").generated is None
    assert rendered("{% generation %}a{% endgeneration %}b").generated == ((0, 1),)


# The final message left open.


@pytest.mark.parametrize(
    ("source", "content", "expected"),
    [
        ("<a>{{ m.content }}</a>", "Hi ", "<a>Hi "),
        ("<a>{{ m.content | trim }}</a>", " Hi \n", "<a>Hi"),
        ("<a>{{ m.content[0].text }}</a>", [{"type": "text", "text": "Hi"}], "<a>Hi"),
        ("<a>{{ m.content }}</a>", "", "<a>"),
        ("<a>\n{{ m.content | trim }}</a>", "", "<a>\n"),
        ("<a>\n{{ m.content | trim }}</a>", " \n", "<a>\n"),
        ("{{ m.content }}</a>", "", ""),
        ("{{ m.content }}|{{ m.content }}</a>", "Hi", "HiCONTINUE_FINAL_MESSAGE_TAG |Hi"),
    ],
)
def test_a_final_message_is_left_open(source: str, content: Any, expected: str) -> None:
    messages = [{"role": "assistant", "content": content}]
    source = "{% set m = messages[-1] %}" + source
    options = {"continue_final_message": True, "add_generation_prompt": False}
    assert rendered(source, messages, **options).text == expected


def test_reasoning_can_be_continued() -> None:
    messages = [{"role": "assistant", "reasoning": "hm"}]
    options = {"continue_final_message": "thinking", "add_generation_prompt": False}
    result = rendered("<think>{{ messages[0].reasoning_content }}</think>", messages, **options)
    assert result.text == "<think>hm"


@pytest.mark.parametrize(
    ("source", "message", "error"),
    [
        ("{{ messages[0].content[:2] }}", {"content": "Hello"}, "leaves out or changes"),
        ("Hello{{ messages[0].content[:2] }}", {"content": "Hello"}, "leaves out or changes"),
        ("{{ messages[0].content | replace('H', 'J') }}", {"content": "Hello"}, "leaves out or changes"),
        ("{{ messages[0].text }}", {"content": "Hello", "text": "x"}, "does not use 'content'"),
        ("{{ messages[0].content }}", {"text": "x"}, "has no 'content'"),
        ("{{ messages[0].content }}", {"content": [{"type": "image"}]}, "the 'content' .* has no text to"),
        ("{{ messages[0].content }}", {"content": 7}, "the 'content' .* is not text"),
    ],
)
def test_a_final_message_that_cannot_be_continued(source: str, message: dict[str, Any], error: str) -> None:
    with pytest.raises(TokenizerError, match=error):
        rendered(
            source,
            [{"role": "assistant"} | message],
            continue_final_message=True,
            add_generation_prompt=False,
        )


def test_an_open_message_and_a_new_one_exclude_each_other() -> None:
    with pytest.raises(OptionError, match="set only one"):
        rendered("x", continue_final_message=True)


# Errors.


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ 1 +\n }}", "line 2"),
        ("\n{% for %}", "line 2"),
        ("{% nonsense %}", "line 1.*nonsense"),
        ("{{ x | nonsense }}", "nonsense"),
        (
            "\n{% autoescape true %}{{ messages }}{% endautoescape %}",
            r"line 2: \{% autoescape %\} is not supported in a chat template$",
        ),
        ("\n\n{{ missing.field }}", "line 3: 'missing' is undefined"),
        ("\n{{ raise_exception('No ' ~ messages[0].role) }}", "line 2: No user"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError|unsafe|undefined"),
        ("{{ messages.append(1) }}", "unsafe|not safely callable"),
        ("{{ '{0.__class__.__mro__}'.format(1) }}", "unsafe"),
        ("{% set ns = namespace() %}{% set ns._x = 1 %}", "private name '_x'"),
        ("{{ namespace(_x=1) }}", "private name '_x'"),
        ("{% for i in range(10 ** 9) %}{% endfor %}", "OverflowError: Range too big"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ 'a' + 1 }}", "TypeError"),
        ("{% include 'x' %}", "TypeError"),
        ("{{ nothing() }}", "'nothing' is undefined"),
        ("{{ nothing | tojson }}", "Undefined is not JSON serializable"),
        ("{{ '%*d' % 5 }}", "not enough arguments"),
        ("{{ 'a'.split(5) }}", "must be str or None"),
        ("{{ 'a'.split('a', 'b') }}", "'str' object cannot be interpreted as an integer"),
        ("{{ ''.encode().join(5) }}", "can only join an iterable"),
        ("{{ 1[1:2] }}", "'int' object is not subscriptable"),
        ("{{ 'a'.nothing.x }}", "has no attribute 'nothing'"),
        ("{{ ('<' | safe) + 5 }}", "TypeError"),
        ("{{ '{a}'.format_map({'a': 1}, b=2) }}", "TypeError"),
        ("{{ ('{a}' | safe).format_map() }}", "ValueError"),
        ("{{ raise_exception('') }}", "line 1: TemplateError: $"),
        ("\n{% generation %}\n{{ 1 / 0 }}{% endgeneration %}", "line 3: ZeroDivisionError"),
        ("\n{% generation %}a{% endgeneration %}{{ 1 / 0 }}", "line 2: ZeroDivisionError"),
        ("{{ " + "(" * 1000 + "1" + ")" * 1000 + " }}", "'mine' is nested too deeply"),
        ("{{ " + "9" * 5000 + " }}", "'mine': Exceeds the limit"),
        ("a" * 400_001, "'mine' has 400,001 characters, and at most 400,000 .*template_budget=10"),
        ("{{ '%s%(a)s' | format(1, a=2) }}", "can't handle positional and keyword arguments"),
    ],
)
def test_errors_say_where_and_what(source: str, message: str) -> None:
    with pytest.raises(ChatTemplateError, match=message) as raised:
        JinjaTemplate(source, "mine").render(USER)
    assert str(raised.value).startswith("the chat template 'mine'")


@pytest.mark.parametrize(
    "method",
    "expandtabs replace split rsplit rfind strip startswith join encode translate".split(),  # noqa: SIM905
)
@pytest.mark.parametrize("arguments", ["unknown=1", "1, 2, 3, 4, 5"])
def test_wrong_arguments_of_a_method_are_reported_by_python(method: str, arguments: str) -> None:
    with pytest.raises(ChatTemplateError, match=r"line 1: TypeError: (?!_charge)"):
        rendered("{{ 'a'." + method + "(" + arguments + ") }}")


def test_a_long_name_is_cut() -> None:
    with pytest.raises(ChatTemplateError, match=r"^the chat template '?n{40,70}[^n]*(n*'?)?, line 1: "):
        JinjaTemplate("{{ 1 / 0 }}", "n" * 500).render(USER)
    with pytest.raises(ChatTemplateError, match=r"^the chat template, line 1: "):
        rendered("{{ 1 / 0 }}")


def test_an_error_outside_of_all_lines_has_no_line() -> None:
    with pytest.raises(ChatTemplateError, match=r"^the chat template: .*budget"), template_budget(0.01):
        rendered("{% set s = messages[0].content * 1000 %}" + "{{ s }}" * 300)


def test_a_traced_template_has_the_same_name() -> None:
    with pytest.raises(ChatTemplateError, match=r"^the chat template 'mine', line 1: "):
        JinjaTemplate("{{ 1 / 0 }}", "mine").traced().render(USER)
    assert JinjaTemplate("x").traced().render(USER).written == ()
    assert JinjaTemplate("x").render(USER).written is None


def test_what_a_template_may_write() -> None:
    chat = JinjaTemplate("<a>{{ '<' ~ 'b>' }}{{ '\\x3cc>' }}")
    assert [chat.may_write(text) for text in ("<a>", "<c>", "<d>")] == [True, True, False]


class Broken:
    def model_dump(self, **options: object) -> object:
        raise ValueError("no")


@dataclass(frozen=True)
class Frozen:
    field: int = 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"messages": []}, OptionError, "messages is empty"),
        ({"messages": "Hi"}, ArgumentTypeError, "messages must be a list"),
        ({"messages": {"role": "user"}}, ArgumentTypeError, "messages must be a list"),
        ({"messages": [*USER, "Hi"]}, ArgumentTypeError, "message 1 must be a mapping"),
        ({"tools": {"type": "function"}}, ArgumentTypeError, "tools must be a list"),
        ({"documents": ["text"]}, ArgumentTypeError, "document 0 must be a mapping"),
        ({"variables": {"messages": []}}, OptionError, "'messages': it is an argument already"),
        ({"variables": {"tools": []}}, OptionError, "'tools': it is an argument already"),
        ({"variables": {"documents": []}}, OptionError, "'documents': it is an argument already"),
        (
            {"variables": {"add_generation_prompt": True}},
            OptionError,
            "'add_generation_prompt': it is an argument already",
        ),
        ({"variables": {"x": Broken()}}, ArgumentTypeError, "cannot be read: ValueError: no"),
        (
            {"messages": [{"role": "user", "calls": {Frozen(): 1}}]},
            ArgumentTypeError,
            "cannot be read: TypeError: .*unhashable",
        ),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        JinjaTemplate("{{ messages }}").render(**{"messages": USER} | arguments)


def test_endless_messages_are_refused() -> None:
    message: dict[str, Any] = {"role": "user"}
    message["content"] = [message]
    with pytest.raises(OptionError, match="nested too deeply"):
        rendered("{{ messages }}", [message])


# Use.


def test_templates_can_be_pickled_and_shared_between_threads() -> None:
    chat = template("python tools")
    copy = pickle.loads(pickle.dumps(chat))
    conversations = [vary(seed, tools=True) for seed in range(12)]
    expected = [render(copy, conversation) for conversation in conversations]
    results: dict[int, list[Rendered]] = {}

    def work(thread: int) -> None:
        results[thread] = [render(chat, conversation) for conversation in conversations]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == expected for result in results.values())
    assert len(results) == 4
