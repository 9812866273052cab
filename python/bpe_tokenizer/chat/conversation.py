"""A conversation together with the template that it is rendered with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bpe_tokenizer.chat.messages import Messages, checked_messages, with_system_prompt
from bpe_tokenizer.chat.segment import Origin, Rendered, Segment
from bpe_tokenizer.chat.template import Template
from bpe_tokenizer.errors import ArgumentTypeError, OptionError

__all__ = ["ChatOptions", "Conversation"]

# What transformers calls arguments that have other names here; as variables of a template they would be lost.
_OTHER_NAMES = {"chat_template": "template", "return_assistant_tokens_mask": "return_assistant_mask"}


@dataclass(frozen=True)
class ChatOptions:
    """What is said about a conversation beside its messages.

    Args:
        add_generation_prompt: End with what asks for a reply.
        continue_final_message: End inside the final message; the other is then without effect.
        system_prompt: A system message for conversations without one.
        tools: Descriptions of tools, for templates that know them.
        documents: Texts to answer from, for templates that know them.
        variables: Further variables of the template.
    """

    add_generation_prompt: bool = True
    continue_final_message: bool | str = False
    system_prompt: str | None = None
    tools: Sequence[Any] | None = None
    documents: Sequence[Any] | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("tools", self.tools), ("documents", self.documents)):
            if value is not None and (isinstance(value, str | Mapping) or not isinstance(value, Sequence)):
                raise ArgumentTypeError(f"{name} must be a list, not {type(value).__name__}")
        if not isinstance(self.continue_final_message, (bool, str)):
            kind = type(self.continue_final_message).__name__
            raise ArgumentTypeError(
                f"continue_final_message must be a bool or the name of a field, not {kind}"
            )
        for name in _OTHER_NAMES.keys() & self.variables.keys():
            raise OptionError(f"{name} is called {_OTHER_NAMES[name]} here")


class Conversation:
    """Messages, the template that they are rendered with, and what is said beside them.

    Args:
        messages: The messages; they are checked.
        template: The template.
        options: What is said beside them.
        special_tokens: Texts of special tokens by name: `"bos_token"`, ...
    """

    def __init__(
        self, messages: Any, template: Template, options: ChatOptions, special_tokens: Mapping[str, str]
    ) -> None:
        given = checked_messages(messages)
        self.template = template
        # With the system prompt, if one was put before them.
        self.messages, self._has_prompt = with_system_prompt(given, options.system_prompt)
        self._options = options
        self._special_tokens = special_tokens

    def render(self) -> Rendered:
        """Return the conversation as the options say."""
        continued = self._options.continue_final_message
        return self._rendered(self.messages, self._options.add_generation_prompt and not continued, continued)

    def render_some(self, messages: Messages, add_generation_prompt: bool) -> Rendered:
        """Return other messages, rendered the same way."""
        return self._rendered(messages, add_generation_prompt, False)

    def may_write(self, text: str) -> bool:
        """Whether the template may write a text as markup."""
        if text in self._special_tokens.values():
            return True
        # A template that puts texts together knows more than its source shows.
        may_write: Callable[[str], bool] | None = getattr(self.template, "may_write", None)
        return may_write(text) if may_write else text in self.template.source

    def _rendered(self, messages: Messages, asks: bool, continued: bool | str) -> Rendered:
        return self.template.render(
            messages,
            add_generation_prompt=asks,
            continue_final_message=continued,
            tools=self._options.tools,
            documents=self._options.documents,
            special_tokens=self._special_tokens,
            variables=self._options.variables,
        )

    def given_index(self, index: int) -> int | None:
        """Return the place of one of `messages` among those that were given; None of the system prompt."""
        if not self._has_prompt:
            return index
        return index - 1 if index else None

    def segments_as_given(self, rendered: Rendered) -> tuple[Segment, ...]:
        """Return segments whose origins count the messages that were given."""
        if not self._has_prompt:
            return rendered.segments
        return tuple(Segment(text, origin and self._as_given(origin)) for text, origin in rendered.segments)

    def _as_given(self, origin: Origin) -> Origin:
        if origin.source != "messages" or origin.index is None:
            return origin
        return origin._replace(index=origin.index - 1) if origin.index else Origin("system_prompt")
