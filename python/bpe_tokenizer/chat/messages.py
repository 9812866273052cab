"""Checks the messages of a conversation, and returns their contents as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from bpe_tokenizer.arguments import items_of
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten

__all__ = [
    "Conversation",
    "HasMessages",
    "Messages",
    "checked_messages",
    "content_text",
    "fields_of",
    "is_batch",
    "with_system_prompt",
]

Messages: TypeAlias = Sequence[Mapping[str, Any]]


class HasMessages(Protocol):
    """An object that holds the messages of a conversation, such as one of the pipelines of transformers."""

    @property
    def messages(self) -> Messages:
        """The messages."""


Conversation: TypeAlias = Messages | HasMessages

# A message as errors show it.
_EXAMPLE = "{'role': 'user', 'content': 'text'}"


def is_batch(messages: Any) -> bool:
    """Whether these are several conversations: a sequence of sequences, or of objects with `messages`."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        return False
    messages = items_of(messages)
    if not messages:
        return False
    first = messages[0]
    return (isinstance(first, Sequence) and not isinstance(first, str | bytes)) or hasattr(first, "messages")


def checked_messages(messages: Any) -> Messages:
    """Return the messages of a conversation, each of them a mapping with a role.

    Args:
        messages: A sequence of mappings, or an object with such an attribute `messages`. A message has a
            `role`, a `str`, and mostly a `content`. The template defines the type of the content and the
            other fields. Dataclasses and pydantic models, also in the fields, become dicts; see `fields_of`.

    Raises:
        ArgumentTypeError: The argument is not a sequence of mappings, or a role is not a `str`.
        OptionError: The sequence is empty, or a message has no role.

    >>> checked_messages([{"role": "user", "content": "hi"}])
    [{'role': 'user', 'content': 'hi'}]
    >>> checked_messages([{"content": "hi"}])
    Traceback (most recent call last):
    bpe_tokenizer.errors.OptionError: message 0 has no 'role': a message is a dict such as ...
    """
    messages = getattr(messages, "messages", messages)
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):
        raise ArgumentTypeError(
            f"messages must be a list of dicts such as {_EXAMPLE}, not {type(messages).__name__}"
        )
    checked: Messages = [_read(number, message) for number, message in enumerate(items_of(messages))]
    if not checked:
        raise OptionError("there are no messages: a conversation needs at least one")
    for number, message in enumerate(checked):
        _check(number, message)
    return checked


def fields_of(value: Any) -> Mapping[Any, Any] | None:
    """Return the fields of a dataclass or pydantic model that are not None; None for any other value.

    >>> from types import SimpleNamespace
    >>> fields_of(SimpleNamespace(model_dump=lambda exclude_none: {"role": "user", "content": "hi"}))
    {'role': 'user', 'content': 'hi'}
    """
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: item for name, item in fields if item is not None}
    if callable(getattr(value, "model_dump", None)):
        # The option concerns the fields of models within it too, but not the dicts.
        dump: Mapping[Any, Any] = value.model_dump(exclude_none=True)
        return dump
    return None


def _read(number: int, message: Any) -> Any:
    try:
        return _plain(message)
    except RecursionError as error:
        raise OptionError(f"message {number} is nested too deeply") from error
    except MemoryError:
        raise
    except Exception as error:
        # Objects in it run their own code.
        raise ArgumentTypeError(
            f"message {number} holds something that cannot be read: {type(error).__name__}: {error!s:.150}"
        ) from error


def _plain(value: Any) -> Any:
    """Return a value with dicts in place of the dataclasses and pydantic models in it."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        pairs = [(key, item, _plain(item)) for key, item in value.items()]
        has_changed = any(new is not old for _, old, new in pairs)
        return {key: new for key, _, new in pairs} if has_changed else value
    if isinstance(value, list | tuple):
        parts = [_plain(part) for part in value]
        return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
    fields = fields_of(value)
    return value if fields is None else _plain(fields)


def _check(number: int, message: Any) -> None:
    if not isinstance(message, Mapping):
        raise ArgumentTypeError(
            f"message {number} must be a dict such as {_EXAMPLE}, not {type(message).__name__}"
        )
    if "role" not in message:
        raise OptionError(f"message {number} has no 'role': a message is a dict such as {_EXAMPLE}")
    if not isinstance(message["role"], str):
        raise ArgumentTypeError(f"message {number}: role must be a str, not {type(message['role']).__name__}")


def content_text(number: int, message: Mapping[str, Any]) -> str:
    """Return the content of a message as text. Joins the texts of several parts.

    Args:
        number: The index of the message, for errors.
        message: The message.

    Raises:
        ArgumentTypeError: The content is neither text nor a list of parts.
        OptionError: The content is missing, or a part is not text.

    >>> content_text(0, {"role": "user", "content": [{"type": "text", "text": "a"}, "b"]})
    'ab'
    """
    content = message.get("content")
    if isinstance(content, str):
        return content
    if content is None:
        raise OptionError(f"message {number} (role {shorten(message['role'])}) has no 'content'")
    if not isinstance(content, Mapping | list | tuple):
        raise ArgumentTypeError(
            f"message {number}: content must be a str or a list of parts, not {type(content).__name__}"
        )
    parts = [content] if isinstance(content, Mapping) else content
    return "".join(_part_text(number, place, part) for place, part in enumerate(parts))


def _part_text(number: int, place: int, part: Any) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    if kind != "text":
        raise OptionError(
            f"message {number}: part {place} of its content is {shorten(kind)}; "
            "this template writes only 'text'"
        )
    text = part.get("text")
    if not isinstance(text, str):
        raise OptionError(f"message {number}: part {place} of its content has no 'text' that is a str")
    return text


def with_system_prompt(messages: Messages, system_prompt: str | None) -> tuple[Messages, bool]:
    """Put a system prompt in front of the messages, unless they include a system message.

    Args:
        messages: The messages.
        system_prompt: The text; None or "" for no system prompt.

    Returns:
        The messages, and whether the system prompt was added.

    Raises:
        ArgumentTypeError: The system prompt is not a `str`.

    >>> with_system_prompt([{"role": "user", "content": "hi"}], "Be brief.")[0][0]
    {'role': 'system', 'content': 'Be brief.'}
    >>> with_system_prompt([{"role": "system", "content": "Rhyme."}], "Be brief.")
    ([{'role': 'system', 'content': 'Rhyme.'}], False)
    """
    if not (system_prompt is None or isinstance(system_prompt, str)):
        raise ArgumentTypeError(f"system_prompt must be a str, not {type(system_prompt).__name__}")
    if not system_prompt or any(message["role"] == "system" for message in messages):
        return messages, False
    return [{"role": "system", "content": system_prompt}, *messages], True
