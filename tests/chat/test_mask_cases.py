"""Assistant masks of templates in the style of published ones, against pieces that were marked by hand.

`mask_cases/` holds the cases: `=== name`, the template, then for each conversation `--- name [prompted]` and
the pieces that the model must produce, one a line, with \\n for a line end. "raises" expects an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bpe_tokenizer import BPETokenizer, OptionError
from bpe_tokenizer.chat import Rendered
from bpe_tokenizer.chat.jinja import template as template_module
from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.chat.options import ChatOptions
from bpe_tokenizer.chat.renderer import ConversationRenderer
from bpe_tokenizer.errors import ChatTemplateError
from chat_cases import JINJA, chat_tokenizer

Message = dict[str, Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def reply(text: str, thoughts: str = "", calls: Sequence[str] = ()) -> Message:
    message: Message = {"role": "assistant", "content": text}
    if thoughts:
        message["reasoning_content"] = thoughts
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call{x}000"[:9],
                "type": "function",
                "function": {"name": "rain", "arguments": {"x": x}},
            }
            for x in calls
        ]
    return message


def result(text: str, x: str = "Zug") -> Message:
    return {"role": "tool", "name": "rain", "tool_call_id": f"call{x}000"[:9], "content": text}


TALKS: dict[str, list[Message]] = {
    "plain": [{"role": "system", "content": "S"}, user("Q1"), reply("A1"), user("Q2"), reply("A2")],
    "chat": [user("Q1"), reply("A1"), user("Q2"), reply("A2")],
    "open": [user("Q1"), reply("A1"), user("Q2")],
    "echo": [user("ok"), reply("ok"), user("ok"), reply("ok")],
    "call": [user("Q1"), reply("", calls=["Zug"]), result("R1"), reply("A1")],
    "calls": [
        user("Q1"),
        reply("T1", "W1", ["Zug", "Bern"]),
        result("R1"),
        result("R2", "Bern"),
        reply("A1", "W2"),
        user("Q2"),
        reply("A2"),
    ],
    "waiting": [user("Q1"), reply("", calls=["Zug"]), result("R1")],
    "calling": [user("Q1"), reply("", calls=["Zug"])],
    "think": [user("Q1"), reply("A1", "W1"), user("Q2"), reply("A2", "W2")],
    "tagged": [user("Q1"), reply("<think>\nW1\n</think>\n\nA1")],
    "twice": [user("Q1"), reply("A1"), reply("A2"), user("Q2"), reply("A3")],
    "empty": [user("Q1"), reply(""), user("Q2"), reply("A2")],
    "silent": [user("Q1"), reply("A1"), user(""), reply("A2")],
    "hush": [user(""), reply("A1")],
    "called": [user("Q1"), reply("T1", calls=["Zug"]), result("R1"), reply("A1")],
    "started": [reply("A0"), user("Q1"), reply("A1"), user("Q2")],
    "joined": [user("Q1"), reply("A1"), reply("A2")],
    "named": [user("Q1"), reply("A1") | {"name": "Ada"}, user("Q2"), reply("A2") | {"name": "Ada"}],
}


class Case(NamedTuple):
    template: str
    talk: str
    prompted: bool
    pieces: list[str]


def cases() -> Iterator[Any]:
    for path in sorted((Path(__file__).parent / "mask_cases").glob("*.txt")):
        for block in path.read_text(encoding="utf-8").split("=== ")[1:]:
            head, *marked = block.split("\n--- ")
            name, _, template = head.partition("\n")
            for part in marked:
                title, *pieces = part.rstrip("\n").split("\n")
                talk, *options = title.split()
                case = Case(
                    template, talk, "prompted" in options, [piece.replace("\\n", "\n") for piece in pieces]
                )
                yield pytest.param(case, id=f"{name} [{title}]")


@pytest.fixture(scope="module")
def tokenizers() -> list[BPETokenizer]:
    """A tokenizer with control tokens of some templates, and one that has none: their markup is text.

    They have one merge of letters, so no token holds characters of two people.
    """
    return [chat_tokenizer(vocab_size=257), chat_tokenizer(special=(), markup=(), vocab_size=257)]


@pytest.mark.parametrize("case", list(cases()))
def test_the_mask_is_what_was_marked_by_hand(case: Case, tokenizers: list[BPETokenizer]) -> None:
    for tokenizer in tokenizers:
        given: dict[str, Any] = {"add_generation_prompt": case.prompted, "return_assistant_mask": True}
        if case.pieces == ["raises"]:
            with pytest.raises(OptionError, match=r"message \d+: .*generation"):
                tokenizer.apply_chat_template(TALKS[case.talk], case.template, **given)
            continue
        ids, mask = tokenizer.apply_chat_template(TALKS[case.talk], case.template, **given)
        runs: list[list[int]] = []
        previous = 0
        for token_id, learned in zip(ids, mask, strict=True):
            if learned and not previous:
                runs.append([])
            if learned:
                runs[-1].append(token_id)
            previous = learned
        assert "|".join(map(tokenizer.decode, runs)).replace("\n", "\\n") == "|".join(case.pieces).replace(
            "\n", "\\n"
        )


def test_few_renderings_find_the_turns_of_a_jinja_template(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    render = ConversationRenderer.render_messages

    def counting(self: ConversationRenderer, messages: Any, add_generation_prompt: bool) -> Rendered:
        counts.append(len(messages))
        return render(self, messages, add_generation_prompt)

    monkeypatch.setattr(ConversationRenderer, "render_messages", counting)
    talk = [message for number in range(50) for message in (user(f"q{number}"), reply(f"a{number}"))]
    template = str(JINJA["plain turns"])
    _, mask = chat_tokenizer().apply_chat_template(talk, template, return_assistant_mask=True)
    assert sum(mask) > 50
    assert len(counts) <= 5


# A message of one letter each; a template writes no letters.
LETTERS = [user("a"), user("b"), user("c")]
LOOPS = {
    "EACH": "{% for m in messages %}",
    "FIRST": "{% for m in messages[:1] %}",
    "PAIRS": "{% for m in messages | batch(2) %}",
    "END": "{% endfor %}",
}


@pytest.mark.parametrize(
    ("source", "written"),
    [
        # A loop over numbers is at the message that it reads, in whatever order.
        ("{% for i in range(3) %}{% set m = messages[2 - i] %}<END", "<2 <1 <0"),
        ("{% for i in range(1, 3) %}{% set p = messages[i - 1] %}{% set m = messages[i] %}<END", "<1 <2"),
        ("{% for i in range(2) %}{% set m = messages[i] %}{% set p = messages[i + 1] %}<END", "<0 <1"),
        ("{% for i in range(2) %}<{% set f = messages[0] %}>{% set m = messages[i] %}-END", "-0 -1"),
        ("{% for i in range(2) %}{% for x in messages[i].content %}<ENDEND", "<0 <1"),
        # A loop in a turn writes the turn, also if it has no items or looks back.
        ("EACH{% for x in [] %}{% else %}<ENDEND", "<0 <1 <2"),
        ("EACH{% for o in messages[:1] %}<ENDEND", "<0 <1 <2"),
        ("PAIRS{% for n in m %}<ENDEND", "<<01 <2"),
        # Markup around the content of one later message is that message's.
        ("FIRST{{ '<' ~ messages[1].content ~ '>' }}END", "<1 b0 >1"),
        ("FIRST{{ '<' ~ messages[1].content ~ messages[2].content }}END", "<0 b0 c0"),
        ("FIRST{{ '<' ~ tools[1].n }}END", "<0 t0"),
        ("PAIRS{{ '<' ~ m[-1].content }}END", "<01 b01 <2 c2"),
        # Text that is kept for later is of the pass that made it, at whichever end it was added.
        ("{% set ns.t = '^' %}{{ ns.t }}EACH{% set ns.t = ns.t ~ '<' %}END{{ ns.t }}", "^<0 <1 <2"),
        ("EACH{% set ns.t = ns.t ~ '<' ~ m.content ~ '>' %}END{{ ns.t }}", "<0 >0 <1 >1 <2 >2"),
        ("EACH{% set ns.t = '<' ~ m.content ~ '>' ~ ns.t %}END{{ ns.t }}", "<2 >2 <1 >1 <0 >0"),
        (
            "EACH{% set ns.n = ns.n + ['<', '|' ~ m.content ~ '>'] %}END{{ ns.n | join }}",
            "<|0 >0 <|1 >1 <|2 >2",
        ),
        (
            "EACH{% for x in '+-' %}{% set ns.n = ns.n + [x, '<', '>'] %}ENDEND{{ ns.n | join }}",
            "+<>-<>0 +<>-<>1 +<>-<>2",
        ),
        ("EACH{% set ns.t = (ns.t ~ '<').strip() %}END{{ ns.t }}", "<0 <1 <2"),
        ("EACH{% set ns.t = (ns.t ~ '<' ~ m.content).strip() %}END{{ ns.t }}", "<0 <1 <2"),
        ("EACH{{ ns.t }}{% set ns.t = '<' ~ m.content %}|END", "|<0 a1 |<1 b2 |2"),
        # Text that is escaped for HTML stays so, and a number a number.
        ("EACH{% set ns.t = '|' | e %}{{ ns.t + '<' }}END", "|&lt;0 |&lt;1 |&lt;2"),
        ("EACH{% set ns.t = (m.content ~ '|') | e %}{{ ns.t + '<' }}END", "a0 |&lt;0 b1 |&lt;1 c2 |&lt;2"),
        ("{% set ns.t = 0 %}EACH{% set ns.t = ns.t + 1 %}{{ ns.t }}END", "10 21 32"),
    ],
)
def test_the_message_that_a_text_was_written_for(source: str, written: str) -> None:
    """The texts, each followed by the indices of its messages."""
    template_module._compile.cache_clear()
    template_module._compile_traced.cache_clear()
    for name, loop in LOOPS.items():
        source = source.replace(name, loop)
    template = JinjaTemplate("{% set ns = namespace(t='', n=[]) %}" + source)
    tools = [{"n": "s"}, {"n": "t"}]
    traced = template.traced().render(LETTERS, tools=tools, add_generation_prompt=False)
    assert traced.text == template.render(LETTERS, tools=tools, add_generation_prompt=False).text
    found = [traced.text[start:end] + "".join(map(str, at)) for start, end, at in traced.written or ()]
    assert " ".join(found) == written


def test_an_error_of_a_traced_template_names_its_line() -> None:
    for source in ("{% for m in messages %}\n{% set x = 1 / 0 %}{% endfor %}", "\n{% set x = 1 / 0 %}"):
        template_module._compile_traced.cache_clear()
        with pytest.raises(ChatTemplateError, match="line 2: ZeroDivisionError"):
            JinjaTemplate(source).traced().render(LETTERS)


def test_tracing_changes_no_text() -> None:
    """Also in a template that reads its own texts, in blocks, calls, filters and loops with `break`."""
    source = (
        "{% macro m(t) %}<{{ t }}{{ caller() if caller }}>{% endmacro %}{% set ns = namespace(t='', n=[]) %}"
        "{% for x in messages recursive %}{% set y %}[{{ x.role }}]{% endset %}{{ y | upper }}"
        "{% filter lower %}{{ x.content }}{% endfilter %}{% call m(x.role) %}{{ loop.index }}{% endcall %}"
        "{% set ns.t = ns.t ~ y %}{% set ns.n = ns.n + [y] %}{% if loop.index == 3 %}{% break %}{% endif %}"
        "{% else %}none{% endfor %}{{ ns.t == ns.n | join }}{{ ns.n }}{{ 'a' in ns.t }}{{ ns.t[1:9:2] }}"
        "{% for a, b in {'k': 1} | dictsort %}{{ a }}{{ b + 1 }}{% endfor %}{{ messages[0] | length }}"
    )
    template = JinjaTemplate(source)
    plain, traced = (each.render(TALKS["plain"]) for each in (template, template.traced()))
    assert traced.segments == plain.segments
    assert plain.written is None
    assert ConversationRenderer(TALKS["plain"], template, ChatOptions(), {}).render() == plain
    assert {messages for _, _, messages in traced.written or ()} == {(0,), (1,), (2,)}
