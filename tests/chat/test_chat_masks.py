"""Which tokens are the assistant's: exactly its texts and end tokens, for every template."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pytest

from bpe_tokenizer import BPETokenizer, OptionError
from bpe_tokenizer.chat import Origin, Rendered, Segment, Template
from bpe_tokenizer.chat.assistant_spans import assistant_spans
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.chat.message_regions import message_regions
from bpe_tokenizer.chat.messages import Messages
from bpe_tokenizer.errors import ChatTemplateError
from chat_cases import JINJA, Undeclared, chat_tokenizer, published, published_names
from conversations import vary

# The end tokens of the turns of published templates, and of the last turn if it ends differently.
ENDS: Mapping[str, tuple[str, str]] = {
    "HuggingFaceTB-SmolLM3-3B": ("<|im_end|>", "<|im_end|>"),
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": ("<|im_end|>", "<|im_end|>"),
    "Qwen-Qwen2.5-7B-Instruct": ("<|im_end|>", "<|im_end|>"),
    "Qwen-Qwen3-0.6B": ("<|im_end|>", "<|im_end|>"),
    "deepseek-ai-DeepSeek-V3.1": ("<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "google-gemma-2-2b-it": ("<end_of_turn>", "<end_of_turn>"),
    "ibm-granite-granite-4.0": ("<|end_of_text|>", "<|end_of_text|>"),
    "meta-llama-Llama-3.1-8B-Instruct": ("<|eot_id|>", "<|eot_id|>"),
    "meta-llama-Llama-3.2-3B-Instruct": ("<|eot_id|>", "<|eot_id|>"),
    "microsoft-Phi-3.5-mini-instruct": ("<|end|>", "<|end|>"),
    # Its eos_token, which is the tokenizer's: here another one than Mistral's.
    "mistralai-Mistral-Nemo-Instruct-2407": ("<|endoftext|>", "<|endoftext|>"),
    "openai-gpt-oss-120b": ("<|end|>", "<|return|>"),
}
OWN_ENDS: Mapping[str, tuple[str, str]] = {
    "plain turns": ("<|im_end|>", "<|im_end|>"),
    "roles inside of tokens": ("<|end|>", "<|end|>"),
    "generation": ("<|end|>", "<|end|>"),
    "another end for the last": ("<|end|>", "<|return|>"),
    "no markup but words": ("", ""),
}
# What the model writes before a plain reply, in all turns but the last and in the last: the generation prompt
# lacks it.
LEADS: Mapping[str, tuple[str, str]] = {
    "Qwen-Qwen3-0.6B": ("", "<think>\n\n</think>\n\n"),
    "openai-gpt-oss-120b": ("<|channel|>final<|message|>", "<|channel|>final<|message|>"),
    "another end for the last": ("<|message|>", "<|message|>"),
    "harmony": ("<|channel|>final<|message|>", "<|channel|>final<|message|>"),
}
BUILT_IN_ENDS = {
    "llama3": "<|eot_id|>",
    "chatml": "<|im_end|>",
    "alpaca": "",
    "mistral": "</s>",
    "gemma": "<end_of_turn>",
    "phi3": "<|end|>",
    "gpt-4": "<|im_end|>",
    "harmony": "<|end|>",
}


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return chat_tokenizer()


TOOL = {
    "type": "function",
    "function": {
        "name": "rain",
        "description": "Whether it rains.",
        "parameters": {"type": "object", "properties": {"x": {"type": "string", "description": "Where."}}},
    },
}


def masked_text(tokenizer: BPETokenizer, messages: Any, template: Any, **options: Any) -> str:
    ids, mask = tokenizer.apply_chat_template(messages, template, return_assistant_mask=True, **options)
    assert len(ids) == len(mask)
    assert ids == tokenizer.apply_chat_template(messages, template, **options)
    return tokenizer.decode([token_id for token_id, learned in zip(ids, mask, strict=True) if learned])


def plain_talk(*roles: str) -> list[dict[str, str]]:
    # Letters without white space at the ends: nothing strips them, and no token joins them with markup.
    return [{"role": role, "content": f"{role[0]}{number}."} for number, role in enumerate(roles)]


TALKS = [
    plain_talk("user", "assistant"),
    plain_talk("user", "assistant", "user", "assistant", "user", "assistant"),
    plain_talk("user", "assistant", "user"),
]


def expected(talk: Sequence[Mapping[str, str]], ends: tuple[str, str], name: str = "") -> str:
    texts = [message["content"] for message in talk if message["role"] == "assistant"]
    last = len(texts) - 1 if talk[-1]["role"] == "assistant" else len(texts)
    leads = LEADS.get(name, ("", ""))
    return "".join(leads[at == last] + text + ends[at == last] for at, text in enumerate(texts))


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name != "alpaca"])
def test_turns_of_built_in_templates(name: str, tokenizer: BPETokenizer) -> None:
    end, lead = BUILT_IN_ENDS[name], LEADS.get(name, ("", ""))[0]
    for talk in [*TALKS, plain_talk("assistant", "user", "assistant", "assistant"), plain_talk("assistant")]:
        for prompt in (True, False):
            last = "<|return|>" if name == "harmony" and not prompt else end
            # No prompt shows what the model writes at the start of a conversation.
            hides = bool(lead) and talk[0]["role"] == "assistant"
            for template in (name, Undeclared(BUILT_IN[name]))[: 1 if hides else 2]:
                text = masked_text(tokenizer, talk, template, add_generation_prompt=prompt)
                assert text == expected(talk, (end, last), name)
    with_system = plain_talk("system", "user", "assistant")
    assert masked_text(tokenizer, with_system, name) == f"{lead}a2.{end}"
    prompted = masked_text(tokenizer, with_system[1:], name, system_prompt="Be brief.")
    assert prompted == f"{lead}a2.{end}"


@pytest.mark.parametrize("name", JINJA)
def test_turns_of_jinja_templates(name: str, tokenizer: BPETokenizer) -> None:
    for talk in TALKS:
        for template in (JINJA[name], Undeclared(JinjaTemplate(JINJA[name]))):
            text = masked_text(tokenizer, talk, template, add_generation_prompt=False)
            assert text == expected(talk, OWN_ENDS[name], name)


@pytest.mark.parametrize("name", published_names())
def test_turns_of_published_templates(name: str, tokenizer: BPETokenizer) -> None:
    source = published(name)
    tools = [TOOL] if "Hermes" in name else None
    for talk in TALKS:
        text = masked_text(tokenizer, talk, source, add_generation_prompt=False, tools=tools)
        assert text == expected(talk, ENDS[name], name)
    assert masked_text(tokenizer, talk, source, tools=tools) == text


@pytest.mark.parametrize("name", published_names())
def test_turns_with_calls_of_tools(name: str, tokenizer: BPETokenizer) -> None:
    """They hold the calls with their markup, and nothing of the users' and the tools'."""
    source = published(name)
    if "tool_calls" not in source and "tool_call" not in source:
        pytest.skip("the template knows no tools")
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "rain", "arguments": {"x": "Zug"}}}
    talk: list[dict[str, Any]] = [
        {"role": "user", "content": "QUESTION"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdefghi", "name": "rain", "content": "RESULT"},
        {"role": "assistant", "content": "Yes."},
    ]
    options: dict[str, Any] = {"tools": [TOOL], "add_generation_prompt": False}
    text = masked_text(tokenizer, talk, source, **options)
    first, _, second = text.partition(LEADS.get(name, ("", ""))[1] + "Yes.")
    assert second == ENDS[name][1]
    assert "rain" in first
    assert "Zug" in first
    assert "QUESTION" not in text
    assert "RESULT" not in text
    # What asks for a reply is not the model's. What it writes from there until the tool answers is.
    asked = tokenizer.apply_chat_template(talk[:1], source, tools=[TOOL], tokenize=False)
    whole = tokenizer.apply_chat_template(talk, source, tokenize=False, **options)
    assert asked.rpartition("QUESTION")[2] + first in whole
    alone = tokenizer.apply_chat_template(talk[:2], source, tokenize=False, **options)
    assert alone.rstrip().endswith(first)


def test_exact_turns_with_calls_of_tools(tokenizer: BPETokenizer) -> None:
    """One case in full: the markup before the name of the tool is learned too."""
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.tool_calls %}{% for c in m.tool_calls %}"
        '<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}'
        "</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    call = {"type": "function", "function": {"name": "rain", "arguments": {"x": 1}}}
    talk = [
        {"role": "user", "content": "Does it rain?"},
        {"role": "assistant", "tool_calls": [call, call]},
        {"role": "tool", "content": "no"},
    ]
    written = '<tool_call>{"name": "rain", "arguments": ' + json.dumps({"x": 1}) + "}</tool_call>"
    assert masked_text(tokenizer, talk, source) == written * 2 + "<|im_end|>"
    # A call of which the template repeats the name as the author of the result.
    repeating = source.replace(
        "{% else %}{{ m.content }}",
        "{% elif m.role == 'tool' %}{{ messages[loop.index0 - 1].tool_calls[0].function.name }}: "
        "{{ m.content }}"
        "{% else %}{{ m.content }}",
    )
    assert masked_text(tokenizer, talk, repeating) == written * 2 + "<|im_end|>"


@pytest.mark.parametrize("name", BUILT_IN)
def test_turns_are_found_without_being_declared(name: str) -> None:
    """The spans found by rendering the first messages equal the built-in templates' own."""
    template = BUILT_IN[name]
    undeclared = Undeclared(template)
    special = frozenset(filter(None, [*BUILT_IN_ENDS.values(), "<|return|>"]))
    for seed in range(200):
        last = "assistant" if seed % 3 else "user"
        talk = vary(seed, tools=False, reasoning=False, documents=False, last=last).messages
        messages = [{**message, "content": message["content"] or ""} for message in talk]
        prompt = bool(seed % 2)
        declared = template.render(messages, add_generation_prompt=prompt)
        expected_ranges = [(start, end) for start, end in declared.generated or () if start < end]
        rendered = undeclared.render(messages, add_generation_prompt=prompt)

        def render(some: Any, asks: bool) -> Rendered:
            return undeclared.render(some, add_generation_prompt=asks)

        if expected_ranges or all(message["role"] != "assistant" for message in messages):
            assert assistant_spans(rendered, messages, render, special) == expected_ranges


