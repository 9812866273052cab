"""Renders a conversation with a template and the options of `apply_chat_template`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from bpe_tokenizer.arguments import check_flag
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.messages import Messages, checked_messages, with_system_prompt
from bpe_tokenizer.chat.options import ChatOptions
from bpe_tokenizer.chat.segment import Origin, Rendered, Segment
from bpe_tokenizer.chat.template import Template
from bpe_tokenizer.errors import OptionError, shorten

__all__ = ["ConversationRenderer"]


class ConversationRenderer:
    """A conversation with its template and options.

    Args:
        messages: The messages, which are checked here.
        template: The template.
        options: The options.
        special_tokens: Texts of special tokens by name: `"bos_token"`, ...
        is_default: Whether the template is the default, because neither the caller nor the model names one.
    """

    def __init__(
        self,
        messages: Any,
        template: Template,
        options: ChatOptions,
        special_tokens: Mapping[str, str],
        is_default: bool = False,
    ) -> None:
        given = checked_messages(messages)
        self.template = template
        # With the system prompt of the options, if it was added.
        self.messages, self._has_prompt = with_system_prompt(given, options.system_prompt)
        self._options = options
        self._special_tokens = special_tokens
        self._is_default = is_default
        if is_default and options.variables:
            names = ", ".join(options.variables)
            raise OptionError(
                f"the tokenizer has no chat template, which could read {names:.60}: leave it out, and choose "
                f"one of template={', '.join(map(repr, BUILT_IN))}; or pass a Jinja source that reads it"
            )

    def render(self, traced: bool = False) -> Rendered:
        """Render the conversation; with `traced`, it has `written` if the template can tell."""
        continued = self._options.continue_final_message
        prompts = check_flag("add_generation_prompt", self._options.add_generation_prompt) and not continued
        return self._rendered(self._traced if traced else self.template, self.messages, prompts, continued)

    def render_messages(self, messages: Messages, add_generation_prompt: bool) -> Rendered:
        """Render other messages with the same template and options, traced."""
        return self._rendered(self._traced, messages, add_generation_prompt)

    @cached_property
    def _traced(self) -> Template:
        traced: Callable[[], Template] | None = getattr(self.template, "traced", None)
        return traced() if traced else self.template

    def may_write(self, text: str) -> bool:
        """Whether the template can write a text as markup."""
        if text in self._special_tokens.values():
            return True
        # A template can write texts that it joins from parts, which its source does not contain.
        may_write: Callable[[str], bool] | None = getattr(self.template, "may_write", None)
        return may_write(text) if may_write else text in self.template.source

    def check_control_tokens(self, added: Collection[str]) -> None:
        """Check that the added tokens of a vocabulary include the control tokens that the template declares.

        Raises:
            OptionError: Some are missing. Their text would be plain text, which a message can forge.
        """
        control: Sequence[str] = getattr(self.template, "control_tokens", ())
        missing = [text for text in control if text not in added]
        if missing and not self._options.plain_markup:
            name = shorten(getattr(self.template, "name", ""), 40)
            if self._is_default:
                raise OptionError(
                    f"the tokenizer has no chat template, and lacks control tokens of the default {name}: "
                    f"choose one of template={', '.join(map(repr, BUILT_IN))} or pass a Jinja source. "
                    "add_special_tokens adds tokens; plain_markup=True accepts forged turns"
                )
            raise OptionError(
                f"the vocabulary lacks control tokens of the template {name}, so a message could forge a "
                f"turn: {', '.join(missing):.90}; add them with add_special_tokens, use another template, or "
                "accept it with plain_markup=True"
            )

    def _rendered(
        self,
        template: Template,
        messages: Messages,
        add_generation_prompt: bool,
        continued: bool | str = False,
    ) -> Rendered:
        with self._options.in_budget():
            return template.render(
                messages,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continued,
                tools=self._options.tools,
                documents=self._options.documents,
                special_tokens=self._special_tokens,
                variables=self._options.variables,
            )

    def input_index(self, index: int) -> int | None:
        """Return the index of one of `messages` in the input; None for the added system prompt."""
        if not self._has_prompt:
            return index
        return index - 1 if index else None

    def segments_by_input(self, rendered: Rendered) -> tuple[Segment, ...]:
        """Return the segments, with the messages of the input counted in their origins."""
        if not self._has_prompt:
            return rendered.segments
        return tuple(Segment(text, origin and self._by_input(origin)) for text, origin in rendered.segments)

    def _by_input(self, origin: Origin) -> Origin:
        if origin.source != "messages" or origin.index is None:
            return origin
        return origin._replace(index=origin.index - 1) if origin.index else Origin("system_prompt")
