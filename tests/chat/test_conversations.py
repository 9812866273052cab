from __future__ import annotations

import pickle
import sys
import types
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
from bpe_tokenizer.chat import ChatTemplate, Origin
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.encoding import MessageSpan
from bpe_tokenizer.errors import ChatTemplateError, ContextLengthError, MissingDependencyError
from chat_cases import JINJA, MARKUP, SPECIAL, Undeclared, chat_tokenizer, published, published_names
from conversations import vary
from scripted_model import scripted

TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": "Because."},
    {"role": "user", "content": "Really?"},
    {"role": "assistant", "content": "Yes."},
]
QUESTION = [{"role": "user", "content": "Why?"}]


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return chat_tokenizer()


def with_config(tokenizer: BPETokenizer, **config: Any) -> BPETokenizer:
    model = tokenizer.model
    return BPETokenizer.from_model(Model(model.core, model.named_tokens, model.post_processor, config))


# Ids


def holds_control_text(value: object) -> bool:
    text = repr(value)
    return any(control in text for control in (*SPECIAL, *MARKUP))


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("name", [*BUILT_IN, *JINJA])
@pytest.mark.parametrize("normalization", ["NFC", "NFKC", None])
def test_ids_are_those_of_the_text(name: str, normalization: Any) -> None:
    """As long as no content holds the text of a control token, segments change nothing."""
    tokenizer = chat_tokenizer(normalization=normalization, split_pattern="gpt2")
    template = JINJA.get(name, name)
    compared = 0
    for seed in range(120):
        messages = vary(
            seed, tools=False, documents=False, reasoning=False, parts=False, empty=False
        ).messages
        if holds_control_text(messages):
            continue
        compared += 1
        text = tokenizer.apply_chat_template(messages, template, tokenize=False)
        ids = tokenizer.apply_chat_template(messages, template)
        assert ids == tokenizer.encode(text, allowed_special="all")
    assert compared > 80


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("name", published_names())
def test_ids_of_published_templates_are_those_of_the_text(name: str, tokenizer: BPETokenizer) -> None:
    source = published(name)
    fixed: dict[str, Any] = {"system": False} if "gemma" in name else {}
    fixed |= {"tools": True} if "Hermes" in name else {}
    compared = 0
    for seed in range(200):
        talk = vary(seed, **fixed)
        if holds_control_text([talk.messages, talk.tools, talk.documents]):
            continue
        given: dict[str, Any] = {"tools": talk.tools, "documents": talk.documents}
        try:
            text = tokenizer.apply_chat_template(talk.messages, source, tokenize=False, **given)
        except ChatTemplateError:
            continue
        compared += 1
        ids = tokenizer.apply_chat_template(talk.messages, source, **given)
        assert ids == tokenizer.encode(text, allowed_special="all")
    assert compared > 60


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


CHAT_METHODS: dict[str, dict[str, Any]] = {
    "apply_chat_template": {},
    "message_spans": {},
    "chat_segments": {},
    "count_chat_tokens": {},
    "trim_messages": {"max_tokens": 99},
    "training_examples": {},
    "stop_token_ids": {},
    "chat": {"model_path": "none.gguf"},
}


@pytest.mark.parametrize("method", CHAT_METHODS)
@pytest.mark.parametrize("name", ["stop_", "max_token", "top_k", "temprature", "label", "enable_thinking"])
def test_an_unknown_argument_is_an_error(method: str, name: str, tokenizer: BPETokenizer) -> None:
    source = f"{{{{ {name} }}}}"  # although the template has such a variable
    messages = [] if method == "stop_token_ids" else [QUESTION]
    with pytest.raises(TypeError, match=rf"^{method}\(\) has no argument '{name}'[;.]"):
        getattr(tokenizer, method)(*messages, template=source, **CHAT_METHODS[method], **{name: 1})


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


