from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from bpe_tokenizer import (
    ArgumentTypeError,
    BPETokenizer,
    ChatSession,
    Model,
    NotTrainedError,
    OptionError,
    SpecialTokenError,
)
from bpe_tokenizer.chat import ChatTemplate
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.encoding import MessageSpan
from bpe_tokenizer.errors import ChatTemplateError, ContextLengthError
from chat_cases import (
    JINJA,
    MARKUP,
    QUESTION,
    SPECIAL,
    TALK,
    Undeclared,
    chat_tokenizer,
    published,
    published_names,
)
from conversations import vary
from scripted_model import scripted


def with_config(tokenizer: BPETokenizer, **config: Any) -> BPETokenizer:
    model = tokenizer.model
    return BPETokenizer.from_model(Model(model.core, model.named_tokens, model.post_processor, config))


# Ids


def holds_control_text(value: object) -> bool:
    text = repr(value)
    return any(control in text for control in (*SPECIAL, *MARKUP))


def compare_with_text(tokenizer: BPETokenizer, template: str, seeds: range, **fixed: Any) -> int:
    """Compare the ids of conversations with those of their texts; return how many could be compared."""
    compared = 0
    for seed in seeds:
        talk = vary(seed, **fixed)
        given: dict[str, Any] = {"tools": talk.tools, "documents": talk.documents}
        if holds_control_text([talk.messages, *given.values()]):
            continue
        try:
            text = tokenizer.apply_chat_template(talk.messages, template, tokenize=False, **given)
        except ChatTemplateError:
            continue
        compared += 1
        ids = tokenizer.apply_chat_template(talk.messages, template, **given)
        assert ids == tokenizer.encode(text, allowed_special="all")
    return compared


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("name", [*BUILT_IN, *JINJA])
@pytest.mark.parametrize("normalization", ["NFC", "NFKC", None])
def test_ids_are_those_of_the_text(name: str, normalization: Any) -> None:
    """As long as no content holds the text of a control token, segments change nothing."""
    tokenizer = chat_tokenizer(normalization=normalization, split_pattern="gpt2")
    fixed = dict.fromkeys(["tools", "documents", "reasoning", "parts", "empty"], False)
    assert compare_with_text(tokenizer, JINJA.get(name, name), range(120), **fixed) > 80


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("name", published_names())
def test_ids_of_published_templates_are_those_of_the_text(name: str, tokenizer: BPETokenizer) -> None:
    fixed: dict[str, Any] = {"system": False} if "gemma" in name else {}
    fixed |= {"tools": True} if "Hermes" in name else {}
    assert compare_with_text(tokenizer, published(name), range(200), **fixed) > 60


def test_which_special_tokens_are_recognised(tokenizer: BPETokenizer) -> None:
    start, end = (tokenizer.special_tokens[text] for text in ("<|im_start|>", "<|im_end|>"))
    for allowed, found in [("all", {start, end}), ("none", set()), ({"<|im_end|>"}, {end}), ((), set())]:
        ids = tokenizer.apply_chat_template(QUESTION, "chatml", allowed_special=allowed)
        assert {token_id for token_id in ids if token_id in (start, end)} == found
        assert tokenizer.decode(ids) == ChatTemplate.chatml(QUESTION)
        assert tokenizer.count_chat_tokens(QUESTION, "chatml", allowed_special=allowed) == len(ids)
    with pytest.raises(SpecialTokenError, match=r"names '<\|nothing\|>'"):
        tokenizer.apply_chat_template(QUESTION, "chatml", allowed_special={"<|nothing|>"})


# Templates