@pytest.mark.parametrize("name", ["chatml", "llama3", "phi3", "mistral", "gemma"])
def test_empty_turns_are_their_end_tokens(name: str, tokenizer: BPETokenizer) -> None:
    end = BUILT_IN_ENDS[name]
    talk = plain_talk("user", "assistant", "user", "assistant")
    talk[1]["content"] = ""
    for template in (name, Undeclared(BUILT_IN[name])):
        assert masked_text(tokenizer, talk, template, add_generation_prompt=False) == f"{end}a3.{end}"


def test_contents_that_a_template_strips_or_drops(tokenizer: BPETokenizer) -> None:
    stripping = JINJA["roles inside of tokens"]
    talk = plain_talk("user", "assistant", "user", "assistant")
    talk[1]["content"] = "  yes \n"
    talk[3]["content"] = " \n "
    text = masked_text(tokenizer, talk, stripping, add_generation_prompt=False)
    assert text == "yes<|end|><|end|>"
    dropping = "{% for m in messages[-2:] %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    assert masked_text(tokenizer, TALKS[1], dropping) == "a5.<|end|>"


def test_reasoning_is_learned_where_it_is_written(tokenizer: BPETokenizer) -> None:
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if loop.last and m.thinking %}"
        "<think>{{ m.thinking }}</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    talk: list[dict[str, str]] = plain_talk("user", "assistant", "user", "assistant")
    talk[1]["thinking"] = talk[3]["thinking"] = "hm"
    text = masked_text(tokenizer, talk, source, add_generation_prompt=False)
    assert text == "a1.<|im_end|><think>hm</think>a3.<|im_end|>"


