"""Declarative chat templates: the markup around the content of each role, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from bpe_tokenizer.chat.messages import Messages, content_text
from bpe_tokenizer.chat.segment import Origin, Rendered, Segment
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten

__all__ = ["InstructionTemplate", "RoleMarkup", "TurnTemplate"]


class RoleMarkup(NamedTuple):
    """The markup around the content of a role.

    Args:
        before: The text before the content.
        end: The end marker after the content. The assistant's is the token with which the model ends a reply.
        after: The text after the end marker.
        lead: The text between `before` and the content. The model writes the assistant's itself.
    """

    before: str
    end: str = ""
    after: str = ""
    lead: str = ""


class _DeclarativeTemplate:
    """The checks that all declarative templates share."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({shorten(self.name)})"

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
        """Render a conversation; see `Template.render`."""
        given = [name for name, value in (("tools", tools), ("documents", documents)) if value]
        unknown = [*given, *variables]
        if unknown:
            raise OptionError(
                f"the template {self.name!r} does not support {', '.join(unknown):.100}; "
                "use the model's own chat template"
            )
        if continue_final_message not in (True, False, "content"):
            raise OptionError(
                f"continue_final_message is {shorten(continue_final_message)}; "
                f"the template {self.name!r} can continue only 'content'"
            )
        if continue_final_message and messages[-1]["role"] == "system":
            raise OptionError("continue_final_message: the final message is a system message")
        written = _Writer()
        self._write(written, messages, add_generation_prompt, bool(continue_final_message))
        return Rendered(tuple(written.segments), tuple(written.generated))

    def _write(self, written: _Writer, messages: Messages, prompts: bool, continues: bool) -> None:
        """Write a conversation.

        Args:
            written: Gets the segments.
            messages: The messages.
            prompts: Whether to end with the generation prompt.
            continues: Whether to leave the final message open.
        """
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class TurnTemplate(_DeclarativeTemplate):
    r"""A template that writes each message between the markup of its role.

    Args:
        name: The name in error messages.
        roles: The markup of each role. Without one for `"system"`, a system text goes into the next user
            message, before its content and a blank line.
        begin: The text before all messages.
        reply: The generation prompt: the start of an assistant's turn.
        end: The text after all messages if there is no generation prompt.
        control_tokens: The parts of the markup that must be added tokens of a vocabulary. Without them, a
            message can forge a turn.
        strips: Whether to strip white space around the contents of users and assistants.
        skips_empty_system: Whether to skip a system message without text.
        name_start: The markup before a message's `name`, which follows `before` of its role. Names are left
            out if this and `name_end` are "".
        name_end: The markup after a message's `name`.
        stop_tokens: The tokens that end a reply, where they are not the assistant's end marker. The first is
            the end marker of the final message, unless there is a generation prompt.

    >>> plain = TurnTemplate("plain", {"user": RoleMarkup("Q: ", "", "\n")}, reply="A:")
    >>> plain.render([{"role": "user", "content": "Why?"}]).text
    'Q: Why?\nA:'
    """

    name: str
    roles: Mapping[str, RoleMarkup]
    begin: str = ""
    reply: str = ""
    end: str = ""
    strips: bool = False
    skips_empty_system: bool = False
    control_tokens: tuple[str, ...] = ()
    name_start: str = ""
    name_end: str = ""
    stop_tokens: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """All text that it may write as markup."""
        texts = [text for markup in self.roles.values() for text in markup]
        parts = (self.begin, *texts, self.reply, self.end, self.name_start, self.name_end, *self.stop_tokens)
        return "\n".join(parts)

    def _write(self, written: _Writer, messages: Messages, prompts: bool, continues: bool) -> None:
        written.markup(self.begin)
        system_texts: list[tuple[int, str]] = []
        for number, message in enumerate(messages):
            role = message["role"]
            content = _content(self.name, (*self.roles, "system"), number, message)
            if role == "system" and role not in self.roles:
                system_texts.append((number, content))
            elif content or not (role == "system" and self.skips_empty_system):
                markup = self.roles[role]
                if number == len(messages) - 1:
                    markup = self._final(role, prompts, continues)
                before = system_texts if role == "user" else []
                self._write_turn(written, role, markup, number, content, before, _name(number, message))
                system_texts = [] if role == "user" else system_texts
        if system_texts:
            raise OptionError(
                f"message {system_texts[0][0]}: the template {self.name!r} puts a system text into the user "
                "message after it, but none follows; add a user message"
            )
        if not continues:
            written.markup(self.reply if prompts else self.end)

    def _final(self, role: str, prompts: bool, continues: bool) -> RoleMarkup:
        """Return the markup of the final message."""
        if continues:
            return self.roles[role]._replace(end="", after="")
        if role == "assistant" and self.stop_tokens and not prompts:
            return self.roles[role]._replace(end=self.stop_tokens[0])
        return self.roles[role]

    def _write_turn(
        self,
        written: _Writer,
        role: str,
        markup: RoleMarkup,
        number: int,
        content: str,
        system_texts: Sequence[tuple[int, str]],
        name: str,
    ) -> None:
        """Write a message, with `system_texts` before its content."""
        written.markup(markup.before)
        if name and (self.name_start or self.name_end):
            written.markup(self.name_start)
            written.content(number, name, "name")
            written.markup(self.name_end)
        start = written.length
        written.markup(markup.lead)
        for place, text in system_texts:
            written.content(place, text)
            written.markup("\n\n" if text else "")
        written.content(number, content.strip() if self.strips and role != "system" else content)
        written.markup(markup.end)
        if role == "assistant":
            written.generated.append((start, written.length))
        written.markup(markup.after)