def test_continuing_the_final_message(tokenizer: BPETokenizer) -> None:
    for template in ("chatml", JINJA["plain turns"]):
        text = tokenizer.apply_chat_template(TALK, template, continue_final_message=True, tokenize=False)
        assert text.endswith("<|im_start|>assistant\nYes.")
        ids = tokenizer.apply_chat_template(TALK, template, continue_final_message=True)
        assert tokenizer.decode(ids) == text
        count = tokenizer.count_chat_tokens(TALK, template, continue_final_message=True)
        assert count == len(ids) < tokenizer.count_chat_tokens(TALK, template)


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


CALLS = (
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
    assert tokenizer.apply_chat_template(asked, CALLS, tokenize=False) == tokenizer.apply_chat_template(
        same, CALLS, tokenize=False
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
    cut = tokenizer.apply_chat_template(
        TALK,
        "chatml",
        truncation=True,
        max_length=20,
        return_dict=True,
        return_assistant_mask=True,
        return_message_spans=True,
    )
    assert cut["input_ids"] == ids[:20]
    assert len(cut["assistant_masks"]) == 20
    assert max(span.end for span in cut["message_spans"]) <= 20
    filled = tokenizer.apply_chat_template(QUESTION, "chatml", padding="max_length", max_length=50)
    assert len(filled) == 50
    question = tokenizer.apply_chat_template(QUESTION, "alpaca")
    without_padding_token = chat_tokenizer(special=())
    with pytest.warns(UserWarning, match="no pad token") as caught:
        padded = without_padding_token.apply_chat_template(
            QUESTION, "alpaca", padding="max_length", max_length=len(question) + 2
        )
    assert (padded, len(caught)) == ([*question, 0, 0], 1)
    # One row is as long as the longest.
    assert without_padding_token.apply_chat_template(QUESTION, "alpaca", padding=True) == question
    left = tokenizer.apply_chat_template(
        [TALK, QUESTION],
        "chatml",
        padding=True,
        padding_side="left",
        return_dict=True,
        return_message_spans=True,
    )
    alone = tokenizer.apply_chat_template(QUESTION, "chatml")
    missing = len(ids) - len(alone)
    assert left["input_ids"] == [ids, [tokenizer.pad_token_id] * missing + alone]
    assert left["attention_mask"][1] == [0] * missing + [1] * len(alone)
    assert left["message_spans"][1] == [
        replace(span, start=span.start + missing, end=span.end + missing)
        for span in tokenizer.message_spans(QUESTION, "chatml")
    ]
    with pytest.raises(OptionError, match="truncation=True needs max_length"):
        tokenizer.apply_chat_template(TALK, "chatml", truncation=True)
    with pytest.raises(OptionError, match="rows of one length"):
        tokenizer.apply_chat_template([TALK, QUESTION], "chatml", return_tensors="np")
    with pytest.raises(OptionError, match="return_tensors is 'tf'"):
        tokenizer.apply_chat_template(TALK, "chatml", return_tensors="tf")  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="return_message_spans needs return_dict=True"):
        tokenizer.apply_chat_template(TALK, "chatml", return_message_spans=True)


def test_a_message_that_truncation_removes_has_no_span(tokenizer: BPETokenizer) -> None:
    spans = tokenizer.message_spans(TALK, "chatml")
    for number, span in enumerate(spans):
        for length, left in (
            (span.start, spans[:number]),
            (span.start + 1, [*spans[:number], replace(span, end=span.start + 1)]),
        ):
            row = tokenizer.apply_chat_template(
                TALK,
                "chatml",
                truncation=True,
                max_length=length,
                return_dict=True,
                return_message_spans=True,
            )
            assert row["message_spans"] == left


def test_tensors_are_made_of_the_arrays(tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = types.ModuleType("torch")
    setattr(stand_in, "from_numpy", lambda array: ("tensor", array.tolist()))  # noqa: B010
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    arrays, tensors = (
        tokenizer.apply_chat_template(TALK, "chatml", return_tensors=kind, return_assistant_mask=True)
        for kind in ("np", "pt")
    )
    assert tensors == {name: ("tensor", array.tolist()) for name, array in arrays.items()}


def test_tensors_need_pytorch(tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .bpe-tokenizer\[torch\]."):
        tokenizer.apply_chat_template(TALK, "chatml", return_tensors="pt")


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


# Budgets


def test_trimming_drops_the_oldest_turns(tokenizer: BPETokenizer) -> None:
    talk = [TALK[0]]
    for number in range(40):
        talk += [
            {"role": "user", "content": f"Question {number}?"},
            {"role": "assistant", "content": f"Answer {number}!" * (number % 5)},
        ]
    talk.append({"role": "user", "content": "The last?"})
    whole = tokenizer.count_chat_tokens(talk, "chatml")
    shortest = tokenizer.count_chat_tokens([talk[0], talk[-1]], "chatml")
    assert tokenizer.trim_messages(talk, whole, "chatml") == talk
    for limit in range(shortest, whole, 29):
        left = tokenizer.trim_messages(talk, limit, "chatml")
        assert tokenizer.count_chat_tokens(left, "chatml") <= limit
        assert left[0] is talk[0]
        assert left[1]["role"] == "user"
        dropped = len(talk) - len(left)
        assert left[1:] == talk[dropped + 1 :]
        # One turn more would be too much.
        assert tokenizer.count_chat_tokens([talk[0], *talk[dropped - 1 :]], "chatml") > limit
    with pytest.raises(
        ContextLengthError, match=f"is {shortest} ids long.* only {shortest - 1} are"
    ) as caught:
        tokenizer.trim_messages(talk, shortest - 1, "chatml")
    assert (caught.value.length, caught.value.limit) == (shortest, shortest - 1)
    assert isinstance(caught.value, ValueError)
    assert pickle.loads(pickle.dumps(caught.value)).length == shortest


def test_trimming_keeps_calls_and_results_together(tokenizer: BPETokenizer) -> None:
    roles = ["user", "assistant", "tool", "assistant", "user", "assistant", "tool", "tool", "assistant"]
    talk = [{"role": role, "content": f"{role} {number}"} for number, role in enumerate(roles)]
    whole = tokenizer.count_chat_tokens(talk, "chatml")
    left = tokenizer.trim_messages(talk, whole - 1, "chatml")
    assert left == talk[4:]
    length = tokenizer.count_chat_tokens(left, "chatml")
    with pytest.raises(ContextLengthError):
        tokenizer.trim_messages(talk, length - 1, "chatml")


@pytest.mark.parametrize("template", ["chatml", "alpaca", JINJA["plain turns"]])
def test_the_last_text_is_cut_to_the_budget(template: str, tokenizer: BPETokenizer) -> None:
    text = "naïve 日本語 🙂 low lower: " * 3
    talk = [*TALK, {"role": "user", "name": "Ann", "content": text}]
    base = [TALK[0], talk[-1]]

    def count(length: int, given: list[dict[str, Any]] = base) -> int:
        cut = [*given[:-1], {**talk[-1], "content": text[:length]}]
        return tokenizer.count_chat_tokens(cut, template)

    for limit in (count(1), count(7) + 1, count(9), count(len(text) - 1)):
        *head, last = tokenizer.trim_messages(talk, limit, template, truncate_last=True)
        assert head == [TALK[0]]
        assert last == {**talk[-1], "content": text[: len(last["content"])]}
        assert count(len(last["content"])) <= limit < count(len(last["content"]) + 1)
    everything = tokenizer.count_chat_tokens(talk, template)
    assert tokenizer.trim_messages(talk, everything, template, truncate_last=True) == talk
    lost = tokenizer.trim_messages(talk, count(5, base[1:]), template, keep_system=False, truncate_last=True)
    assert lost == [{**talk[-1], "content": text[:5]}]
    with pytest.raises(ContextLengthError, match="truncate_last=True") as caught:
        tokenizer.trim_messages(talk, count(1) - 1, template, truncate_last=True)
    assert (caught.value.length, caught.value.limit) == (count(len(text)), count(1) - 1)
    parts = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    with pytest.raises(ContextLengthError):
        tokenizer.trim_messages(parts, 20, "{{ messages[0].content[0].text }}", truncate_last=True)


def test_options_of_budgets(tokenizer: BPETokenizer) -> None:
    count = tokenizer.count_chat_tokens
    assert (
        count(QUESTION, "chatml", False)
        < count(QUESTION, "chatml")
        < count(QUESTION, "chatml", system_prompt="Be brief.")
    )
    source = "{{ tools | tojson }}{{ extra }}" + JINJA["plain turns"]
    options: dict[str, Any] = {"tools": [{"name": "f"}], "template_variables": {"extra": "more"}}
    ids = tokenizer.apply_chat_template(QUESTION, source, **options)
    assert count(QUESTION, source, **options) == len(ids)
    assert tokenizer.trim_messages(QUESTION, len(ids), source, **options) == QUESTION
    with pytest.raises(ContextLengthError):
        tokenizer.trim_messages(QUESTION, len(ids) - 1, source, **options)
    short = tokenizer.count_chat_tokens(TALK[3:], "chatml")
    assert tokenizer.trim_messages(TALK, short, "chatml", keep_system=False) == TALK[3:]
    for limit in (0, -1):
        with pytest.raises(OptionError, match=f"max_tokens is {limit}; it must be at least 1"):
            tokenizer.trim_messages(TALK, limit)
    with pytest.raises(ArgumentTypeError, match="max_tokens must be an int, not str"):
        tokenizer.trim_messages(TALK, "7")  # type: ignore[arg-type]


# Training


def test_training_examples(tokenizer: BPETokenizer) -> None:
    examples = tokenizer.training_examples([TALK, TALK[:3]], "chatml", labels=True)
    assert (examples.skipped, examples.shortened) == ([], 0)
    for _ in range(2):
        first, second = examples
        ids, mask = tokenizer.apply_chat_template(TALK, "chatml", False, return_assistant_mask=True)
        assert (first["input_ids"], first["assistant_masks"]) == (ids, mask)
        assert first["labels"] == [i if each else -100 for i, each in zip(ids, mask, strict=True)]
        learned = [token_id for token_id in second["labels"] if token_id != -100]
        assert tokenizer.decode(learned) == "Because.<|im_end|>"
        assert (examples.skipped, examples.shortened) == ([], 0)
    (plain,) = tokenizer.training_examples(iter([TALK]), "chatml")
    assert list(plain) == ["input_ids", "assistant_masks"]
    (prompted,) = tokenizer.training_examples([TALK[1:]], "chatml", system_prompt="Rhyme.")
    ids = tokenizer.apply_chat_template(TALK[1:], "chatml", False, system_prompt="Rhyme.")
    assert prompted["input_ids"] == ids


def test_training_examples_lose_whole_turns(tokenizer: BPETokenizer) -> None:
    short, whole = (tokenizer.count_chat_tokens(talk, "chatml", False) for talk in (TALK[:3], TALK))
    talks = [TALK, TALK[:2], TALK[:3], QUESTION]
    for limit in (whole - 1, short):
        examples = tokenizer.training_examples(talks, "chatml", limit)
        rows = [tokenizer.decode(row["input_ids"]) for row in examples]
        assert rows == [ChatTemplate.chatml(TALK[:3], False)] * 2
        assert (examples.skipped, examples.shortened) == ([1, 3], 1)
    examples = tokenizer.training_examples(talks, "chatml", short - 1)
    assert list(examples) == []
    assert examples.skipped == [0, 1, 2, 3]


def test_training_rows_with_tools(tokenizer: BPETokenizer) -> None:
    source = "{{ tools | tojson }}" + JINJA["plain turns"]
    rows: list[Any] = [{"messages": TALK, "tools": [{"name": "f"}]}, {"messages": TALK, "tools": None}, TALK]
    texts = [
        tokenizer.decode(row["input_ids"])
        for row in tokenizer.training_examples(rows, source, tools=[{"name": "g"}])
    ]
    assert [text.partition("<s>")[0] for text in texts] == [
        '[{"name": "f"}]',
        '[{"name": "g"}]',
        '[{"name": "g"}]',
    ]


def test_training_examples_that_cannot_be(tokenizer: BPETokenizer) -> None:
    wrongs: list[tuple[Any, str]] = [
        ([{"role": "wizard", "content": ""}], "conversation 1: message 0 has the role 'wizard'"),
        ({"text": "a"}, "conversation 1: messages must be a list of dicts"),
        ([], "conversation 1: there are no messages"),
    ]
    for wrong, message in wrongs:
        examples = iter(tokenizer.training_examples([TALK, wrong], "chatml"))
        next(examples)
        with pytest.raises(OptionError, match=message):
            next(examples)
    with pytest.raises(OptionError, match="max_length is 0; it must be at least 1"):
        tokenizer.training_examples([TALK], "chatml", 0)


# Segments, and the ids that end a reply


def test_segments_say_whose_they_are(tokenizer: BPETokenizer) -> None:
    for template in ("chatml", JINJA["plain turns"]):
        plain = tokenizer.chat_segments(TALK, template)
        text = tokenizer.apply_chat_template(TALK, template, tokenize=False)
        assert "".join(segment.text for segment, _ in plain) == text
        ids = tokenizer.apply_chat_template(TALK, template)
        assert [token_id for _, part in plain for token_id in part] == ids
        prompted = tokenizer.chat_segments(TALK[1:], template, system_prompt="Be brief.")
        assert [segment.text for segment, _ in prompted] == [segment.text for segment, _ in plain]
        origins = [segment.origin for segment, _ in prompted]
        contents = [origin for origin in origins if origin is not None and origin.field != "role"]
        assert contents[0] == Origin("system_prompt")
        assert [origin.index for origin in contents[1:]] == [0, 1, 2, 3]


def test_what_ends_a_reply(tokenizer: BPETokenizer) -> None:
    def stops(template: Any, **options: Any) -> set[str]:
        return {*tokenizer.convert_ids_to_tokens(tokenizer.stop_token_ids(template, **options))}

    eos = "<|endoftext|>"
    assert stops("chatml") == {"<|im_end|>", eos}
    assert stops("mistral") == {"</s>", eos}
    assert stops("alpaca") == {eos}
    assert stops(JINJA["another end for the last"]) == {"<|return|>", eos}
    assert stops(JINJA["no markup but words"]) == {eos}
    assert stops("{{ raise_exception('no') }}") == {eos}
    # The template writes nothing of a content.
    only_an_end = "{% if messages | length > 1 %}{% generation %}<|end|>{% endgeneration %}{% endif %}"
    assert stops(only_an_end) == {"<|end|>", eos}
    with pytest.raises(OptionError, match="there is no chat template 'nothing'"):
        tokenizer.stop_token_ids("nothing")
    bare = chat_tokenizer(special=(), markup=())
    assert bare.stop_token_ids("chatml") == []


@pytest.mark.parametrize("template", ["chatml", "{{ messages }}"])
def test_fields_that_cannot_be_continued(template: str, tokenizer: BPETokenizer) -> None:
    fields: list[Any] = [["content"], {}, None, 1]
    for field in fields:
        with pytest.raises(ArgumentTypeError, match="must be a bool or the name of a field"):
            tokenizer.apply_chat_template(TALK, template, continue_final_message=field)


def test_calls_as_an_array(tokenizer: BPETokenizer) -> None:
    """Tables have lists as arrays, which are neither true nor false."""
    talk = [{"role": "assistant", "content": "x", "tool_calls": np.array([])}]
    assert tokenizer.apply_chat_template(talk, "chatml")
    talk[0]["tool_calls"] = np.array([1, 2])
    with pytest.raises(OptionError, match="'tool_calls'"):
        tokenizer.apply_chat_template(talk, "chatml")
