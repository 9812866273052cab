"""The options of rendering a conversation, as the chat methods take them and as the renderer uses them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from bpe_tokenizer.arguments import items_of
from bpe_tokenizer.chat.template_budget import check_template_budget, template_budget
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, did_you_mean, shorten

if TYPE_CHECKING:
    from bpe_tokenizer.inference import InferenceBackend
    from bpe_tokenizer.options import Side
    from bpe_tokenizer.results import Padding

__all__ = [
    "ChatArguments",
    "ChatOptions",
    "RowChatOptions",
    "TemplateOptions",
    "chat_options",
    "check_option_names",
]


class TemplateOptions(TypedDict, total=False):
    """The keyword arguments of the chat methods that concern the template; `ChatOptions` describes them."""

    tools: Sequence[Any] | None
    documents: Sequence[Any] | None
    continue_final_message: bool | str
    plain_markup: bool
    template_budget: float | None
    template_variables: Mapping[str, Any] | None
    chat_template_kwargs: Mapping[str, Any] | None


class RowChatOptions(TemplateOptions, total=False):
    """Those of `apply_chat_template`, with the shape of its rows."""

    padding: Padding
    truncation: bool
    max_length: int | None
    padding_side: Side


class ChatArguments(TemplateOptions, total=False):
    """The arguments of `BPETokenizer.chat` after `system_prompt`, but `stream`; it describes them."""

    max_new_tokens: int
    temperature: float
    top_p: float
    backend: InferenceBackend | str | None
    n_gpu_layers: int
    n_ctx: int
    verbose: bool
    seed: int | None
    stop_ids: Collection[int]
    stop: str | Iterable[str] | None
    api_key: str | None
    timeout: float
    device: str | None


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
            if value is None:
                continue
            if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
                raise ArgumentTypeError(f"{name} must be a list, not {type(value).__name__}")
            object.__setattr__(self, name, items_of(value))
        if not isinstance(self.continue_final_message, (bool, str)):
            raise ArgumentTypeError(
                "continue_final_message must be a bool or the name of a field, "
                f"not {type(self.continue_final_message).__name__}"
            )
        if self.template_budget is not None:
            check_template_budget(self.template_budget)
        if not isinstance(self.plain_markup, bool):
            raise ArgumentTypeError(f"plain_markup must be a bool, not {type(self.plain_markup).__name__}")
        is_named = isinstance(self.variables, Mapping) and all(
            isinstance(name, str) for name in self.variables
        )
        if not is_named:
            raise ArgumentTypeError(
                "template_variables must be a dict of names to values, such as {'enable_thinking': False}, "
                f"not {shorten(self.variables)}"
            )

    def in_budget(self) -> AbstractContextManager[None]:
        """Return a block in which templates have the budget."""
        return nullcontext() if self.template_budget is None else template_budget(self.template_budget)


def chat_options(
    method: Callable[..., Any],
    options: TemplateOptions,
    add_generation_prompt: bool = True,
    system_prompt: str | None = None,
) -> ChatOptions:
    """Return the options of a chat method.

    Args:
        method: The method, for errors.
        options: Its keyword arguments that concern the template.
        add_generation_prompt: As in `ChatOptions`.
        system_prompt: As in `ChatOptions`.

    Raises:
        ArgumentTypeError: The method has no such argument, or a value has the wrong type.
        OptionError: The template's variables are given under both names.
    """
    check_option_names(method.__name__, method, options)
    variables, same = options.get("template_variables"), options.get("chat_template_kwargs")
    if variables is not None and same is not None:
        raise OptionError("template_variables and chat_template_kwargs are one argument: pass one of them")
    variables = same if variables is None else variables
    return ChatOptions(
        add_generation_prompt,
        options.get("continue_final_message", False),
        system_prompt,
        options.get("tools"),
        options.get("documents"),
        {} if variables is None else variables,
        options.get("plain_markup", False),
        options.get("template_budget"),
    )


def check_option_names(call: str, method: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that a call does not have.

    Args:
        call: The call, for errors.
        method: The chat method whose other arguments the call has.
        options: The keyword arguments.

    Raises:
        ArgumentTypeError: It names the argument, and the one that was probably meant.

    >>> from bpe_tokenizer import BPETokenizer
    >>> check_option_names("chat", BPETokenizer.chat, {"temprature": 0})
    Traceback (most recent call last):
    bpe_tokenizer.errors.ArgumentTypeError: chat() has no argument 'temprature'; did you mean 'temperature'?
    """
    unknown = [name for name in options if name not in TemplateOptions.__annotations__]
    if not unknown:
        return
    (name, *_) = unknown
    known = {*inspect.signature(method).parameters, *TemplateOptions.__annotations__}
    meant = did_you_mean(name, sorted(known - {"self", "options", name}))
    if meant == ".":
        meant = "; a variable of the template goes into template_variables={name: value}"
    raise ArgumentTypeError(f"{call}() has no argument {shorten(name)}{meant}")
