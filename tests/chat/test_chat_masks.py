"""Which tokens are the assistant's: exactly its texts and end tokens, for every template."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

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

# The templates by the end token of a turn. That of Mistral Nemo is its eos_token, which is the tokenizer's.
ENDS = {
    name: end
    for end, names in {
        "<|im_end|>": "HuggingFaceTB-SmolLM3-3B; NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use; chatml; "
        "gpt-4; Qwen-Qwen2.5-7B-Instruct; Qwen-Qwen3-0.6B; plain turns",
        "<|eot_id|>": "meta-llama-Llama-3.1-8B-Instruct; meta-llama-Llama-3.2-3B-Instruct; llama3",
        "<|end|>": "microsoft-Phi-3.5-mini-instruct; openai-gpt-oss-120b; phi3; harmony; "
        "roles inside of tokens; generation; another end for the last",
        "<end_of_turn>": "google-gemma-2-2b-it; gemma",
        "<｜end▁of▁sentence｜>": "deepseek-ai-DeepSeek-V3.1",
        "<|end_of_text|>": "ibm-granite-granite-4.0",
        "<|endoftext|>": "mistralai-Mistral-Nemo-Instruct-2407",
        "</s>": "mistral",
        "": "alpaca; no markup but words",
    }.items()
    for name in names.split("; ")
}
# Those whose last turn ends differently.
LAST_ENDS = dict.fromkeys(["openai-gpt-oss-120b", "another end for the last"], "<|return|>")
# What the model writes before a plain reply, in all turns but the last and in the last: the generation prompt
# lacks it.
FINAL = "<|channel|>final<|message|>"
LEADS: Mapping[str, tuple[str, str]] = {
    "Qwen-Qwen3-0.6B": ("", "<think>\n\n</think>\n\n"),
    "openai-gpt-oss-120b": (FINAL, FINAL),
    "another end for the last": ("<|message|>", "<|message|>"),
    "harmony": (FINAL, FINAL),
}
ROLES = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
TOOL = {
    "type": "function",
    "function": {
        "name": "rain",
        "description": "Whether it rains.",
        "parameters": {"type": "object", "properties": {"x": {"type": "string", "description": "Where."}}},
    },
}


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return chat_tokenizer()


def masked_text(tokenizer: BPETokenizer, messages: Any, template: Any, **options: Any) -> str:
    ids, mask = tokenizer.apply_chat_template(messages, template, return_assistant_mask=True, **options)
    assert len(ids) == len(mask)
    assert ids == tokenizer.apply_chat_template(messages, template, **options)
    return tokenizer.decode([token_id for token_id, learned in zip(ids, mask, strict=True) if learned])


def plain_talk(roles: str, fields: Mapping[int, Mapping[str, str]] | None = None) -> list[dict[str, str]]:
    """Messages of roles like "uaua": "u0.", "a1.", ..., with other fields of some."""
    # Letters without white space at the ends: nothing strips them, and no token joins them with markup.
    return [
        {"role": ROLES[role], "content": f"{role}{number}."} | dict((fields or {}).get(number, {}))
        for number, role in enumerate(roles)
    ]


TALKS = [plain_talk("ua"), plain_talk("uauaua"), plain_talk("uau")]


def expected(talk: Sequence[Mapping[str, str]], name: str, last_end: str | None = None) -> str:
    texts = [message["content"] for message in talk if message["role"] == "assistant"]
    last = len(texts) - 1 if talk[-1]["role"] == "assistant" else len(texts)
    ends = (ENDS[name], LAST_ENDS.get(name, ENDS[name]) if last_end is None else last_end)
    leads = LEADS.get(name, ("", ""))
    return "".join(leads[at == last] + text + ends[at == last] for at, text in enumerate(texts))


@pytest.mark.parametrize("name", [name for name in BUILT_IN if name != "alpaca"])
def test_turns_of_built_in_templates(name: str, tokenizer: BPETokenizer) -> None:
    end, lead = ENDS[name], LEADS.get(name, ("", ""))[0]
    for talk in [*TALKS, plain_talk("auaa"), plain_talk("a")]:
        for prompt in (True, False):
            last = "<|return|>" if name == "harmony" and not prompt else end
            # No prompt shows what the model writes at the start of a conversation.
            hides = bool(lead) and talk[0]["role"] == "assistant"
            for template in (name, Undeclared(BUILT_IN[name]))[: 1 if hides else 2]:
                text = masked_text(tokenizer, talk, template, add_generation_prompt=prompt)
                assert text == expected(talk, name, last)
    with_system = plain_talk("sua")
    assert masked_text(tokenizer, with_system, name) == f"{lead}a2.{end}"
    prompted = masked_text(tokenizer, with_system[1:], name, system_prompt="Be brief.")
    assert prompted == f"{lead}a2.{end}"


@pytest.mark.parametrize("name", JINJA)
def test_turns_of_jinja_templates(name: str, tokenizer: BPETokenizer) -> None:
    for talk in TALKS:
        for template in (JINJA[name], Undeclared(JinjaTemplate(JINJA[name]))):
            text = masked_text(tokenizer, talk, template, add_generation_prompt=False)
            assert text == expected(talk, name)


@pytest.mark.parametrize("name", published_names())
def test_turns_of_published_templates(name: str, tokenizer: BPETokenizer) -> None:
    source = published(name)
    tools = [TOOL] if "Hermes" in name else None
    for talk in TALKS:
        text = masked_text(tokenizer, talk, source, add_generation_prompt=False, tools=tools)
        assert text == expected(talk, name)
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
    assert second == LAST_ENDS.get(name, ENDS[name])
    assert [part in first for part in ("rain", "Zug")] == [True, True]
    assert [part in text for part in ("QUESTION", "RESULT")] == [False, False]
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
        "{{ m.content }}{% else %}{{ m.content }}",
    )
    assert masked_text(tokenizer, talk, repeating) == written * 2 + "<|im_end|>"


@pytest.mark.parametrize("name", BUILT_IN)
def test_turns_are_found_without_being_declared(name: str) -> None:
    """The spans found by rendering the first messages equal the built-in templates' own."""
    template = BUILT_IN[name]
    undeclared = Undeclared(template)
    special = frozenset(filter(None, [*(ENDS[each] for each in BUILT_IN), "<|return|>"]))
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
    talk = plain_talk("uaua", {1: {"content": ""}})
    for template in (name, Undeclared(BUILT_IN[name])):
        text = masked_text(tokenizer, talk, template, add_generation_prompt=False)
        assert text == f"{ENDS[name]}a3.{ENDS[name]}"


