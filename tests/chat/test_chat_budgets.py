"""The token budgets of conversations, rows to train on, segments, and what ends a reply."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import ArgumentTypeError, BPETokenizer, OptionError
from bpe_tokenizer.chat import ChatTemplate, Origin
from bpe_tokenizer.errors import ContextLengthError
from chat_cases import JINJA, QUESTION, TALK, chat_tokenizer

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
    prompted = count(QUESTION, "chatml", system_prompt="Be brief.")
    assert count(QUESTION, "chatml", False) < count(QUESTION, "chatml") < prompted
    short = count(TALK[3:], "chatml")
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
