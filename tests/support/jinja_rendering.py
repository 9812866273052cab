"""Renders templates for the tests of Jinja."""

from __future__ import annotations

from functools import cache
from typing import Any

from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.chat.segment import Rendered
from conversations import Conversation
from jinja_templates import CONSTRUCTS, FAMILIES

__all__ = ["TEMPLATES", "TOKENS", "USER", "pieces", "render", "rendered", "template"]

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TEMPLATES = FAMILIES | CONSTRUCTS
USER = [{"role": "user", "content": "Hi<|x|>"}]


@cache
def template(name: str) -> JinjaTemplate:
    return JinjaTemplate(TEMPLATES[name], name)


def render(chat: JinjaTemplate | str, conversation: Conversation, **options: Any) -> Rendered:
    chat = JinjaTemplate(chat) if isinstance(chat, str) else chat
    return chat.render(
        conversation.messages,
        tools=conversation.tools,
        documents=conversation.documents,
        special_tokens=TOKENS,
        **options,
    )


def rendered(source: str, messages: Any = USER, **options: Any) -> Rendered:
    """What a short template makes of messages."""
    return JinjaTemplate(source).render(messages, **options)


def pieces(source: str, messages: Any = USER, **options: Any) -> list[tuple[str, str | None]]:
    """Its segments: text, and the field of a message, the name of a variable, or None of markup."""
    return [
        (text, origin and (origin.field or origin.source))
        for text, origin in rendered(source, messages, **options).segments
    ]