class Thinking:
    """A template in Python: reasoning in tags, before the content of a turn."""

    source = "<|im_start|><think></think><|im_end|>"

    def render(
        self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = True, **_: Any
    ) -> Rendered:
        segments = []
        for number, message in enumerate(messages):
            role, content = (Origin("messages", number, field) for field in ("role", "content"))
            segments += [Segment("<|im_start|>"), Segment(message["role"], role), Segment("\n")]
            if "thinking" in message:
                thinking = Segment(message["thinking"], Origin("messages", number, "thinking"))
                segments += [Segment("<think>"), thinking, Segment("</think>")]
            segments += [Segment(message["content"], content), Segment("<|im_end|>\n")]
        if add_generation_prompt:
            segments.append(Segment("<|im_start|>assistant\n"))
        return Rendered(tuple(segments))


@pytest.mark.parametrize("prompted", [False, True])
def test_markup_between_a_header_and_contents_is_learned(prompted: bool, tokenizer: BPETokenizer) -> None:
    talk: list[dict[str, str]] = plain_talk("user", "assistant", "user", "assistant", "assistant")
    talk[1]["thinking"] = talk[4]["thinking"] = "hm"
    text = masked_text(tokenizer, talk, Thinking(), add_generation_prompt=prompted)
    thought = "<think>hm</think>"
    assert text == f"{thought}a1.<|im_end|>a3.<|im_end|>{thought}a4.<|im_end|>"


