from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from bpe_tokenizer import ArgumentTypeError, BPETokenizer, OptionError
from bpe_tokenizer.chat import ChatTemplate, RoleMarkup, TurnTemplate
from bpe_tokenizer.chat.budget import drop_last_turns, drop_oldest_turns
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.messages import content_text
from bpe_tokenizer.chat.template import jinja_template
from bpe_tokenizer.errors import ChatTemplateError
from chat_cases import JINJA, published
from conversations import ATTACKS, vary

TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": " Why? "},
    {"role": "assistant", "content": "Because."},
    {"role": "user", "content": "Really?"},
]
NAMES = sorted(BUILT_IN)


@pytest.fixture
def registered() -> Iterator[None]:
    yield
    for name in set(ChatTemplate.names()) - set(BUILT_IN):
        ChatTemplate.unregister(name)


@pytest.mark.parametrize(
    ("name", "text", "prompt", "end"),
    [
        (
            "llama3",
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\n Why? <|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nBecause.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nReally?<|eot_id|>",
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
            "",
        ),
        (
            "chatml",
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Why? <|im_end|>\n"
            "<|im_start|>assistant\nBecause.<|im_end|>\n<|im_start|>user\nReally?<|im_end|>\n",
            "<|im_start|>assistant\n",
            "",
        ),
        ("alpaca", "Be brief.\n\n### Instruction:\nReally?\n\n", "### Response:\n", ""),
        ("mistral", "<s>[INST] Be brief.\n\n Why?  [/INST]Because.</s>[INST] Really? [/INST]", "", ""),
        (
            "gemma",
            "<bos><start_of_turn>user\nBe brief.\n\nWhy?<end_of_turn>\n<start_of_turn>model\n"
            "Because.<end_of_turn>\n<start_of_turn>user\nReally?<end_of_turn>\n",
            "<start_of_turn>model\n",
            "",
        ),
        (
            "phi3",
            "<|system|>\nBe brief.<|end|>\n<|user|>\n Why? <|end|>\n<|assistant|>\nBecause.<|end|>\n"
            "<|user|>\nReally?<|end|>\n",
            "<|assistant|>\n",
            "<|endoftext|>",
        ),
    ],
)
def test_built_in_templates_write(name: str, text: str, prompt: str, end: str) -> None:
    function = ChatTemplate.get_template(name)
    assert function is getattr(ChatTemplate, name)
    assert function(TALK) == text + prompt
    assert function(TALK, add_generation_prompt=False) == text + end
    # The system text may also be given beside the messages, as long as they have none.
    assert function(TALK[1:], system_prompt="Be brief.") == text + prompt
    assert function(TALK, system_prompt="Rhyme.") == text + prompt


def test_a_built_in_template_needs_no_function_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = {role: RoleMarkup(f"<|{role}|>\n", "</s>", "\n") for role in ("system", "user", "assistant")}
    zephyr = TurnTemplate("zephyr", roles, reply="<|assistant|>\n")
    monkeypatch.setattr("bpe_tokenizer.chat.template.BUILT_IN", {**BUILT_IN, "zephyr": zephyr})
    text = ChatTemplate.get_template("zephyr")(TALK[:2])
    assert text == "<|system|>\nBe brief.</s>\n<|user|>\n Why? </s>\n<|assistant|>\n"


@pytest.mark.parametrize("name", NAMES)
def test_markup_does_not_depend_on_contents(name: str) -> None:
    """Other contents change the content segments and nothing else."""
    template = BUILT_IN[name]
    for seed in range(100):
        talk = vary(
            seed, tools=False, reasoning=False, documents=False, empty=False, attacks=ATTACKS
        ).messages
        harmless = [{**message, "content": "x"} for message in talk]
        segments, expected = template.render(talk).segments, template.render(harmless).segments
        assert [segment.origin for segment in segments] == [segment.origin for segment in expected]
        for (text, origin), (other, _) in zip(segments, expected, strict=True):
            if origin is None:
                assert text == other
                continue
            assert origin.index is not None
            whole = content_text(origin.index, talk[origin.index])
            assert (text, other) == (whole.strip() if text != whole else whole, "x")


MISTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}"
    "{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}"
)


