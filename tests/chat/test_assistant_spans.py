"""Spans of replies where only further renderings show whose the markup is, as of templates in Python."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from bpe_tokenizer import OptionError
from bpe_tokenizer.chat import Origin, Rendered, Segment, Template
from bpe_tokenizer.chat.assistant_spans import assistant_spans
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.chat.messages import Messages
from chat_cases import Undeclared, plain_talk

TOKENS = frozenset(("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>", "<|return|>"))
ASKS = "{{ '<|assistant|>' if add_generation_prompt }}"


def learned(source: str, talk: Messages, special: Collection[str] = TOKENS) -> list[str]:
    """Return the texts that the model must produce, one for each turn."""
    template = JinjaTemplate(source)

    def render(messages: Messages, asks: bool) -> Rendered:
        return template.render(messages, add_generation_prompt=asks)

    rendered = render(talk, False)
    return [rendered.text[start:end] for start, end in assistant_spans(rendered, talk, render, special)]


def each(message: str, prompt: str = ASKS) -> str:
    return "{% for m in messages %}" + message + "{% endfor %}" + prompt


def turns(end: str = "<|end|>", last: str | None = None, close: str = "") -> str:
    """Return a template.

    Args:
        end: The text after each message.
        last: The text after a reply that is the last message.
        close: The text at the end of a conversation without a generation prompt.
    """
    final = "loop.last and m.role == 'assistant' and not add_generation_prompt"
    ends = f"{{{{ {(end if last is None else last)!r} if {final} else {end!r} }}}}"
    asks = f"{{{{ '<|assistant|>' if add_generation_prompt else {close!r} }}}}"
    return each("<|{{ m.role }}|>{{ m.content }}" + ends, asks)


@pytest.mark.parametrize("empty", [None, 0, 1, 2, 3])
@pytest.mark.parametrize(
    ("template", "ends"),
    [
        pytest.param(turns(), ("<|end|>", "<|end|>"), id="one token"),
        pytest.param(turns("<|end|><|end|>"), ("<|end|><|end|>",) * 2, id="a token twice"),
        pytest.param(turns("</a><|end|>\n"), ("</a><|end|>",) * 2, id="text and a token"),
        pytest.param(turns(last="<|return|>"), ("<|end|>", "<|return|>"), id="another of the last turn"),
        pytest.param(turns(close="<|user|>"), ("<|end|>", "<|end|>"), id="the next header is written"),
        pytest.param(turns("\n###\n"), ("\n###", "\n###"), id="text"),
        pytest.param(turns("\nNEXT\n", "\nDONE\n"), ("", "\nDONE"), id="another text of the last turn"),
    ],
)
def test_end_markers(template: str, ends: tuple[str, str], empty: int | None) -> None:
    """They are learned after texts and empty replies, and no header of a user is."""
    talk = plain_talk("uaua", {} if empty is None else {empty: {"content": ""}})
    wanted = [talk[1]["content"] + ends[0], talk[3]["content"] + ends[1]]
    assert learned(template, talk) == [turn for turn in wanted if turn]
    assert learned(template, [*talk, {"role": "user", "content": "u4."}])[0] == (wanted[0] or "a3.")


def test_end_markers_that_are_no_special_tokens() -> None:
    talk = plain_talk("uaua", {1: {"content": ""}})
    assert learned(turns("</s>\n"), talk, special=()) == ["</s>", "a3.</s>"]


def thinking(prompt: str) -> str:
    """Return a template with reasoning in tags, and with a generation prompt."""
    thought = "{% if m.thinking %}<think>{{ m.thinking }}</think>{% endif %}"
    asks = f"{{{{ {prompt!r} if add_generation_prompt }}}}"
    return each("<|{{ m.role }}|>" + thought + "{{ m.content }}<|end|>", asks)


EMPTY, HM, CALL = {"content": ""}, {"thinking": "hm"}, {"call": "rain"}
REPEATED = "{% if m.role == 'tool' %}{{ messages[loop.index0 - 1].call }} says {% endif %}"


def calling(before: str = "", after: str = "") -> str:
    """Return a template with calls, which has no generation prompt after a reply."""
    call = "{% if m.call %}<call>{{ m.call }}</call>{% endif %}<|end|>"
    refuses = "{% if add_generation_prompt and messages[-1].role == 'assistant' %}{{ raise_exception('no') }}"
    return refuses + "{% endif %}" + each("<|{{ m.role }}|>" + before + "{{ m.content }}" + after + call)


@pytest.mark.parametrize(
    ("source", "roles", "fields", "wanted"),
    [
        # No rendering shows where a turn ends, so it is the next special token.
        (
            "{% if messages[-1].role == 'assistant' %}{{ raise_exception('no') }}{% endif %}" + turns(),
            *("uauau", {}, "a1.<|end|>; a3.<|end|>"),
        ),
        # Turns without headers.
        (
            each("{{ m.content }}{{ '<|end|>' if m.role == 'assistant' }}", ""),
            *("uaua", {1: EMPTY}, "<|end|>; a3.<|end|>"),
        ),
        # An empty reply without an end is not a turn: the text after it belongs to the next message.
        (
            each(
                "{{ m.content }}{{ '<|end|>' if m.role == 'user' }}",
                "{{ '<|return|>' if messages[-1].role == 'assistant' }}",
            ),
            *("uaua", {1: EMPTY}, "a3.<|return|>"),
        ),
        # An empty reply in front of all messages: a template need not render a conversation without messages.
        (turns(), "aua", {0: EMPTY}, "a2.<|end|>"),
        # A text of another message in a turn is not learned, and the turn goes on after it.
        (
            each(
                "<|{{ m.role }}|>{% if m.role == 'assistant' %}{{ m.thinking }}"
                "{{ messages[loop.index0 - 1].content }}{% endif %}{{ m.content }}<|end|>"
            ),
            *("suau", {2: HM}, "hm; a2.<|end|>"),
        ),
        # A call that its result repeats is learned once, with the markup around it.
        *(
            (calling(**{where: REPEATED} if where else {}), "suata", fields, wanted)
            for where in ("", "before", "after")
            for fields, wanted in [
                ({2: CALL | EMPTY}, "<call>rain</call><|end|>; a4.<|end|>"),
                ({2: CALL}, "a2.<call>rain</call><|end|>; a4.<|end|>"),
                ({2: CALL, 4: EMPTY}, "a2.<call>rain</call><|end|>; <|end|>"),
            ]
        ),
        # The markup that the generation prompt holds is given.
        (thinking("<|assistant|>"), "ua", {1: HM}, "<think>hm</think>a1.<|end|>"),
        (thinking("<|assistant|><think>"), "ua", {1: HM}, "hm</think>a1.<|end|>"),
        (thinking("<|assistant|><think>\n"), "ua", {1: HM}, "hm</think>a1.<|end|>"),
        (
            thinking("<|assistant|>"),
            *("uauaa", {1: HM, 4: HM}),
            "<think>hm</think>a1.<|end|>; a3.<|end|>; <think>hm</think>a4.<|end|>",
        ),
        (thinking("<|assistant|>"), "aua", {2: HM}, "a0.<|end|>; <think>hm</think>a2.<|end|>"),
        # Nothing tells what the model is given in front of all messages; later on, the prompt does.
        (
            each(
                "{{ '\nBot: say ' if m.role == 'assistant' else '\nUser: ' }}{{ m.content }}",
                "{{ '\nBot:' if add_generation_prompt }}",
            ),
            *("auau", {}, "a0.;  say a2."),
        ),
        # A generation prompt that depends on the message before.
        (
            each(
                "{{ '<|assistant|><think></think>' if m.role == 'assistant' else '<|other|>' }}"
                "{{ m.content }}<|end|>",
                ASKS + "{{ '<think></think>' if add_generation_prompt and messages[-1].role == 'tool' }}",
            ),
            "uataua",
            {},
            "<think></think>a1.<|end|>; a3.<|end|>; <think></think>a5.<|end|>",
        ),
    ],
)
def test_turns_of_templates_that_are_not_followed(
    source: str, roles: str, fields: Mapping[int, Mapping[str, str]], wanted: str
) -> None:
    assert "; ".join(learned(source, plain_talk(roles, fields))) == wanted


@pytest.mark.parametrize(
    ("prompt", "header", "turn"),
    [
        ("Bot:", "Bot:", "a1.<|end|>"),
        ("Bot:", "Bot:<say>", "<say>a1.<|end|>"),
        # White space between a header and a plain content is nobody's.
        ("Bot:", "Bot: ", "a1.<|end|>"),
        # The header can be in the prompt in part, in another form, or not at all.
        ("<|assistant|>", "<|assistant|>final\n", "final\na1.<|end|>"),
        ("<|assistant|><think>", "<|assistant|>", "a1.<|end|>"),
        ("", "Bot:<say>", "a1.<|end|>"),
    ],
)
def test_markup_before_a_plain_content(prompt: str, header: str, turn: str) -> None:
    message = f"{{{{ {header!r} if m.role == 'assistant' else 'User:' }}}}{{{{ m.content }}}}<|end|>"
    source = each(message, f"{{{{ {prompt!r} if add_generation_prompt }}}}")
    talk = plain_talk("uaua")
    assert learned(source, talk) == [turn, turn.replace("a1.", "a3.")]
    # Nothing tells what is given in front of the first message.
    assert learned(source, talk[1:])[0] == "a1.<|end|>"


def test_markup_that_no_generation_prompt_tells_from_a_header() -> None:
    problem = "the chat template does not tell which markup in front of it the model is given"
    for prompt, fields, place in (
        ("", {2: HM}, 2),
        ("", {2: HM | EMPTY}, 2),
        ("<|assistant|>", {0: HM, 2: HM}, 0),  # there is no prompt in front of the first message
    ):
        with pytest.raises(OptionError, match=f"^message {place}: {problem}"):
            learned(thinking(prompt), plain_talk("aua", fields))


def test_a_hidden_author_is_an_error_with_the_messages_and_the_reasons() -> None:
    def spans(messages: Messages, *segments: Segment) -> list[tuple[int, int]]:
        rendered = Rendered(segments, untracked=("it was reversed", "it was sorted"))
        return assistant_spans(rendered, messages, lambda *_: rendered, TOKENS)

    talk = plain_talk("ua" * 3)
    hidden = Segment(".", Origin("messages"))
    reasons = r"\(it was reversed; it was sorted\); mark the assistant's text"
    with pytest.raises(
        OptionError, match=rf"^message 0 or 1 or 2 or 3: the template hides .* '\.' {reasons}"
    ):
        spans(talk, hidden)
    # All messages have texts of their own, so any of them can be its author.
    own = [Segment(message["content"], Origin("messages", number)) for number, message in enumerate(talk)]
    with pytest.raises(OptionError, match=r"^the template hides the author of the text"):
        spans(talk, hidden, *own)


def test_few_renderings_find_the_turns() -> None:
    calls = []

    class Counting(Undeclared):
        def render(self, messages: Any, **options: Any) -> Rendered:
            calls.append(len(messages))
            return super().render(messages, **options)

    template: Template = Counting(BUILT_IN["chatml"])
    talk = plain_talk("ua" * 50)

    def render(some: Any, asks: bool) -> Rendered:
        return template.render(some, add_generation_prompt=asks)

    ranges = assistant_spans(template.render(talk), talk, render, {"<|im_end|>"})
    assert len(ranges) == 50
    assert len(calls) <= 6