# A template in Python. It yields its markup, and the contents as (message, field).
Writer: TypeAlias = Callable[[Messages, bool], Iterator[str | tuple[int, str]]]
TOKENS = frozenset(("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>", "<|return|>"))


def learned(write: Writer, talk: Messages, special: Collection[str] = TOKENS) -> list[str]:
    """Return the texts that the model must produce, one for each turn."""

    def render(messages: Messages, asks: bool) -> Rendered:
        segments: list[Segment] = []
        for part in write(messages, asks):
            text = part if isinstance(part, str) else messages[part[0]][part[1]]
            origin = None if isinstance(part, str) else Origin("messages", *part)
            if segments and segments[-1].origin == origin:
                text = segments.pop().text + text
            segments += [Segment(text, origin)] if text else []
        return Rendered(tuple(segments))

    rendered = render(talk, False)
    return [rendered.text[start:end] for start, end in assistant_spans(rendered, talk, render, special)]


def turns(
    end: str = "<|end|>", last: str | None = None, close: str = "", ends_with_assistant: bool = True
) -> Writer:
    """Return a template.

    Args:
        end: The text after each message.
        last: The text after a reply that is the last message.
        close: The text at the end of a conversation without a generation prompt.
        ends_with_assistant: Whether the last message can be a reply.
    """

    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        answered = messages[-1]["role"] == "assistant"
        if answered and not ends_with_assistant:
            raise ChatTemplateError("the last message is a reply")
        for number, message in enumerate(messages):
            yield f"<|{message['role']}|>"
            yield number, "content"
            final = answered and not asks and number == len(messages) - 1
            yield end if last is None or not final else last
        yield "<|assistant|>" if asks else close

    return write


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
def test_end_markers_of_templates_in_python(
    template: Writer, ends: tuple[str, str], empty: int | None
) -> None:
    """They are learned after texts and empty replies, and no header of a user is."""
    talk = plain_talk("user", "assistant", "user", "assistant")
    if empty is not None:
        talk[empty]["content"] = ""
    wanted = [talk[1]["content"] + ends[0], talk[3]["content"] + ends[1]]
    assert learned(template, talk) == [turn for turn in wanted if turn]
    assert learned(template, [*talk, {"role": "user", "content": "u4."}])[0] == (wanted[0] or "a3.")


def test_end_markers_that_are_no_special_tokens() -> None:
    talk = plain_talk("user", "assistant", "user", "assistant")
    talk[1]["content"] = ""
    assert learned(turns("</s>\n"), talk, special=()) == ["</s>", "a3.</s>"]


def test_turns_of_a_template_that_rejects_a_reply_at_the_end() -> None:
    """No rendering shows where a turn ends, so it is the next special token."""
    talk = plain_talk("user", "assistant", "user", "assistant", "user")
    assert learned(turns(ends_with_assistant=False), talk) == ["a1.<|end|>", "a3.<|end|>"]


