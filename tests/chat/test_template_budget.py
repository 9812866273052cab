"""Rendering has limits of rounds, characters, recursion and integers, in proportion to the conversation."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.chat import template_budget
from bpe_tokenizer.chat.jinja import limits
from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.errors import ArgumentTypeError, ChatTemplateError, OptionError
from chat_cases import CALLS, JINJA, published, published_names
from hostile_templates import HOSTILE_TEMPLATES
from jinja_rendering import TOKENS
from jinja_templates import FAMILIES
from sampling import sample

HELLO = [{"role": "user", "content": "hello"}]
LIMITED = """
import json, resource, sys, time
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from bpe_tokenizer.chat import template_budget
from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.errors import ChatTemplateError
given = json.load(sys.stdin)
for source in given["sources"]:
    start, outcome = time.process_time(), "rendered"
    try:
        with template_budget(given["factor"]):
            JinjaTemplate(source).render([{"role": "user", "content": "hello"}])
    except ChatTemplateError as error:
        outcome = "refused" if len(str(error)) <= 300 else "long error"
    except BaseException as error:
        outcome = repr(error)
    # Not `ru_maxrss`, which begins with the peak of the process that started this one.
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    print(json.dumps([source, outcome, time.process_time() - start, peak]), flush=True)
"""


linux = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak")


def outcomes(sources: list[str], factor: float, seconds: float) -> Iterator[tuple[str, str, float, int]]:
    """Render templates in a child process; yield their outcomes, with the seconds and the peak memory."""
    child = subprocess.run(
        [sys.executable, "-c", LIMITED],
        input=json.dumps({"sources": sources, "factor": factor}),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    lines = child.stdout.splitlines()
    assert len(lines) == len(sources), (sources[len(lines)], child.stderr[-300:])
    for line in lines:
        yield tuple(json.loads(line))


BUDGET = "(does or writes too|calculates with very|joins too much) .*: it exceeds the limits of a rendering"
# What stops a hostile template, if it is not the budget.
STOPPED_OTHERWISE = {
    "{% include": "no loader", "{% import": "no loader", "{% extends": "no loader", "{% from": "no loader",
    "{{ strftime_now('%10": r"the format of strftime_now\(\) is too long",
    "{% macro f(n) %}{{ f": "maximum recursion depth", "recursive %}{{ loop([x": "maximum recursion depth",
    "{% block": "maximum recursion depth", "{% set ns.a = ns %}": "nested more than 200 levels deep",
}  # fmt: skip


@pytest.mark.parametrize("source", HOSTILE_TEMPLATES)
def test_what_stops_a_hostile_template(source: str) -> None:
    """In this process, and without a measure."""
    expected = [stop for part, stop in STOPPED_OTHERWISE.items() if part in source]
    match = f"^the chat template, line 1: .*({expected[0] if expected else BUDGET})"
    with pytest.raises(ChatTemplateError, match=match) as raised, template_budget(0.03):
        JinjaTemplate(source).render(HELLO)
    assert len(str(raised.value)) <= 300


@linux
def test_hostile_templates_need_little_time_and_memory() -> None:
    for source, outcome, took, peak in outcomes(sample(HOSTILE_TEMPLATES, 0.3, __name__), 0.03, 200):
        assert outcome == "refused", source
        assert took < 2, source
        assert peak < 400_000, source


@linux
@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_hostile_templates_need_little_time_and_memory_with_the_default_budget(part: int) -> None:
    for source, outcome, took, peak in outcomes([*HOSTILE_TEMPLATES][part::4], 1, 280):
        assert outcome == "refused", source
        assert took < 40, source  # seconds of CPU; an AMD EPYC of 2026 needs at most 6
        assert peak < 700_000, source


@pytest.mark.sampled(0.33)
@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 10_000 + "1" + ")" * 10_000 + " }}",
        "{{ " + "[" * 10_000 + "]" * 10_000 + " }}",
        "{{ " + "not " * 10_000 + "1 }}",
        "{{ " + "-" * 10_000 + "1 }}",
        "{{ 1" + " + 1" * 20_000 + " }}",
        "{{ a" + ".a" * 20_000 + " }}",
        "{{ a" + "|upper" * 20_000 + " }}",
        "{% if a %}" * 5_000 + "{% endif %}" * 5_000,
        "{% for a in a %}" * 50 + "{% endfor %}" * 50,
        "{% if a %}" + "{% elif a %}" * 10_000 + "{% endif %}",
        "{{ " + "9" * 10_000 + " }}",
        "{{ 1e" + "9" * 10_000 + " }}{{ 1" + "_1" * 5_000 + " }}",
        "a" * 400_001,
    ],
    ids=lambda source: source[:12],
)
def test_sources_that_cannot_be_compiled(source: str) -> None:
    with pytest.raises(ChatTemplateError) as raised:
        JinjaTemplate(source)
    assert len(str(raised.value)) <= 300


# What the sandbox refuses: known ways from a template to Python.


ESCAPES = """
    ''.__class__.__mro__[1].__subclasses__(); ''['__class__']['__mro__'];
    '' | attr('__class__') | attr('__mro__');
    [''] | map(attribute='__class__') | map(attribute='__mro__') | list; messages.append(1);
    messages[0].update(a=1); messages.__init__.__globals__;
    cycler.__init__.__globals__.os.popen('id').read(); joiner.__init__.__globals__;
    namespace.__init__.__globals__; lipsum.__globals__['os'].popen('id').read(); lipsum['__globals__'];
    self.__init__.__globals__; self._TemplateReference__context.cycler.__init__.__globals__.os;
    dict.__base__.__subclasses__(); range.__class__.__base__; raise_exception.__globals__;
    strftime_now.__globals__['datetime']; '{0.__class__.__mro__}'.format('');
    '{0.__class__.__mro__}' | format(''); '{a.__class__}'.format_map({'a': ''});
    ('{0.__class__.__mro__}' | safe).format(''); ('{a.__class__}' | e).format_map({'a': ''});
    (['{0.__class__.__mro__}'] | map('string') | first).format('');
    (('{0.__class__.__mro__}'.format | attr('__call__'))(''));
    [('{0.__class__}' | safe).format] | map('attr', '__self__') | list;
    ['{0.__class__.__mro__}'.format] | map(attribute='_text') | list; 'a'.upper._environment;
    (messages[0].content | length).real.__class__; messages[0].content.encode().__class__;
    messages[0].content._value; namespace(__init__=1); loop; caller.__globals__; url_for.__globals__;
    get_flashed_messages.__globals__; config.__class__; environment.globals; context.environment;
    undefined_name.__init__.__globals__; (1).__class__.__base__.__subclasses__();
    messages.sort(key=messages)
