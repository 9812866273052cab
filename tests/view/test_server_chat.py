"""Conversations that the local server renders in a model's own template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, TokenizerError
from bpe_tokenizer.view.own_chat import has_own_template, render_own
from chat_cases import chat_tokenizer

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TALK = [{"role": "user", "content": "Hi 🙂"}, {"role": "assistant", "content": "low"}]


@pytest.fixture
def model(tmp_path: Path) -> BPETokenizer:
    chat_tokenizer().save(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return BPETokenizer.load(tmp_path)


def rendered(model: BPETokenizer, **request: Any) -> dict[str, Any]:
    return render_own(model, json.dumps({"messages": TALK, **request}).encode())


def test_the_turns_tile_the_text_in_utf_16(model: BPETokenizer) -> None:
    answer = rendered(model, prompt=True)
    text = answer["text"]
    assert text == model.apply_chat_template(TALK, tokenize=False)
    wide = text.encode("utf-16-le")
    parts = [wide[2 * turn["start"] : 2 * turn["end"]].decode("utf-16-le") for turn in answer["turns"]]
    assert parts == [
        "<|im_start|>user\nHi 🙂<|im_end|>",
        "<|im_start|>assistant\nlow<|im_end|>",
        "<|im_start|>assistant\n",
    ]
    assert [turn["kind"] for turn in answer["turns"]] == ["message", "message", "prompt"]
    assert "".join(segment["text"] for segment in answer["segments"]) == text
    content = [segment for segment in answer["segments"] if segment["message"] is not None]
    assert [(each["text"], each["message"], each["trusted"]) for each in content] == [
        ("Hi 🙂", 0, False),
        ("low", 1, False),
    ]
    (start, end), *_ = answer["generated"]
    assert wide[2 * start : 2 * end].decode("utf-16-le") == "low<|im_end|>"


def test_a_conversation_without_a_prompt(model: BPETokenizer) -> None:
    assert [turn["kind"] for turn in rendered(model)["turns"]] == ["message", "message"]
    assert rendered(model, continues=True)["text"].endswith("low")


def test_which_models_have_a_template(model: BPETokenizer) -> None:
    assert has_own_template(model)
    assert not has_own_template(chat_tokenizer())


@pytest.mark.parametrize(
    "request_", [b"", b"[]", b"{", b'{"messages": 3}', b'{"tools": "x"}', b'{"variables": []}']
)
def test_a_request_that_is_no_conversation(model: BPETokenizer, request_: bytes) -> None:
    with pytest.raises(TokenizerError):
        render_own(model, request_)