def test_turns_without_headers() -> None:
    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        for number, message in enumerate(messages):
            yield number, "content"
            yield "<|end|>" if message["role"] == "assistant" else ""

    talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": ""}]
    talk += [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    assert learned(write, talk) == ["<|end|>", "y<|end|>"]


def test_an_empty_reply_without_an_end_is_no_turn() -> None:
    """The text of the next message is not its own."""

    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        for number, message in enumerate(messages):
            yield number, "content"
            yield "<|end|>" if message["role"] == "user" else ""
        yield "<|return|>" if messages[-1]["role"] == "assistant" else ""

    talk = plain_talk("user", "assistant", "user", "assistant")
    talk[1]["content"] = ""
    assert learned(write, talk) == ["a3.<|return|>"]


def test_an_empty_reply_in_front_of_all_messages() -> None:
    """A template need not render a conversation without messages."""
    talk = plain_talk("assistant", "user", "assistant")
    talk[0]["content"] = ""
    assert learned(turns(), talk) == ["a2.<|end|>"]


@pytest.mark.parametrize("repeated", ["", "before", "after"])
def test_a_call_that_its_result_repeats_is_learned_once(repeated: str) -> None:
    """With the markup around it. The template has no generation prompt after a reply."""

    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        for number, message in enumerate(messages):
            yield f"<|{message['role']}|>"
            if message["role"] == "tool" and repeated == "before":
                yield number - 1, "call"
                yield " says "
            yield number, "content"
            if message["role"] == "tool" and repeated == "after":
                yield " says "
                yield number - 1, "call"
            if "call" in message:
                yield "<call>"
                yield number, "call"
                yield "</call>"
            yield "<|end|>"
        if asks and messages[-1]["role"] == "assistant":
            raise ChatTemplateError("a reply to a reply")
        yield "<|assistant|>" if asks else ""

    talk: list[dict[str, str]] = plain_talk("system", "user", "assistant", "tool", "assistant")
    talk[2] |= {"content": "", "call": "rain"}
    assert learned(write, talk) == ["<call>rain</call><|end|>", "a4.<|end|>"]
    talk[2]["content"] = "a2."
    assert learned(write, talk) == ["a2.<call>rain</call><|end|>", "a4.<|end|>"]
    talk[4]["content"] = ""
    assert learned(write, talk) == ["a2.<call>rain</call><|end|>", "<|end|>"]


def test_a_turn_with_a_text_of_another_message_in_it() -> None:
    """That text is not learned, and the turn goes on after it."""

    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        for number, message in enumerate(messages):
            yield f"<|{message['role']}|>"
            if message["role"] == "assistant":
                yield number, "thinking"
                yield number - 1, "content"
            yield number, "content"
            yield "<|end|>"
        yield "<|assistant|>" if asks else ""

    talk: list[dict[str, str]] = plain_talk("system", "user", "assistant", "user")
    talk[2]["thinking"] = "hm"
    assert learned(write, talk) == ["hm", "a2.<|end|>"]


def thinking(prompt: str) -> Writer:
    """Return a template with reasoning in tags, and with a generation prompt."""

    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        for number, message in enumerate(messages):
            yield f"<|{message['role']}|>"
            if "thinking" in message:
                yield "<think>"
                yield number, "thinking"
                yield "</think>"
            yield number, "content"
            yield "<|end|>"
        yield prompt if asks else ""

    return write


@pytest.mark.parametrize(
    ("prompt", "turn"),
    [
        ("<|assistant|>", "<think>hm</think>a1.<|end|>"),
        ("<|assistant|><think>", "hm</think>a1.<|end|>"),
        ("<|assistant|><think>\n", "hm</think>a1.<|end|>"),
    ],
)
def test_the_markup_that_the_generation_prompt_holds_is_given(prompt: str, turn: str) -> None:
    talk: list[dict[str, str]] = plain_talk("user", "assistant")
    talk[1]["thinking"] = "hm"
    assert learned(thinking(prompt), talk) == [turn]


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
    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        for number, message in enumerate(messages):
            yield header if message["role"] == "assistant" else "User:"
            yield number, "content"
            yield "<|end|>"
        yield prompt if asks else ""

    talk = plain_talk("user", "assistant", "user", "assistant")
    assert learned(write, talk) == [turn, turn.replace("a1.", "a3.")]
    # Nothing tells what is given in front of the first message.
    assert learned(write, talk[1:])[0] == "a1.<|end|>"


def test_a_first_turn_that_looks_like_a_later_one() -> None:
    """Nothing tells what the model is given in front of all messages; later on, the prompt does."""

    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        for number, message in enumerate(messages):
            yield "\nBot: say " if message["role"] == "assistant" else "\nUser: "
            yield number, "content"
        yield "\nBot:" if asks else ""

    assert learned(write, plain_talk("assistant", "user", "assistant", "user")) == ["a0.", " say a2."]


def test_a_generation_prompt_that_depends_on_the_message_before() -> None:
    def write(messages: Messages, asks: bool) -> Iterator[str | tuple[int, str]]:
        for number, message in enumerate(messages):
            yield "<|assistant|><think></think>" if message["role"] == "assistant" else "<|other|>"
            yield number, "content"
            yield "<|end|>"
        opening = "<think></think>" if messages[-1]["role"] == "tool" else ""
        yield f"<|assistant|>{opening}" if asks else ""

    talk = plain_talk("user", "assistant", "tool", "assistant", "user", "assistant")
    thought = "<think></think>"
    assert learned(write, talk) == [f"{thought}a1.<|end|>", "a3.<|end|>", f"{thought}a5.<|end|>"]


def test_markup_that_no_generation_prompt_tells_from_a_header() -> None:
    talk: list[dict[str, str]] = plain_talk("assistant", "user", "assistant")
    talk[2]["thinking"] = "hm"
    problem = "the chat template does not tell which markup in front of it the model is given"
    for content in ("a2.", ""):
        silent = [*talk[:2], talk[2] | {"content": content}]
        with pytest.raises(OptionError, match=f"^message 2: {problem}"):
            learned(thinking(""), silent)
    assert learned(thinking("<|assistant|>"), talk) == ["a0.<|end|>", "<think>hm</think>a2.<|end|>"]
    # There is no prompt in front of the first message.
    talk[0]["thinking"] = "hm"
    with pytest.raises(OptionError, match=f"^message 0: {problem}"):
        learned(thinking("<|assistant|>"), talk)


def test_documents_are_not_learned(tokenizer: BPETokenizer) -> None:
    """Also where the end token of a reply can be. A document can have the index of a reply."""
    source = (
        "{% for m in messages %}{% if not loop.first %}<|end|>{% endif %}<|{{ m.role }}|>{{ m.content }}"
        "{% endfor %}<|end|><|system|>{{ documents[1].text }}"
    )
    documents = [{"text": "DOCUMENT"}, {"text": "ANOTHER"}]
    text = masked_text(tokenizer, TALKS[0], source, add_generation_prompt=False, documents=documents)
    assert "a1." in text
    assert "ANOTHER" not in text


def test_a_turn_to_be_continued_has_no_end(tokenizer: BPETokenizer) -> None:
    talk = plain_talk("user", "assistant", "user", "assistant")
    for template in ("chatml", JINJA["plain turns"]):
        text = masked_text(tokenizer, talk, template, continue_final_message=True)
        assert text == "a1.<|im_end|>a3."


def test_end_markers_that_are_no_tokens() -> None:
    """Without its special tokens, a tokenizer reads the end marker as text."""
    plain = chat_tokenizer(special=(), markup=())
    for template in ("chatml", JINJA["plain turns"]):
        assert masked_text(plain, TALKS[0], template, plain_markup=True).startswith("a1.<|im_end|>")


def test_a_token_of_both_is_learned(tokenizer: BPETokenizer) -> None:
    """The corpus makes two line ends a token, of which one is the template's."""
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "yes\n"}]
    source = JINJA["no markup but words"]
    assert tokenizer.apply_chat_template(talk, source, False, tokenize=False).endswith("yes\n\n")
    assert masked_text(tokenizer, talk, source, add_generation_prompt=False) == "yes\n\n"