""".split(";")  # noqa: SIM905


@pytest.mark.parametrize("escape", [escape.strip() for escape in ESCAPES])
def test_no_way_out_of_the_sandbox(escape: str) -> None:
    for source in (f"{{{{ {escape} }}}}", f"{{% set x = {escape} %}}{{{{ x.__class__ }}}}{{{{ x }}}}"):
        try:
            text = JinjaTemplate(source).render(HELLO).text
        except ChatTemplateError:
            continue
        assert text in ("", "None", "[]", "[Undefined]"), (source, text)


# The budget.


class Spent(limits._Left):
    """What is left, with what there was at first; remembers the last one of its kind."""

    last: Spent

    def __init__(self, rounds: float = math.inf, characters: float = math.inf) -> None:
        super().__init__(rounds, characters)
        self.given = rounds, characters
        Spent.last = self

    @classmethod
    def shares(cls) -> tuple[float, float]:
        rounds, characters = cls.last.given
        return 1 - cls.last.rounds / rounds, 1 - cls.last.characters / characters


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> type[Spent]:
    monkeypatch.setattr(limits, "_Left", Spent)
    return Spent


def talk(messages: int, characters: int) -> list[dict[str, str]]:
    content = "ab e\n" * (characters // 5)
    return [{"role": ("user", "assistant")[number % 2], "content": content} for number in range(messages)]


@pytest.mark.sampled(0.33)
@pytest.mark.parametrize("messages", [talk(1, 5), talk(2001, 20), talk(3, 100_000)], ids=len)
def test_ordinary_templates_need_a_small_part_of_their_budget(
    messages: list[dict[str, str]], spent: type[Spent]
) -> None:
    for source in [*FAMILIES.values(), *JINJA.values()]:
        with suppress(ChatTemplateError):  # the template refuses the conversation
            JinjaTemplate(source).render(messages, special_tokens=TOKENS)
        assert max(spent.shares()) < 0.4


@pytest.mark.parametrize("name", published_names())
def test_published_templates_need_a_small_part_of_their_budget(name: str, spent: type[Spent]) -> None:
    source = published(name)
    for messages in (talk(1, 5), talk(2001, 20), talk(3, 100_000)):
        with suppress(ChatTemplateError):
            JinjaTemplate(source).render(messages, special_tokens=TOKENS)
        assert max(spent.shares()) < 0.4


def loop(body: str) -> str:
    start = "{% macro ignore(a) %}{% endmacro %}{% set ns = namespace(x='') %}{% for m in messages %}"
    return start + body + "{% endfor %}{{ ns.x }}"


APPENDS = {
    "+": loop("{% set ns.x = ns.x + m.content %}"),
    "~": loop("{% set ns.x = ns.x ~ '<' ~ m.content %}"),
    "before": loop("{% set ns.x = m.content + ns.x %}"),
    "inside": loop("{% set ns.x = '(' + ns.x + m.content + ')' %}"),
    "condition": loop("{% if ns.x or true %}{% set ns.x = (ns.x or '') + m.content %}{% endif %}"),
    "test": loop("{% if ns.x is string %}{% set ns.x = ns.x + m.content %}{% endif %}"),
    "length": loop("{% if ns.x | length < 9e9 %}{% set ns.x = ns.x + m.content %}{% endif %}"),
    "macro": loop("{{ ignore(ns.x) }}{% set ns.x = ns.x + m.content %}"),
    "alias": loop("{% set y = ns.x %}{% set ns.x = y + m.content %}"),
    "output": loop("{{ m.content + '<' + m.role }}"),
    "block": "{% set x %}{% for m in messages %}{{ m.content }}<{% endfor %}{% endset %}{{ x }}",
    "join": "{{ messages | map(attribute='content') | join('<') }}",
}


@pytest.mark.parametrize("name", APPENDS)
def test_appending_is_linear(name: str, spent: type[Spent]) -> None:
    """Counts what the rendering does, and measures nothing."""

    def work(count: int) -> float:
        rendered = JinjaTemplate(APPENDS[name]).render(talk(count, 10))
        assert rendered.text.count("ab e") == 2 * count
        assert all(segment.trusted == ("ab" not in segment.text) for segment in rendered.segments)
        rounds, characters = spent.last.given
        return rounds - spent.last.rounds + characters - spent.last.characters

    assert work(2000) < 2.2 * work(1000)


# Of 4,100 bits. A literal is not calculated.
LONG = str(2**4100)


TOO_LONG = (
    "3 ** (10 ** 6); (-2) ** (10 ** 6); 2 ** 4097; (2 ** 2048) * (2 ** 2048); 5 | round(1025); "
    "5 | round(-1025); (0).from_bytes(('f' * 600).encode(), 'big'); L + 2; L - 2; L * 2; L // 2; L % 2; "
    "L ** 2; 2 + L; -L; +L; L | round; L | int; L is odd; L is eq(1); L.bit_length(); "
    "L is divisibleby(2); 2 is divisibleby(L)"
)
LONG_ENOUGH = (
    "2 ** 2048; (2 ** 2047) * (2 ** 2047); (2 ** 2048) // (2 ** 2048); (2 ** 2048) + (2 ** 2048); "
    "1 ** (10 ** 9); (-1) ** (10 ** 9); 0 ** (10 ** 9); 2 ** 0; 2 ** -3; 5 * 10 ** 6; "
    "5 | round(1000); 5 | round(-1000)"
)


@pytest.mark.parametrize("use", TOO_LONG.split("; "))
def test_very_long_integers_are_refused(use: str) -> None:
    with pytest.raises(
        ChatTemplateError, match=r"line 1: calculates with very long integers: .*template_budget"
    ):
        JinjaTemplate("{% set y = " + use.replace("L", LONG) + " %}").render(HELLO)


@pytest.mark.parametrize("use", LONG_ENOUGH.split("; "))
def test_long_integers_up_to_a_bound(use: str) -> None:
    JinjaTemplate("{% set y = " + use + " %}").render(HELLO)


def test_a_value_has_a_greatest_depth() -> None:
    source = (
        "{% set ns = namespace(x=[1]) %}{% for i in range(N) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}"
    )
    assert JinjaTemplate(source.replace("N", "190")).render(HELLO).text == "[" * 191 + "1" + "]" * 191
    with pytest.raises(ChatTemplateError, match="builds a value that is nested more than 200 levels deep"):
        JinjaTemplate(source.replace("N", "210")).render(HELLO)


def test_the_budget_grows_with_the_input(spent: type[Spent]) -> None:
    def given(source: str, messages: list[Any], **variables: Any) -> tuple[float, float]:
        JinjaTemplate(source).render(messages, variables=variables)
        return spent.last.given

    def more(large: tuple[float, float], small: tuple[float, float]) -> list[float]:
        return [many - few for many, few in zip(large, small, strict=True)]

    base = given("{{ 1 }}", HELLO)
    assert base == pytest.approx((1_000_000, 64_000_000), rel=0.02)
    # A message is a value, and so are its keys, its role and its content. Each character counts.
    per_message = more(given("{{ 1 }}", HELLO * 1001), base)
    assert per_message == pytest.approx([1000 * (3 * 500 + 20 * 4), 1000 * (3 * 1000 + 20 * 64)], rel=0.1)
    longer = [{"role": "user", "content": "hello" + "a" * 1000}]
    assert more(given("{{ 1 }}", longer), base) == pytest.approx([4_000, 64_000], rel=0.1)
    assert more(given("{{ 1 }}" + " " * 1000 + "1", HELLO), base) == pytest.approx([4_000, 64_000], rel=0.1)
    by_key = more(given("{{ 1 }}", HELLO, a={"b" * 1000: 1}), given("{{ 1 }}", HELLO, a={}))
    assert by_key == pytest.approx([4_500, 65_000], rel=0.1)


ROPE_USES = """
    x == 'ahellob'; 'hello' in x; x in ['ahellob']; x | upper; x[1:3]; x[0]; x | length; x is string; x
    is iterable; x is mapping; [x, x] | join('-'); {x: x}; (x, ); x * 2; '%s' % x; '{}'.format(x);
    x.upper(); {'ahellob': 1}[x]; x if x else 1; x < 'b'; x >= 'b'; x is eq(x); [x] | tojson;
    namespace(a=x).a; dict(a=x); 'a'.join([x, x]); x | attr('upper') is defined; [x] | select('in', [x])
    | list; x is in [x]; 'z' | replace('z', x); x is lower; x != x; x | string | e; [x, x] | unique |
    list; x <= 'b'; x > 'ahellob'; x and 'y'; not x; namespace(a=x); x ~ 1; 1 ~ x; x ~ [x]
