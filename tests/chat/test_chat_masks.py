"""Which tokens are the assistant's: exactly its texts and end tokens, for every template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, OptionError
from bpe_tokenizer.chat import Origin, Rendered, Segment
from bpe_tokenizer.chat.assistant_spans import assistant_spans
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.errors import ChatTemplateError
from chat_cases import JINJA, Undeclared, plain_talk, published, published_names
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


def test_contents_that_a_template_strips_or_drops(tokenizer: BPETokenizer) -> None:
    stripping = JINJA["roles inside of tokens"]
    talk = plain_talk("uaua", {1: {"content": "  yes \n"}, 3: {"content": " \n "}})
    assert masked_text(tokenizer, talk, stripping, add_generation_prompt=False) == "yes<|end|><|end|>"
    dropping = "{% for m in messages[-2:] %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    assert masked_text(tokenizer, TALKS[1], dropping) == "a5.<|end|>"


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