@pytest.mark.fixtures
@pytest.mark.parametrize("name", ["gemma", "phi3", "mistral"])
def test_built_in_templates_are_the_published_ones(name: str) -> None:
    files = {"gemma": "google-gemma-2-2b-it", "phi3": "microsoft-Phi-3.5-mini-instruct"}
    ends = {"gemma": ("<bos>", "<eos>"), "phi3": ("<s>", "<|endoftext|>"), "mistral": ("<s>", "</s>")}
    tokens = dict(zip(("bos_token", "eos_token"), ends[name], strict=True))
    other = jinja_template(published(files[name]) if name in files else MISTRAL)
    options: dict[str, Any] = dict.fromkeys(["tools", "reasoning", "documents", "parts", "empty"], False)
    for seed in range(200):
        talk = vary(seed, **options, system=name == "phi3").messages
        prompt = bool(seed % 2)
        theirs = other.render(talk, add_generation_prompt=prompt, special_tokens=tokens)
        assert BUILT_IN[name].render(talk, add_generation_prompt=prompt).text == theirs.text


@pytest.mark.parametrize("name", NAMES)
def test_roles_that_a_template_does_not_know(name: str) -> None:
    unknown = ["tool"] if name in ("alpaca", "gemma", "mistral", "phi3") else []
    for role in ("wizard", "System", "", "user<|im_end|>", "function", *unknown):
        with pytest.raises(
            OptionError, match=rf"message 1 has the role '.*the template '{name}' .*knows .*user"
        ):
            ChatTemplate.get_template(name)(
                [{"role": "user", "content": "a"}, {"role": role, "content": "b"}]
            )


INSTRUCTION = "Be brief.\n\n### Instruction:\nReally?\n\n### Response:\n"
YES, THINK = ({"role": "assistant", "content": text} for text in ("Yes.", "I think."))


@pytest.mark.parametrize(
    ("name", "talk", "prompt", "text"),
    [
        # Alpaca has one instruction.
        ("alpaca", [*TALK, YES], True, INSTRUCTION),
        ("alpaca", [*TALK, YES], False, INSTRUCTION + "Yes."),
        ("alpaca", [*TALK, YES, THINK], False, INSTRUCTION + "Yes.\n\n### Response:\nI think."),
        # A system text waits for the user.
        ("mistral", [TALK[0], *TALK[2:]], True, "<s>Because.</s>[INST] Be brief.\n\nReally? [/INST]"),
        (
            "gemma",
            [TALK[0], *TALK[2:]],
            False,
            "<bos><start_of_turn>model\nBecause.<end_of_turn>\n"
            "<start_of_turn>user\nBe brief.\n\nReally?<end_of_turn>\n",
        ),
        ("chatml", [{"role": "tool", "content": "7"}], False, "<|im_start|>tool\n7<|im_end|>\n"),
    ],
)
def test_turns_that_are_not_those_of_a_plain_conversation(
    name: str, talk: list[dict[str, str]], prompt: bool, text: str
) -> None:
    assert ChatTemplate.get_template(name)(talk, add_generation_prompt=prompt) == text


def test_alpaca_continues_and_needs_an_instruction() -> None:
    begun = BUILT_IN["alpaca"].render([{"role": "user", "content": "Wh"}], continue_final_message=True)
    assert begun.text == "### Instruction:\nWh"
    with pytest.raises(OptionError, match="needs a user message"):
        ChatTemplate.alpaca(TALK[:1])


def test_tools_results_of_llama_are_those_of_ipython() -> None:
    text = ChatTemplate.llama3([{"role": "user", "content": "a"}, {"role": "tool", "content": "7"}])
    assert "<|start_header_id|>ipython<|end_header_id|>\n\n7<|eot_id|>" in text


def test_a_system_text_that_no_user_follows() -> None:
    late = [TALK[1], TALK[2], TALK[0]]
    for name in ("gemma", "mistral"):
        with pytest.raises(OptionError, match=r"message 2: the template .* puts a system text into the user"):
            ChatTemplate.get_template(name)(late)
    assert ChatTemplate.mistral([*late, TALK[3]]).endswith("[INST] Be brief.\n\nReally? [/INST]")


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_system_text_leaves_no_blank_line(name: str) -> None:
    function = ChatTemplate.get_template(name)
    text, without = (function([{"role": "system", "content": ""}, *TALK[3:]]), function(TALK[3:]))
    turns = {
        "llama3": "<|start_header_id|>system<|end_header_id|>\n\n<|eot_id|>",
        "chatml": "<|im_start|>system\n<|im_end|>\n",
        "gpt-4": "<|im_start|>system<|im_sep|><|im_end|>",
        "harmony": "<|start|>system<|message|><|end|>",
    }
    assert text.replace(turns.get(name, ""), "") == without
    assert turns.get(name, "") in text
    # Other messages may be empty.
    empty = [{"role": "user", "content": ""}]
    assert function(empty) == without.replace("Really?", "")