def test_the_template_of_the_model(tokenizer: BPETokenizer) -> None:
    bare = tokenizer.apply_chat_template(QUESTION, tokenize=False)
    assert bare == ChatTemplate.llama3(QUESTION)
    named = {"default": "{{ 'D' }}", "tool_use": "{{ 'T' }}", "rag": "{{ 'R' }}"}
    listed = [{"name": name, "template": source} for name, source in named.items()]
    for form in (named, listed):
        model = with_config(tokenizer, chat_template=form)
        assert model.apply_chat_template(QUESTION, tokenize=False) == "D"
        assert model.apply_chat_template(QUESTION, tokenize=False, tools=[{"name": "f"}]) == "T"
        assert model.apply_chat_template(QUESTION, "rag", tokenize=False) == "R"
        assert model.apply_chat_template(QUESTION, "chatml", tokenize=False) == ChatTemplate.chatml(QUESTION)
        with pytest.raises(OptionError, match="no chat template 'ragg'; did you mean 'rag'"):
            model.apply_chat_template(QUESTION, "ragg")
    single = with_config(tokenizer, chat_template="{{ messages[0].content }}!")
    assert single.apply_chat_template(QUESTION, tokenize=False, tools=[{}]) == "Why?!"
    broken = "{{ raise_exception('no') }}"
    forms: list[tuple[Any, Any, str]] = [
        (broken, None, "chat_template"),
        ({"default": broken, "rag": "R"}, None, "default"),
        ({"default": "D", "rag": broken}, "rag", "rag"),
    ]
    for form, argument, name in forms:
        with pytest.raises(ChatTemplateError, match=f"^the chat template '{name}', line 1: no"):
            with_config(tokenizer, chat_template=form).apply_chat_template(QUESTION, argument)
    with pytest.raises(OptionError, match=r"several chat templates and no default: .* rag"):
        with_config(tokenizer, chat_template={"rag": "{{ 1 }}"}).apply_chat_template(QUESTION)
    for wrong in (7, [7], [{"name": "default"}], {"default": 7}):
        with pytest.raises(OptionError, match="chat_template is neither a str nor a list"):
            with_config(tokenizer, chat_template=wrong).apply_chat_template(QUESTION)


def test_templates_that_are_handed_in(tokenizer: BPETokenizer) -> None:
    text = ChatTemplate.chatml(QUESTION)
    assert tokenizer.apply_chat_template(QUESTION, BUILT_IN["chatml"], tokenize=False) == text
    assert tokenizer.apply_chat_template(QUESTION, Undeclared(BUILT_IN["chatml"]), tokenize=False) == text
    ChatTemplate.register("ours", BUILT_IN["chatml"])
    try:
        assert tokenizer.apply_chat_template(QUESTION, "ours", tokenize=False) == text
    finally:
        ChatTemplate.unregister("ours")
    with pytest.raises(ArgumentTypeError, match=r"template must be a name, the source .* not int"):
        tokenizer.apply_chat_template(QUESTION, 7)  # type: ignore[call-overload]
    with pytest.raises(ChatTemplateError):
        tokenizer.apply_chat_template(QUESTION, "{% for %}")
    with pytest.raises(ChatTemplateError, match="no, thanks"):
        tokenizer.apply_chat_template(QUESTION, "{{ raise_exception('no, thanks') }}")


def test_the_special_tokens_that_templates_know(tokenizer: BPETokenizer) -> None:
    source = (
        "{{ bos_token }} {{ eos_token }} {{ pad_token }} {{ unk_token }} {{ sep_token }} {{ image_token }}"
    )
    assert tokenizer.apply_chat_template(QUESTION, source, tokenize=False) == "<s> <|endoftext|> <|pad|>   "
    more = with_config(
        tokenizer,
        sep_token={"content": "[INST]", "lstrip": False},
        cls_token=None,
        bos_token="<bos>",
        extra_special_tokens={"image_token": "<eos>"},
    )
    text = more.apply_chat_template(QUESTION, source, tokenize=False)
    assert text == "<s> <|endoftext|> <|pad|>  [INST] <eos>"
    ids = more.apply_chat_template(QUESTION, source)
    assert more.special_tokens["[INST]"] in ids


def test_variables_tools_and_documents_reach_the_template(tokenizer: BPETokenizer) -> None:
    source = "{{ tools[0].name }} {{ documents[0].text }} {{ enable_thinking }} {{ messages | length }}"
    text = tokenizer.apply_chat_template(
        QUESTION,
        source,
        tools=[{"name": "f"}],
        documents=[{"text": "d"}],
        template_variables={"enable_thinking": False},
        tokenize=False,
    )
    assert text == "f d False 1"
    for name in ("tools", "documents"):
        with pytest.raises(ArgumentTypeError, match=f"{name} must be a list, not str"):
            tokenizer.apply_chat_template(QUESTION, source, True, None, True, "all", **{name: "f"})  # type: ignore[call-overload]
    neither: Any = np.array([1, 0])
    with pytest.raises(ArgumentTypeError, match="add_generation_prompt"):
        tokenizer.apply_chat_template(QUESTION, source, neither)
    for name in ("tokenize", "return_assistant_mask", "return_message_spans", "return_dict"):
        with pytest.raises(ArgumentTypeError, match=f"^{name} must be True or False, not ndarray"):
            tokenizer.apply_chat_template(QUESTION, source, **{name: neither})