def test_masks_that_cannot_be(tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match="the template writes nothing of the assistant's 1 messages"):
        tokenizer.apply_chat_template(TALKS[2], "alpaca", return_assistant_mask=True)
    ids, mask = tokenizer.apply_chat_template(TALKS[2][:1], "chatml", return_assistant_mask=True)
    assert mask == [0] * len(ids)

    class Hiding:
        source = ""

        def render(self, messages: Any, **options: Any) -> Rendered:
            return Rendered((Segment("sdrawkcab", Origin("messages")),), untracked=("it was reversed",))

    with pytest.raises(
        OptionError, match=r"message 0 or 1: .* author of the text 'sdrawkcab' \(it was reversed\)"
    ):
        tokenizer.apply_chat_template(TALKS[0], Hiding(), return_assistant_mask=True)


def test_a_hidden_author_is_an_error_with_the_messages_and_the_reasons() -> None:
    def spans(messages: Messages, *segments: Segment) -> list[tuple[int, int]]:
        rendered = Rendered(segments, untracked=("it was reversed", "it was sorted"))
        return assistant_spans(rendered, messages, lambda *_: rendered, TOKENS)

    talk = plain_talk(*["user", "assistant"] * 3)
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
    talk = plain_talk(*["user", "assistant"] * 50)

    def render(some: Any, asks: bool) -> Rendered:
        return template.render(some, add_generation_prompt=asks)

    ranges = assistant_spans(template.render(talk), talk, render, {"<|im_end|>"})
    assert len(ranges) == 50
    assert len(calls) <= 6


