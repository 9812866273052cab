"""What the tests of conversations share: a tokenizer with everybody's control tokens, and templates."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import AddedToken, BPETokenizer, ChatSession, Model
from bpe_tokenizer.chat import Rendered, Template
from scripted_model import scripted

__all__ = [
    *("CALLS", "JINJA", "MARKUP", "QUESTION", "SPECIAL", "TALK", "Undeclared"),
    *("chat_tokenizer", "published", "published_names"),
]

# The control tokens of the published models.
SPECIAL = (
    *("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<|eom_id|>", "<|python_tag|>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>"),
    *("[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[AVAILABLE_TOOLS]"),
    *("[/AVAILABLE_TOOLS]", "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<|system|>", "<|user|>"),
    *("<|assistant|>", "<|end|>", "<|start|>", "<|message|>", "<|channel|>", "<|call|>", "<|return|>"),
    *("<|constrain|>", "<|start_of_role|>", "<|end_of_role|>", "<｜begin▁of▁sentence｜>"),
    *("<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<|pad|>", "<|im_sep|>"),
)
# Control tokens that models have as plain added tokens.
MARKUP = (
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<tools>"),
    *("</tools>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>"),
    *("<｜tool▁call▁end｜>", "<｜tool▁sep｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
)

_ROLES = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": "Because."},
    {"role": "user", "content": "Really?"},
    {"role": "assistant", "content": "Yes."},
]
QUESTION = TALK[1:2]

# Every method that makes ids of a conversation.
CALLS: Mapping[str, Callable[..., Any]] = {
    "apply_chat_template": lambda tokenizer, talk, **more: tokenizer.apply_chat_template(talk, **more),
    "batch": lambda tokenizer, talk, **more: tokenizer.apply_chat_template([talk], **more),
    "chat_segments": lambda tokenizer, talk, **more: tokenizer.chat_segments(talk, **more),
    "message_spans": lambda tokenizer, talk, **more: tokenizer.message_spans(talk, **more),
    "count_chat_tokens": lambda tokenizer, talk, **more: tokenizer.count_chat_tokens(talk, **more),
    "trim_messages": lambda tokenizer, talk, **more: tokenizer.trim_messages(talk, 10_000, **more),
    "training_examples": lambda tokenizer, talk, **more: list(tokenizer.training_examples([talk], **more)),
    "chat": lambda tokenizer, talk, **more: tokenizer.chat(talk, scripted([])[1], **more),
    "ChatSession": lambda tokenizer, talk, **more: list(
        ChatSession(scripted([])[1], tokenizer, **more).send("Hi")
    ),
}

# Templates in Hugging Face's dialect, each with another way of writing markup.
JINJA: Mapping[str, str] = {
    "plain turns": (
        "{{ bos_token }}{% for message in messages %}"
        "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    ),
    "roles inside of tokens": (
        "{% for m in messages %}{{ '<|' ~ m.role ~ '|>' }}{{ m.content | trim }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% else %}{{ eos_token }}{% endif %}"
    ),
    "generation": (
        "{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>{% generation %}"
        "{{ m.content }}<|end|>{% endgeneration %}{% else %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    ),
    "another end for the last": (
        "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}"
        "{% if loop.last and m.role == 'assistant' and not add_generation_prompt %}<|return|>"
        "{% else %}<|end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    ),
    "no markup but words": (
        "{% for m in messages %}{{ 'Human: ' if m.role == 'user' else 'AI: ' }}{{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}AI: {% endif %}"
    ),
}


class Undeclared:
    """A template that does not say which characters are the assistant's."""

    def __init__(self, template: Template) -> None:
        self._template = template

    @property
    def source(self) -> str:
        return self._template.source

    def render(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Rendered:
        return dataclasses.replace(self._template.render(messages, **options), generated=None)


def chat_tokenizer(
    special: Sequence[str] = SPECIAL, markup: Sequence[str] = MARKUP, vocab_size: int = 360, **options: Any
) -> BPETokenizer:
    """Train a tokenizer on words of conversations, with control tokens at the end of its vocabulary."""
    corpus = ["user assistant system tool function name arguments the weather in Paris\n\n" * 20]
    trained = BPETokenizer(**options).train(corpus, vocab_size=vocab_size, verbose=False)
    tokens = [AddedToken(text, 1000 + number) for number, text in enumerate(special)]
    tokens += [AddedToken(text, 2000 + number, special=False) for number, text in enumerate(markup)]
    core = trained.model.core.with_added_tokens(sorted(tokens, key=itemgetter(1)))
    names = {"bos": "<s>", "eos": "<|endoftext|>", "pad": "<|pad|>"}
    named = {role: text for role, text in names.items() if text in special}
    return BPETokenizer.from_model(Model(core, named))


def plain_talk(roles: str, fields: Mapping[int, Mapping[str, str]] | None = None) -> list[dict[str, str]]:
    """Messages of roles like "uaua": "u0.", "a1.", ..., with other fields of some."""
    # Letters without white space at the ends: nothing strips them, and no token joins them with markup.
    return [
        {"role": _ROLES[role], "content": f"{role}{number}."} | dict((fields or {}).get(number, {}))
        for number, role in enumerate(roles)
    ]


def _published_directory() -> Path | None:
    directory = os.environ.get("BPE_TOKENIZER_FIXTURES")
    return Path(directory, "chat_templates") if directory else None


def published_names() -> list[Any]:
    """Return the names of the published templates, as parameters of a test that needs them."""
    directory = _published_directory()
    if directory is None:
        skipped = pytest.mark.skip(reason="BPE_TOKENIZER_FIXTURES is not set")
        return [pytest.param("", marks=[pytest.mark.fixtures, skipped])]
    names = sorted(path.stem for path in directory.glob("*.jinja"))
    return [pytest.param(name, marks=pytest.mark.fixtures) for name in names]


def published(name: str) -> str:
    """Return the source of a published template."""
    directory = _published_directory()
    if directory is None:
        pytest.skip("BPE_TOKENIZER_FIXTURES is not set")
    return (directory / f"{name}.jinja").read_text(encoding="utf-8")