@pytest.mark.parametrize("name", ["template_variables", "chat_template_kwargs"])
def test_variables_of_a_template(name: str, tokenizer: BPETokenizer) -> None:
    source = "{% for m in messages %}{{ m.content }}{% endfor %}{{ stop }}"
    options: Any = {"template": source, name: {"stop": "end"}}
    ids = tokenizer.encode("Why?end")
    assert tokenizer.apply_chat_template(QUESTION, **options) == ids
    assert tokenizer.count_chat_tokens(QUESTION, **options) == len(ids)
    assert tokenizer.trim_messages(QUESTION, len(ids), **options) == QUESTION
    with pytest.raises(ContextLengthError):
        tokenizer.trim_messages(QUESTION, len(ids) - 1, **options)
    assert [segment.text for segment, _ in tokenizer.chat_segments(QUESTION, **options)] == ["Why?", "end"]
    assert tokenizer.message_spans(QUESTION, **options)[0].end == len(tokenizer.encode("Why?"))
    assert tokenizer.stop_token_ids(**options) == tokenizer.stop_token_ids(source)
    model, loaded = scripted([], [])
    tokenizer.chat(QUESTION, loaded, **options)
    list(ChatSession(loaded, tokenizer, **options).send("Why?"))
    assert model.prompts == [ids, ids]
    talk = [*QUESTION, {"role": "assistant", "content": "So."}]
    given: Any = {name: {"stop": "end"}}
    marked = "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}{{ stop }}"
    row = {"messages": talk, "chat_template_kwargs": {"stop": "row"}}
    texts = [
        tokenizer.decode(example["input_ids"])
        for example in tokenizer.training_examples([talk, row], marked, **given)
    ]
    assert texts == ["Why?So.end", "Why?So.row"]


def test_variables_that_are_none(tokenizer: BPETokenizer) -> None:
    wrong: Any
    for wrong in ("enable_thinking", ["a"], {1: 2}):
        with pytest.raises(ArgumentTypeError, match="template_variables must be a dict of names"):
            tokenizer.count_chat_tokens(QUESTION, "{{ 1 }}", template_variables=wrong)
    with pytest.raises(OptionError, match="are one argument"):
        tokenizer.count_chat_tokens(QUESTION, "{{ 1 }}", template_variables={}, chat_template_kwargs={})
    with pytest.raises(TypeError, match=r"^ChatSession\(\) has no argument 'enable_thinking'; a variable"):
        ChatSession(scripted([])[1], tokenizer, enable_thinking=True)
    with pytest.raises(TypeError, match=r"^ChatSession\(\) has no argument 'temprature'; did you mean 'temp"):
        ChatSession(scripted([])[1], tokenizer, temprature=1)
    with pytest.raises(TypeError, match=r"^ChatSession\(\) has no argument 'stream'"):
        ChatSession(scripted([])[1], tokenizer, stream=True)


def test_the_system_prompt(tokenizer: BPETokenizer) -> None:
    with_prompt = tokenizer.apply_chat_template(QUESTION, "chatml", system_prompt="Be brief.")
    assert with_prompt == tokenizer.apply_chat_template([TALK[0], *QUESTION], "chatml")
    assert tokenizer.apply_chat_template(
        TALK, "chatml", system_prompt="Rhyme."
    ) == tokenizer.apply_chat_template(TALK, "chatml")
    spans = tokenizer.message_spans(QUESTION, "chatml", system_prompt="Be brief.")
    assert [(span.index, span.role) for span in spans] == [(None, "system"), (0, "user")]
    with pytest.raises(ArgumentTypeError, match="system_prompt must be a str, not int"):
        tokenizer.apply_chat_template(QUESTION, "chatml", system_prompt=7)  # type: ignore[call-overload]


def test_a_final_message_that_goes_on_is_counted_without_its_end(tokenizer: BPETokenizer) -> None:
    ids = tokenizer.apply_chat_template(TALK, "chatml", continue_final_message=True)
    assert tokenizer.count_chat_tokens(TALK, "chatml", continue_final_message=True) == len(ids)
    assert tokenizer.decode(ids).endswith("<|im_start|>assistant\nYes.")


# Forms of the result


class Talk(NamedTuple):
    messages: Any