def test_contents_that_a_template_strips_or_drops(tokenizer: BPETokenizer) -> None:
    stripping = JINJA["roles inside of tokens"]
    talk = plain_talk("uaua", {1: {"content": "  yes \n"}, 3: {"content": " \n "}})
    assert masked_text(tokenizer, talk, stripping, add_generation_prompt=False) == "yes<|end|><|end|>"
    dropping = "{% for m in messages[-2:] %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    assert masked_text(tokenizer, TALKS[1], dropping) == "a5.<|end|>"


def test_reasoning_is_learned_where_it_is_written(tokenizer: BPETokenizer) -> None:
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if loop.last and m.thinking %}"
        "<think>{{ m.thinking }}</think>{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    talk = plain_talk("uaua", {1: {"thinking": "hm"}, 3: {"thinking": "hm"}})
    text = masked_text(tokenizer, talk, source, add_generation_prompt=False)
    assert text == "a1.<|im_end|><think>hm</think>a3.<|im_end|>"


# Templates whose loops are not followed, as those in Python: only more renderings show whose their markup is.
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
        # An empty reply without an end is no turn: the text of the next message is not its own.
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
    talk = plain_talk("uaua")
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
        ends = {tokenizer.special_tokens[end] for end in (ENDS[name], LAST_ENDS.get(name, ENDS[name]))}
        others = {tokenizer.special_tokens[end] for end in ("<|eom_id|>", "<|call|>")}
        last = [ids[n] for n in range(len(ids)) if mask[n] and not [*mask, 0][n + 1]]
        assert set(last) <= ends | others
        assert len(last) <= sum(message["role"] == "assistant" for message in talk.messages)
    assert taken > 60