def test_white_space_around_a_system_text_stays() -> None:
    roles = {role: RoleMarkup(f"{role}:", "", "|") for role in ("system", "user", "assistant")}
    talk = [{"role": role, "content": " a\n"} for role in roles]
    text = TurnTemplate("stripping", roles, strips=True).render(talk).text
    assert text == "system: a\n|user:a|assistant:a|"


def test_parts_of_a_content() -> None:
    parts = [{"type": "text", "text": "a"}, "b", {"type": "text", "text": "c"}]
    joined = ChatTemplate.chatml([{"role": "user", "content": "abc"}])
    assert ChatTemplate.chatml([{"role": "user", "content": parts}]) == joined
    assert ChatTemplate.chatml([{"role": "user", "content": {"type": "text", "text": "abc"}}]) == joined
    for part, message in [
        ({"type": "image", "url": "x"}, "part 0 of its content is 'image'"),
        ({"type": "text"}, "part 0 of its content has no 'text'"),
        (7, "part 0 of its content is 'int'"),
    ]:
        with pytest.raises(OptionError, match=f"message 0: {message}"):
            ChatTemplate.chatml([{"role": "user", "content": [part]}])


@pytest.mark.parametrize(
    ("messages", "error", "message"),
    [
        ("hi", ArgumentTypeError, "messages must be a list of dicts"),
        ({"role": "user", "content": "a"}, ArgumentTypeError, "not dict"),
        (None, ArgumentTypeError, "not NoneType"),
        ([], OptionError, "there are no messages"),
        (["hi"], ArgumentTypeError, "message 0 must be a dict"),
        ([{"content": "a"}], OptionError, "message 0 has no 'role'"),
        ([TALK[0], {"role": 7, "content": "a"}], ArgumentTypeError, "message 1: role must be a str, not int"),
        ([{"role": "user", "content": 7}], ArgumentTypeError, "message 0: content must be a str .* not int"),
        ([{"role": "user"}], OptionError, "message 0 .* has no 'content'"),
        (
            [{"role": "assistant", "tool_calls": [{}]}],
            OptionError,
            "message 0 has 'tool_calls', which the template 'chatml'",
        ),
    ],
)
def test_messages_that_are_none(messages: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ChatTemplate.chatml(messages)


@pytest.mark.parametrize("name", NAMES)
def test_continuing_the_final_message(name: str) -> None:
    template = BUILT_IN[name]
    begun = [*TALK[1:], {"role": "assistant", "content": "Yes, "}]
    whole = template.render(begun, add_generation_prompt=False).text
    continued = template.render(begun, continue_final_message=True)
    assert whole.startswith(continued.text)
    assert continued.text.endswith("Yes," if name == "gemma" else "Yes, ")
    assert continued.generated is not None
    start, end = continued.generated[-1]
    lead = "<|channel|>final<|message|>" if name == "harmony" else ""
    assert (continued.text[start:].strip(), end) == (f"{lead}Yes,", len(continued.text))
    assert template.render(TALK[1:], continue_final_message="content").text.endswith("Really?")
    with pytest.raises(OptionError, match="continue_final_message is 'thinking'"):
        template.render(begun, continue_final_message="thinking")
    with pytest.raises(OptionError, match="the final message is a system message"):
        template.render([*TALK[1:], TALK[0]], continue_final_message=True)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_built_in_template_has_no_place_for(name: str) -> None:
    template = BUILT_IN[name]
    given: list[dict[str, Any]] = [
        {"tools": [{}]},
        {"documents": [{}]},
        {"variables": {"enable_thinking": False}},
    ]
    for options in given:
        with pytest.raises(OptionError, match=r"does not support (tools|documents|enable_thinking); use"):
            template.render(TALK, **options)
    assert template.render(TALK, tools=[], documents=None).text == ChatTemplate.get_template(name)(TALK)


def test_names_that_nothing_has() -> None:
    with pytest.raises(OptionError, match=r"there is no chat template 'llama-3'; did you mean 'llama3'\?"):
        ChatTemplate.get_template("llama-3")
    names: list[Any] = [None, ["chatml"]]
    for name in names:
        with pytest.raises(OptionError, match=f"there is no chat template {re.escape(repr(name))}"):
            ChatTemplate.get_template(name)
    with pytest.raises(OptionError, match=r"message 0 has the role 'x', which the template 'alpaca'"):
        ChatTemplate.alpaca([{"role": "x", "content": ""}])


@pytest.mark.usefixtures("registered")
def test_registering_templates() -> None:
    dialogue = TurnTemplate("dialogue", {"user": RoleMarkup("- ", "", "\n")}, reply="+ ")
    ChatTemplate.register("dialogue", dialogue)
    ChatTemplate.register("jinja", JINJA["no markup but words"])
    assert ChatTemplate.names() == sorted([*NAMES, "dialogue", "jinja"])
    question = [{"role": "user", "content": "Why?"}]
    assert ChatTemplate.get_template("dialogue")(question) == "- Why?\n+ "
    assert ChatTemplate.get_template("dialogue")(question, False, "Be brief.") == "- Be brief.\n\nWhy?\n"
    assert ChatTemplate.get_template("jinja")(question) == "Human: Why?\nAI: "
    ChatTemplate.register("jinja", dialogue)
    assert ChatTemplate.find("jinja") is dialogue
    names: list[Any] = ["", "{{ x }}", 7]
    for name in names:
        with pytest.raises(OptionError, match=f"^{re.escape(repr(name))} cannot name a template"):
            ChatTemplate.register(name, dialogue)
    with pytest.raises(OptionError, match="the template 'chatml' is built in"):
        ChatTemplate.register("chatml", dialogue)
    with pytest.raises(ArgumentTypeError, match="not int"):
        ChatTemplate.register("seven", 7)  # type: ignore[arg-type]
    ChatTemplate.unregister("jinja")
    for name in ("jinja", "chatml"):
        with pytest.raises(OptionError, match=f"no template '{name}' is registered"):
            ChatTemplate.unregister(name)


@pytest.mark.usefixtures("registered")
def test_a_registered_template_may_have_the_name_of_a_method() -> None:
    ChatTemplate.register("names", TurnTemplate("names", {"user": RoleMarkup("- ")}))
    assert ChatTemplate.get_template("names")(TALK[3:]) == "- Really?"


@pytest.mark.usefixtures("registered")
def test_errors_name_the_registered_template() -> None:
    ChatTemplate.register("ours", "{{ raise_exception('no') }}")
    with pytest.raises(ChatTemplateError, match=r"^the chat template 'ours', line 1: no"):
        ChatTemplate.get_template("ours")(TALK)


def _roles(messages: Any) -> str:
    return "".join(message["role"][0] for message in messages or [])


def _talk(roles: str) -> list[dict[str, str]]:
    names = {"s": "system", "d": "developer", "u": "user", "a": "assistant", "t": "tool"}
    return [{"role": names[role], "content": ""} for role in roles]


@pytest.mark.parametrize(
    ("drop", "roles", "limit", "kept"),
    [
        (drop_oldest_turns, "suauau", 6, "suauau"),
        (drop_oldest_turns, "suauau", 5, "suau"),
        (drop_oldest_turns, "suauau", 2, "su"),
        (drop_oldest_turns, "suauau", 1, ""),
        (drop_oldest_turns, "uatatauatau", 6, "uatau"),
        (drop_oldest_turns, "uatatauatau", 4, "u"),
        (drop_oldest_turns, "auau", 3, "uau"),
        (drop_oldest_turns, "auau", 4, "auau"),
        (drop_oldest_turns, "uau", 2, "u"),
        (drop_oldest_turns, "uuu", 2, "uu"),
        (drop_oldest_turns, "suasu", 3, "su"),
        (drop_oldest_turns, "s", 0, ""),
        (drop_oldest_turns, "duau", 2, "du"),
        (drop_oldest_turns, "sduauau", 5, "sduau"),
        (partial(drop_oldest_turns, keep_system=False), "suauau", 4, "uau"),
        (drop_last_turns, "suatauau", 8, "suatauau"),
        (drop_last_turns, "suatauau", 6, "suata"),
        (drop_last_turns, "suatauau", 4, ""),
        (drop_last_turns, "uaua", 3, "ua"),
    ],
)
def test_dropping_turns_until_the_rest_fits(
    drop: Callable[..., Any], roles: str, limit: int, kept: str
) -> None:
    asked = []

    def fits(messages: Any) -> bool:
        asked.append(len(messages))
        return len(messages) <= limit

    assert _roles(drop(_talk(roles), fits)) == kept
    assert len(asked) <= 5


def test_surrogates_are_joined_or_replaced(tokenizer: BPETokenizer) -> None:
    messages = [{"role": "user", "content": "\ud83d\ude00 \ud800 \udc00"}]
    for template in ("chatml", "{{ messages[0].content }}"):
        text = tokenizer.apply_chat_template(messages, template, tokenize=False)
        assert "\U0001f600 \ufffd \ufffd" in text