def test_forms_of_one_conversation(tokenizer: BPETokenizer) -> None:
    ids = tokenizer.apply_chat_template(TALK, "chatml", False)
    pair = tokenizer.apply_chat_template(TALK, "chatml", False, return_assistant_mask=True)
    assert isinstance(pair, tuple)
    assert pair[0] == ids
    row = tokenizer.apply_chat_template(TALK, "chatml", False, return_dict=True)
    assert row == {"input_ids": ids, "attention_mask": [1] * len(ids)}
    whole = tokenizer.apply_chat_template(
        TALK, "chatml", False, return_dict=True, return_assistant_mask=True, return_message_spans=True
    )
    assert whole["assistant_masks"] == pair[1]
    assert whole["message_spans"] == tokenizer.message_spans(TALK, "chatml", False)
    arrays = tokenizer.apply_chat_template(TALK, "chatml", False, return_tensors="np")
    shapes: dict[str, object] = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    assert shapes == {
        "input_ids": ((1, len(ids)), np.int64),
        "attention_mask": ((1, len(ids)), np.int64),
    }
    assert arrays["input_ids"][0].tolist() == ids
    # An object that has messages, as some libraries' conversations are.
    chat = type("Chat", (), {"messages": TALK})()
    assert tokenizer.apply_chat_template(chat, "chatml", False) == ids
    assert tokenizer.apply_chat_template([chat, chat], "chatml", False) == [ids, ids]
    with pytest.raises(OptionError, match="there are no messages"):
        tokenizer.apply_chat_template([], "chatml")


