"""Conversations in a model's own chat template, rendered for the page, which cannot run Jinja."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.chat.assistant_spans import assistant_spans
from bpe_tokenizer.chat.message_regions import is_markup_or_header, message_regions
from bpe_tokenizer.chat.options import ChatOptions
from bpe_tokenizer.chat.renderer import ConversationRenderer
from bpe_tokenizer.chat.segment import Rendered
from bpe_tokenizer.chat.template_selection import named_special_tokens, select_template
from bpe_tokenizer.errors import OptionError, TokenizerError

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["count_own", "has_own_template", "render_own"]


def has_own_template(tokenizer: BPETokenizer) -> bool:
    """Return whether a model brings a chat template."""
    return bool(tokenizer.model.config.get("chat_template"))


def count_own(tokenizer: BPETokenizer, messages: list[dict[str, str]]) -> int | None:
    """Return the number of ids of a conversation in a model's own template; None if it refuses it."""
    try:
        return len(tokenizer.apply_chat_template(messages))
    except TokenizerError:
        return None


def render_own(tokenizer: BPETokenizer, request: bytes) -> dict[str, Any]:
    """Render a conversation as `BPETokenizer.apply_chat_template` does.

    Args:
        tokenizer: A tokenizer whose model brings a chat template.
        request: JSON: `messages`, and optionally `prompt`, `continues`, `tools` and `variables`.

    Returns:
        What `renderChat` of the page's `chat_templates.js` returns, with positions in UTF-16 code units, and
        `template`: its control tokens, and all text that it may write as markup.

    Raises:
        TokenizerError: The request is malformed, or the template refuses the conversation.
    """
    given = _checked(request)
    tools, continues = given.get("tools") or None, bool(given.get("continues"))
    options = ChatOptions(
        bool(given.get("prompt")), continues, tools=tools, variables=given.get("variables") or {}
    )
    compiled = tokenizer._compiled()
    template = select_template(compiled, None, bool(tools))
    conversation = ConversationRenderer(given["messages"], template, options, named_special_tokens(compiled))
    rendered = conversation.render(traced=True)
    special = {*compiled.special}
    try:
        generated = assistant_spans(rendered, conversation.messages, conversation.render_messages, special)
    except TokenizerError:
        generated = []  # the template does not tell
    prompt = len(rendered.text)
    if options.add_generation_prompt and not continues:
        without = conversation.render_messages(conversation.messages, False).text
        prompt = len(without) if rendered.text.startswith(without) else prompt
    control = [text for text in compiled.added if conversation.may_write(text)]
    place = _Utf16(rendered.text)
    return {
        "text": rendered.text,
        "segments": [
            {
                "text": segment.text,
                "trusted": segment.trusted,
                "message": None if is_markup_or_header(segment) else _message(segment.origin),
            }
            for segment in rendered.segments
        ],
        "turns": [
            {"kind": kind, "role": role, "message": message, "start": place(start), "end": place(end)}
            for kind, role, message, start, end in _turns(rendered, conversation.messages, prompt)
        ],
        "generated": [[place(start), place(end)] for start, end in generated],
        "template": {"control_tokens": control, "source": "\n".join(control)},
    }


def _checked(request: bytes) -> dict[str, Any]:
    try:
        given = json.loads(request)
    except ValueError:
        given = None
    kinds = {"messages": list, "tools": list, "variables": dict}
    if not isinstance(given, dict) or any(
        not isinstance(given.get(name, kind()) or kind(), kind) for name, kind in kinds.items()
    ):
        raise OptionError("a conversation is an object with messages, tools and variables")
    return {"messages": [], **given}


def _message(origin: Any) -> int | None:
    return origin.index if origin is not None and origin.source == "messages" else None


def _turns(
    rendered: Rendered, messages: Sequence[Mapping[str, Any]], prompt: int
) -> list[tuple[str, str, int | None, int, int]]:
    """Return the turns of a conversation: which characters the template writes for which message."""
    borders: list[tuple[int, int]] = []
    end = 0
    for region in message_regions(rendered):
        if not borders or borders[-1][0] != region.index:
            loops = [
                start
                for start, _, at in rendered.written or ()
                if region.index in at and end <= start <= region.start
            ]
            borders.append((region.index, min(loops, default=end)))
        end = region.end
    turns: list[tuple[str, str, int | None, int, int]] = []
    first = borders[0][1] if borders else prompt
    turns.append(("start", "", None, 0, first))
    for number, (index, start) in enumerate(borders):
        stop = borders[number + 1][1] if number + 1 < len(borders) else max(prompt, end)
        turns.append(("message", str(messages[index]["role"]), index, start, stop))
    turns.append(("prompt", "assistant", None, turns[-1][4], len(rendered.text)))
    return [turn for turn in turns if turn[3] < turn[4]]


class _Utf16:
    """Positions in UTF-16 code units."""

    def __init__(self, text: str) -> None:
        self._wide = [at for at, character in enumerate(text) if character > "\uffff"]

    def __call__(self, position: int) -> int:
        return position + bisect_left(self._wide, position)