""".split(";")  # noqa: SIM905


@pytest.mark.parametrize("use", ROPE_USES)
def test_a_rope_is_a_string_for_templates(use: str) -> None:
    loop = "{% for c in x %}{{ c }}{% endfor %}"
    source = "{% set x = 'a' + messages[0].content + 'b' %}" + loop + "{{ " + use + " }}"
    plain = source.replace("'a' + messages[0].content + 'b'", "'ahellob'")
    assert JinjaTemplate(source).render(HELLO).text == JinjaTemplate(plain).render(HELLO).text


# Raising the bound.

LONG_OUTPUT = "{{ messages[0].content }}{{ '-' * 70000000 }}"


def test_the_budget_can_be_raised() -> None:
    template = JinjaTemplate(LONG_OUTPUT)
    with pytest.raises(ChatTemplateError, match=r"line 1: .*template_budget=10"):
        template.render(HELLO)
    with template_budget(4):
        assert len(template.render(HELLO).text) == 70_000_005
        with template_budget(1), pytest.raises(ChatTemplateError):
            template.render(HELLO)
    with template_budget(math.inf):
        assert template.render(HELLO).text.startswith("hello-")
    with pytest.raises(ChatTemplateError):
        template.render(HELLO)
    with template_budget(2):
        JinjaTemplate("b" * 400_001)


@pytest.mark.parametrize("factor", [0, -1, math.nan, pytest.param(-(10**5000), id="-10**5000")])
def test_factors_that_are_refused(factor: float) -> None:
    with pytest.raises(OptionError, match="greater than 0"), template_budget(factor):
        pass


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_factor_beyond_the_floats(digits: int, tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match=r"template_budget is .*; math\.inf is no limit"):
        tokenizer.apply_chat_template(HELLO, "{{ 1 }}", template_budget=10**digits)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_every_method_takes_a_budget(call: Callable[..., Any], tokenizer: BPETokenizer) -> None:
    source = "{% for i in range(2000) %}x{% endfor %}{{ messages[0].content }}"
    call(tokenizer, HELLO, template=source, template_budget=1)
    with pytest.raises((ChatTemplateError, OptionError), match=r"template_budget=10 for"):
        call(tokenizer, HELLO, template=source, template_budget=1e-4)
    with pytest.raises(ArgumentTypeError, match="template_budget"):
        call(tokenizer, HELLO, template_budget="10")
    with pytest.raises(ArgumentTypeError, match=r"\(\) has no argument 'template_budge'; did you mean"):
        call(tokenizer, HELLO, template="{{ template_budge }}", template_budge=1)


def test_threads_have_their_own_budgets() -> None:
    failed: list[Exception] = []

    def render() -> None:
        try:
            JinjaTemplate(LONG_OUTPUT).render(HELLO)
        except ChatTemplateError as error:
            failed.append(error)

    with template_budget(4):
        thread = threading.Thread(target=render)
        thread.start()
        thread.join()
    assert len(failed) == 1


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of CPU time")
def test_a_signal_stops_a_rendering() -> None:
    """As Ctrl-C does; the signal comes after some CPU time of this process, however busy the machine is."""
    chat = JinjaTemplate("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    try:
        with template_budget(math.inf), pytest.raises(KeyboardInterrupt):  # noqa: PT012
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.1)
            chat.render(HELLO)
    finally:
        signal.signal(signal.SIGVTALRM, before)