def test_parts_of_a_conversation() -> None:
    rendered = Rendered(
        (
            Segment("<u>"),
            Segment("user", Origin("messages", 0, "role")),
            Segment("a", Origin("messages", 0, "content")),
            Segment("<t>"),
            Segment("{}", Origin("tools", 0)),
            Segment("</t>"),
            Segment("b", Origin("messages", 1, "content")),
            Segment("<c>"),
            Segment("c", Origin("messages", 1, "tool_calls")),
            Segment("<e>"),
        )
    )
    first, second = message_regions(rendered)
    assert (first.index, first.start, first.end, first.before, first.after) == (0, 7, 8, "<u>user", "<t>")
    assert (second.index, second.pieces, second.gaps) == (1, [(17, 18), (21, 22)], ["<c>"])
    assert (second.before, second.after, second.fields) == ("</t>", "<e>", {"content", "tool_calls"})


@pytest.mark.sampled(0.33)
@pytest.mark.parametrize("name", published_names())
def test_turns_of_made_up_conversations(name: str, tokenizer: BPETokenizer) -> None:
    """All that assistants say is learned, and nothing that others do."""
    source = published(name)
    fixed: dict[str, Any] = {"system": False} if "gemma" in name else {}
    fixed |= {"tools": True} if "Hermes" in name else {}
    taken = 0
    for seed in range(150):
        talk = vary(seed, parts=False, empty=False, **fixed)
        given: dict[str, Any] = {"tools": talk.tools, "documents": talk.documents, "return_dict": True}
        try:
            row = tokenizer.apply_chat_template(
                talk.messages, source, return_assistant_mask=True, return_message_spans=True, **given
            )
        except ChatTemplateError:
            continue
        taken += 1
        mask, ids = row["assistant_masks"], row["input_ids"]
        for span in row["message_spans"]:
            learned = mask[span.start : span.end]
            if span.role == "assistant":
                # The header of a tool's result may repeat the tool's name, as gpt-oss does.
                assert learned == sorted(learned, reverse=True)
            else:
                # A run of white space at an end may be a token together with the template's.
                assert not any(learned[1:-1])
        # Each run of learned tokens ends with the end token, or with a token of a text that is cut off.
        ends = {tokenizer.special_tokens[end] for end in ENDS[name]}
        others = {tokenizer.special_tokens[end] for end in ("<|eom_id|>", "<|call|>")}
        last = [ids[n] for n in range(len(ids)) if mask[n] and not [*mask, 0][n + 1]]
        assert set(last) <= ends | others
        assert len(last) <= sum(message["role"] == "assistant" for message in talk.messages)
    assert taken > 60
