"""Renders templates for the tests of Jinja."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from bpe_tokenizer.chat.jinja.template import JinjaTemplate
from bpe_tokenizer.chat.segment import Rendered
from conversations import Conversation
from jinja_templates import CONSTRUCTS, FAMILIES

__all__ = ["TEMPLATES", "TOKENS", "USER", "pieces", "render", "rendered", "template", "tool_of"]

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


def tool_of(arguments: str, *described: str) -> Any:
    """A function `tool` of some arguments, whose docstring describes some of them."""
    names: dict[str, Any] = {"Thread": threading.Thread}
    exec(f"def tool({arguments}): pass", names)
    section = "".join(f"    {each}\n" for each in described)
    names["tool"].__doc__ = f"Do it.\n\nArgs:\n{section}" if described else "Do it."
    return names["tool"]
