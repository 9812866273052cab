"""The protocol of chat templates, and their registry by name: the built-in ones and the users'."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

from bpe_tokenizer.chat.builtin_templates import ALIASES, BUILT_IN
from bpe_tokenizer.chat.messages import Messages, checked_messages, with_system_prompt
from bpe_tokenizer.chat.segment import Rendered
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, did_you_mean, shorten
from bpe_tokenizer.libraries import import_library

__all__ = ["ChatTemplate", "Template", "is_jinja", "jinja_template", "template_error"]

RenderText: TypeAlias = Callable[..., str]

_JINJA: Final = re.compile(r"\{[{%#]")


@runtime_checkable
class Template(Protocol):
    """Renders a conversation to segments."""

    @property
    def source(self) -> str:
        """All text that the template can write as markup."""

    def render(
        self,
        messages: Messages,
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool | str = False,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        special_tokens: Mapping[str, str] = MappingProxyType({}),
        variables: Mapping[str, Any] = MappingProxyType({}),
    ) -> Rendered:
        """Render a conversation.

        Args:
            messages: Its messages, checked.
            add_generation_prompt: Append the start of a reply.
            continue_final_message: Write the final message without its end, so that the model continues it.
                A `str` names the field to continue.
            tools: Descriptions of tools.
            documents: Texts to answer from.
            special_tokens: Texts of special tokens by name: `"bos_token"`, `"eos_token"`, ...
            variables: Other variables of the template.
        """


def is_jinja(text: str) -> bool:
    """Whether a text is the source of a Jinja template, not a name."""
    return _JINJA.search(text) is not None


@lru_cache(maxsize=64)
def jinja_template(source: str, name: str = "") -> Template:
    """Return the template of a Jinja source."""
    # Imported here, because Jinja takes longer to import than the rest of the package.
    import_library("jinja2", extra="")
    from bpe_tokenizer.chat.jinja.template import JinjaTemplate

    return JinjaTemplate(source, name)


def template_error(name: object, known: Sequence[str]) -> OptionError:
    """Return the error for an unknown template."""
    return OptionError(
        f"there is no chat template {shorten(name)}{did_you_mean(name, known)} The names are "
        f"{', '.join(known)}. ChatTemplate.register() adds one, and a Jinja source is a template too"
    )


def _text(
    template: Template,
    messages: Messages,
    add_generation_prompt: bool = True,
    system_prompt: str | None = None,
) -> str:
    """Render a conversation to text."""
    all_messages, _ = with_system_prompt(checked_messages(messages), system_prompt)
    return template.render(all_messages, add_generation_prompt=add_generation_prompt).well_formed()


class ChatTemplate:
    r"""The chat templates by name, as functions from messages to text.

    Each takes the messages, `add_generation_prompt` (append the start of a reply), and `system_prompt` (a
    system message for messages without one). The text is for reading. For ids that no message can forge, call
    `BPETokenizer.apply_chat_template`.

    >>> ChatTemplate.chatml([{"role": "user", "content": "Why?"}])
    '<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n'
    >>> ChatTemplate.names()
    ['alpaca', 'chatml', 'gemma', 'gpt-4', 'harmony', 'llama3', 'mistral', 'phi3']
    """

    _registered: ClassVar[dict[str, Template]] = {}

    if not TYPE_CHECKING:  # a type checker reports the arguments

        def __init__(self, *arguments: object) -> None:
            """Refuse arguments: the templates are functions of the class."""
            if arguments:
                raise ArgumentTypeError(
                    "ChatTemplate takes no arguments: ChatTemplate.get_template(name)(messages) returns a "
                    "text, tokenizer.apply_chat_template(messages, name) ids"
                )

    @staticmethod
    def llama3(
        messages: Messages, add_generation_prompt: bool = True, system_prompt: str | None = None
    ) -> str:
        """Return a conversation in the format of Llama 3; a tool's result has Llama 3.1's role `ipython`."""
        return _text(BUILT_IN["llama3"], messages, add_generation_prompt, system_prompt)

    @staticmethod
    def chatml(
        messages: Messages, add_generation_prompt: bool = True, system_prompt: str | None = None
    ) -> str:
        """Return a conversation in OpenAI's ChatML."""
        return _text(BUILT_IN["chatml"], messages, add_generation_prompt, system_prompt)

    @staticmethod
    def alpaca(
        messages: Messages, add_generation_prompt: bool = True, system_prompt: str | None = None
    ) -> str:
        """Return the system texts and the last user message in the format of Stanford Alpaca.

        The format has no control tokens, so a message can forge its markup, in ids too.
        Earlier messages are dropped. Without a generation prompt, the assistant's messages after the last
        user message are the response.
        """
        return _text(BUILT_IN["alpaca"], messages, add_generation_prompt, system_prompt)

    @staticmethod
    def mistral(
        messages: Messages, add_generation_prompt: bool = True, system_prompt: str | None = None
    ) -> str:
        """Return a conversation in the format of Mistral 7B; a system text starts the user message."""
        return _text(BUILT_IN["mistral"], messages, add_generation_prompt, system_prompt)

    @staticmethod
    def gemma(
        messages: Messages, add_generation_prompt: bool = True, system_prompt: str | None = None
    ) -> str:
        """Return a conversation in the format of Gemma; a system text starts the user message."""
        return _text(BUILT_IN["gemma"], messages, add_generation_prompt, system_prompt)

    @staticmethod
    def phi3(messages: Messages, add_generation_prompt: bool = True, system_prompt: str | None = None) -> str:
        """Return a conversation in the format of Phi-3."""
        return _text(BUILT_IN["phi3"], messages, add_generation_prompt, system_prompt)

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all templates."""
        return sorted({*BUILT_IN, *cls._registered})

    @classmethod
    def get_template(cls, name: str) -> RenderText:
        """Return the function for a name, with the arguments of `llama3`.

        Raises:
            OptionError: The name is unknown.

        >>> ChatTemplate.get_template("chatml") is ChatTemplate.chatml
        True
        """
        template = cls.find(name)
        function: RenderText | None = getattr(cls, name, None) if name in BUILT_IN else None
        return function or partial(_text, template)

    @classmethod
    def find(cls, name: str) -> Template:
        """Return the template with a name.

        Raises:
            OptionError: The name is unknown.
        """
        found = ALIASES.get(name, name) if isinstance(name, str) else ""
        template = BUILT_IN.get(found) or cls._registered.get(found)
        if template is None:
            raise template_error(name, cls.names())
        return template

    @classmethod
    def register(cls, name: str, template: str | Template) -> None:
        """Add a template, for `get_template` and for `BPETokenizer.apply_chat_template`.

        Args:
            name: Its name. Replaces a registered template with the same name.
            template: The source of a Jinja template, a `TurnTemplate`, or any object with the `source` and
                `render` of `Template`.

        Raises:
            ArgumentTypeError: The template has another type.
            ChatTemplateError: The Jinja source is not valid.
            OptionError: The name belongs to a built-in template, or is not a valid name.

        >>> from bpe_tokenizer.chat import RoleMarkup, TurnTemplate
        >>> ChatTemplate.register("dialogue", TurnTemplate("dialogue", {"user": RoleMarkup("- ")}))
        >>> ChatTemplate.get_template("dialogue")([{"role": "user", "content": "Why?"}])
        '- Why?'
        >>> ChatTemplate.unregister("dialogue")
        """
        if not isinstance(name, str) or not name or is_jinja(name):
            raise OptionError(
                f"{shorten(name)} cannot name a template: a name is a str without Jinja's brackets"
            )
        if name in BUILT_IN or name in ALIASES:
            raise OptionError(f"the template {name!r} is built in; choose another name")
        cls._registered[name] = (
            jinja_template(template, name) if isinstance(template, str) else _checked(template)
        )

    @classmethod
    def unregister(cls, name: str) -> None:
        """Remove a registered template.

        Raises:
            OptionError: No template with this name is registered.
        """
        if cls._registered.pop(name, None) is None:
            known = ", ".join(sorted(cls._registered)) or "none"
            raise OptionError(f"no template {shorten(name)} is registered; the registered names are {known}")


def _checked(template: Any) -> Template:
    if not isinstance(template, Template):
        raise ArgumentTypeError(
            "a template is the source of a Jinja template or an object with `source` and `render`, "
            f"not {type(template).__name__}"
        )
    return template
