"""Renders a conversation with a template and the options of `apply_chat_template`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from bpe_tokenizer.arguments import check_flag
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.messages import Messages, checked_messages, with_system_prompt
from bpe_tokenizer.chat.segment import Origin, Rendered, Segment
from bpe_tokenizer.chat.template import Template
from bpe_tokenizer.chat.template_budget import check_template_budget, template_budget
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten
from bpe_tokenizer.other_libraries.arguments import other_arguments, unknown_argument

__all__ = ["ChatOptions", "ConversationRenderer"]

# Arguments of `apply_chat_template`, which a variable of a template may be a misspelling of.
_ARGUMENTS = (
    "template",
    "add_generation_prompt",
    "system_prompt",
    "tokenize",
    "allowed_special",
    "tools",
    "documents",
    "continue_final_message",
    "plain_markup",
    "template_budget",
    "return_assistant_mask",
    "return_message_spans",
    "return_dict",
    "return_tensors",
    "padding",
    "padding_side",
    "truncation",
    "max_length",
)
# How alike the two are, as `difflib` measures it: two letters of a long name may differ.
_MISSPELT = 0.85


@dataclass(frozen=True)
class ChatOptions:
    """The options of rendering a conversation.

    Args:
        add_generation_prompt: Append the start of a reply.
        continue_final_message: End inside the final message. Then `add_generation_prompt` has no effect.
        system_prompt: A system message for conversations without one.
        tools: Descriptions of tools, for templates that support them.
        documents: Texts to answer from, for templates that support them.
        variables: Other variables of the template.
        plain_markup: Accept that the vocabulary lacks control tokens of a named template.
        template_budget: A factor of the default budget of Jinja templates; None for the surrounding one.
    """

    add_generation_prompt: bool = True
    continue_final_message: bool | str = False
    system_prompt: str | None = None
    tools: Sequence[Any] | None = None
    documents: Sequence[Any] | None = None
    variables: Mapping[str, Any] = field(default_factory=dict)
    plain_markup: bool = False
    template_budget: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("tools", self.tools), ("documents", self.documents)):
            if value is not None and (isinstance(value, str | Mapping) or not isinstance(value, Sequence)):
                raise ArgumentTypeError(f"{name} must be a list, not {type(value).__name__}")
        if not isinstance(self.continue_final_message, (bool, str)):
            raise ArgumentTypeError(
                "continue_final_message must be a bool or the name of a field, "
                f"not {type(self.continue_final_message).__name__}"
            )
        if self.template_budget is not None:
            check_template_budget(self.template_budget)
        if not isinstance(self.plain_markup, bool):
            raise ArgumentTypeError(f"plain_markup must be a bool, not {type(self.plain_markup).__name__}")
        # Arguments of transformers with other names here would have no effect as variables of a template.
        for name in other_arguments("apply_chat_template", self.variables):
            raise ArgumentTypeError(unknown_argument("apply_chat_template", name, ()))

    def in_budget(self) -> AbstractContextManager[None]:
        """Return a block in which templates have the budget."""
        return nullcontext() if self.template_budget is None else template_budget(self.template_budget)


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
        self._check_variables()

    def _check_variables(self) -> None:
        """Refuse a variable that looks like an argument, or that the default template cannot have."""
        for name in self._options.variables:
            meant = get_close_matches(name, _ARGUMENTS, n=1, cutoff=_MISSPELT)
            if meant and name not in self.template.source:
                raise ArgumentTypeError(unknown_argument("apply_chat_template", name, meant))
        if self._is_default and self._options.variables:
            given = ", ".join(self._options.variables)
            raise OptionError(
                f"the tokenizer has no chat template, which could read {given:.60}: leave it out, and choose "
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
                    "add_special_tokens adds control tokens; plain_markup=True accepts forged turns"
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