class Dumped:
    """A model as pydantic's: `model_dump(exclude_none=True)` leaves None out of models, and not of dicts."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        items = {name: self._dumped(item, exclude_none) for name, item in self.fields.items()}
        return {name: item for name, item in items.items() if item is not None or not exclude_none}

    def _dumped(self, item: Any, exclude_none: bool) -> Any:
        if isinstance(item, list):
            return [self._dumped(part, exclude_none) for part in item]
        return item.model_dump(exclude_none=exclude_none) if isinstance(item, Dumped) else item


@dataclass
class Message:
    role: str
    content: Any = None
    tool_calls: Any = None
    refusal: Any = None


CALLING = (
    "{% for m in messages %}{{ m.role }}"
    "{% if m.tool_calls is defined %}{{ m.tool_calls | tojson }}{% endif %}{% endfor %}"
)


@pytest.mark.parametrize("kind", [Message, Dumped])
def test_messages_may_be_objects(kind: Any, tokenizer: BPETokenizer) -> None:
    objects: list[Any] = [kind(**message) for message in TALK]
    objects[1] = kind(role="user", content=[{"type": "text", "text": "W"}, Dumped(type="text", text="hy?")])
    for name in ("chatml", "llama3", "phi3", "gemma", "alpaca"):
        options: dict[str, Any] = {"template": name, "plain_markup": True}
        for method in (tokenizer.apply_chat_template, tokenizer.count_chat_tokens):
            assert method(objects, **options) == method(TALK, **options)
    assert ChatTemplate.chatml(objects) == ChatTemplate.chatml(TALK)
    assert tokenizer.trim_messages(objects, 40, "chatml") == tokenizer.trim_messages(TALK, 40, "chatml")
    # The None of a dict stays.
    arguments = {"unit": None}
    call = {"function": {"name": "f", "arguments": arguments}}
    calls = [Dumped(id=None, function=Dumped(name="f", arguments=arguments, id=None))]
    asked: list[Any] = [*objects, kind(role="assistant", tool_calls=calls, refusal=None)]
    same: list[Any] = [*TALK, {"role": "assistant", "tool_calls": [call]}]
    assert tokenizer.apply_chat_template(asked, CALLING, tokenize=False) == tokenizer.apply_chat_template(
        same, CALLING, tokenize=False
    )


def test_messages_that_cannot_be_read(tokenizer: BPETokenizer) -> None:
    nested: list[Any] = []
    nested.append(nested)
    with pytest.raises(OptionError, match="message 1 is nested too deeply"):
        tokenizer.count_chat_tokens([TALK[0], {"role": "user", "content": nested}], "chatml")
    broken: Any = type("Broken", (), {"model_dump": lambda self: {}})()
    with pytest.raises(ArgumentTypeError, match="message 0 holds something that cannot be read: TypeError"):
        tokenizer.count_chat_tokens([broken], "chatml")


def test_forms_of_several_conversations(tokenizer: BPETokenizer) -> None:
    talks = [TALK, TALK[:3], QUESTION]
    texts = tokenizer.apply_chat_template(talks, "chatml", tokenize=False)
    assert texts == [ChatTemplate.chatml(talk) for talk in talks]
    rows = tokenizer.apply_chat_template(talks, "chatml")
    assert rows == [tokenizer.apply_chat_template(talk, "chatml") for talk in talks]
    pairs = tokenizer.apply_chat_template(talks, "chatml", return_assistant_mask=True)
    assert [ids for ids, _ in pairs] == rows
    assert [sum(mask) > 0 for _, mask in pairs] == [True, True, False]
    table = tokenizer.apply_chat_template(
        talks, "chatml", return_dict=True, return_assistant_mask=True, padding=True
    )
    longest, pad = max(map(len, rows)), tokenizer.pad_token_id
    for number, row in enumerate(rows):
        missing = longest - len(row)
        assert table["input_ids"][number] == row + [pad] * missing
        assert table["attention_mask"][number] == [1] * len(row) + [0] * missing
        assert table["assistant_masks"][number] == pairs[number][1] + [0] * missing
    arrays = tokenizer.apply_chat_template(
        talks, "chatml", return_assistant_mask=True, padding=True, return_tensors="np"
    )
    for name, column in table.items():
        assert arrays[name].tolist() == column
    assert tokenizer.apply_chat_template([Talk(TALK)], "chatml") == rows[:1]


def test_padding_and_truncation(tokenizer: BPETokenizer) -> None:
    ids = tokenizer.apply_chat_template(TALK, "chatml")
    columns: dict[str, Any] = {"return_dict": True, "return_message_spans": True}
    cut = tokenizer.apply_chat_template(
        TALK, "chatml", truncation=True, max_length=20, return_assistant_mask=True, **columns
    )
    assert (cut["input_ids"], len(cut["assistant_masks"])) == (ids[:20], 20)
    filled = tokenizer.apply_chat_template(QUESTION, "chatml", padding="max_length", max_length=50)
    assert len(filled) == 50
    left = tokenizer.apply_chat_template(
        [TALK, QUESTION], "chatml", padding=True, padding_side="left", **columns
    )
    alone = tokenizer.apply_chat_template(QUESTION, "chatml")
    missing = len(ids) - len(alone)
    assert left["input_ids"] == [ids, [tokenizer.pad_token_id] * missing + alone]
    assert left["attention_mask"][1] == [0] * missing + [1] * len(alone)
    assert left["message_spans"][1] == [
        replace(span, start=span.start + missing, end=span.end + missing)
        for span in tokenizer.message_spans(QUESTION, "chatml")
    ]
    wrong: Any
    for wrong, message in (
        ({"return_tensors": "tf"}, "return_tensors is 'tf'"),
        ({"return_message_spans": True}, "return_message_spans needs return_dict=True"),
    ):
        with pytest.raises(OptionError, match=message):
            tokenizer.apply_chat_template(TALK, "chatml", **wrong)


def test_a_message_that_truncation_removes_has_no_span(tokenizer: BPETokenizer) -> None:
    spans = tokenizer.message_spans(TALK, "chatml")
    options: dict[str, Any] = {"truncation": True, "return_dict": True, "return_message_spans": True}
    for number, span in enumerate(spans):
        begun = replace(span, end=span.start + 1)
        for length, left in ((span.start, []), (span.start + 1, [begun])):
            row = tokenizer.apply_chat_template(TALK, "chatml", max_length=length, **options)
            assert row["message_spans"] == [*spans[:number], *left]


def test_an_untrained_tokenizer() -> None:
    for call in ("apply_chat_template", "message_spans", "count_chat_tokens", "training_examples"):
        with pytest.raises(NotTrainedError):
            getattr(BPETokenizer(), call)(TALK, "chatml")


def test_spans_hold_contents(tokenizer: BPETokenizer) -> None:
    ids = tokenizer.apply_chat_template(TALK, "chatml")
    spans = tokenizer.message_spans(TALK, "chatml")
    assert [tokenizer.decode(ids[span.start : span.end]) for span in spans] == [m["content"] for m in TALK]
    assert [span.role for span in spans] == [message["role"] for message in TALK]
    empty = [{"role": "user", "content": ""}, *QUESTION]
    assert [span.index for span in tokenizer.message_spans(empty, "chatml")] == [1]
    assert tokenizer.message_spans(QUESTION, JINJA["plain turns"]) == [MessageSpan(0, "user", 4, 8)]