@dataclass(frozen=True, repr=False)
class InstructionTemplate(_DeclarativeTemplate):
    """A template for a single instruction, the last user message, and its response.

    Its markup has no control tokens, so a message can forge it. System texts come first. Earlier user and
    assistant messages are dropped. The assistant's messages after the instruction are the response, unless
    there is a generation prompt.

    Args:
        name: The name in error messages.
        instruction: The text before the instruction.
        response: The text before the response.
        separator: The text between these parts.
    """

    name: str
    instruction: str
    response: str
    separator: str = "\n\n"

    @property
    def source(self) -> str:
        """All text that it may write as markup."""
        return f"{self.instruction}\n{self.response}"

    def _write(self, written: _Writer, messages: Messages, prompts: bool, continues: bool) -> None:
        roles = ("system", "user", "assistant")
        contents = [_content(self.name, roles, number, message) for number, message in enumerate(messages)]
        users = [number for number, message in enumerate(messages) if message["role"] == "user"]
        if not users:
            raise OptionError(f"the template {self.name!r} needs a user message, which is the instruction")
        for number, message in enumerate(messages):
            if message["role"] == "system" and contents[number]:
                written.content(number, contents[number])
                written.markup(self.separator)
        written.markup(self.instruction)
        written.content(users[-1], contents[users[-1]])
        if continues and users[-1] == len(messages) - 1:
            return
        written.markup(self.separator)
        if prompts and not continues:
            written.markup(self.response)
            return
        answers = [n for n in range(users[-1], len(messages)) if messages[n]["role"] == "assistant"]
        for number in answers:
            written.markup(self.response if number == answers[0] else self.separator + self.response)
            start = written.length
            written.content(number, contents[number])
            written.generated.append((start, written.length))


class _Writer:
    """Collects segments, and the spans of the assistant's characters."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.generated: list[tuple[int, int]] = []
        self.length = 0

    def markup(self, text: str) -> None:
        self._write(text, None)

    def content(self, number: int, text: str, field: str = "content") -> None:
        self._write(text, Origin("messages", number, field))

    def _write(self, text: str, origin: Origin | None) -> None:
        if not text:
            return
        self.length += len(text)
        if self.segments and self.segments[-1].origin == origin:
            text = self.segments.pop().text + text
        self.segments.append(Segment(text, origin))


def _name(number: int, message: Mapping[str, Any]) -> str:
    name = message.get("name")
    if not (name is None or isinstance(name, str)):
        raise ArgumentTypeError(f"message {number}: name must be a str, not {type(name).__name__}")
    return name or ""


def _content(name: str, roles: Sequence[str], number: int, message: Mapping[str, Any]) -> str:
    """Return a message's content as text. Rejects a message that the template cannot represent."""
    role = message["role"]
    if role not in roles:
        raise OptionError(
            f"message {number} has the role {shorten(role)}, which the template {name!r} does not know; "
            f"it knows {', '.join(sorted(set(roles)))}"
        )
    calls = message.get("tool_calls")
    if calls is not None and not (isinstance(calls, Sized) and len(calls) == 0):
        raise OptionError(
            f"message {number} has 'tool_calls', which the template {name!r} does not support; "
            "use the model's own chat template"
        )
    return content_text(number, message)
