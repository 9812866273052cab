"""What is handed to a template: copies that are tracked, and plain.

Source of the conversions: https://huggingface.co/docs/transformers/chat_templating
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import isfunction, ismethod
from typing import Any

import numpy as np

from bpe_tokenizer.chat.segment import Origin
from bpe_tokenizer.chat.tool_schema import tool_schema
from bpe_tokenizer.chat.tracked import Tag, Tracked
from bpe_tokenizer.chat.values import TrackedFloat, TrackedInt
from bpe_tokenizer.errors import ArgumentTypeError, OptionError

__all__ = ["REASONING", "ROLES", "tracked_values"]

# The names that a message's reasoning goes by. Templates read the first; gpt-oss reads the second.
REASONING = ("reasoning_content", "thinking", "reasoning")

# The roles of the published templates. These words are no one's text but the protocol's: some templates build
# tokens of them ('<|' + message.role + '|>'), which must stay tokens. Any other role is content.
ROLES = frozenset((
    "assistant", "context", "critic", "developer", "document", "documents", "environment", "function",
    "human", "ipython", "model", "observation", "system", "tool", "tool_call", "tool_response", "tool_result",
    "tool_results", "tools", "user",
))  # fmt: skip


def tracked_values(
    messages: Sequence[Any],
    tools: Sequence[Any] | None,
    documents: Sequence[Any] | None,
    variables: Mapping[str, Any],
) -> dict[str, Any]:
    """Copy all that a template is given.

    Args:
        messages: Mappings, dataclasses or pydantic models. The fields that are None are left out, and
            reasoning is put under the names that templates read.
        tools: JSON schemas or Python functions.
        documents: Mappings.
        variables: Values of other names.

    Raises:
        OptionError: There is no message, or a variable has the name of one of the others; or a function has
            no schema, because its hints or its docstring say too little.
        ArgumentTypeError: A message, tool or document is something else.
    """
    values = {name: tracked_copy(value, Origin(name)) for name, value in variables.items()}
    for name in ("messages", "tools", "documents", "add_generation_prompt"):
        if name in values:
            raise OptionError(f"a variable cannot be called {name!r}: that is an argument of its own")
    conversation = [_message(message, index) for index, message in enumerate(_items(messages, "messages"))]
    if not conversation:
        raise OptionError("messages is empty; a template needs at least one message")
    values["messages"] = conversation
    values["tools"] = _copies("tools", tools, _schema)
    values["documents"] = _copies("documents", documents, _document)
    return values


def _copies(name: str, items: Any, plain: Callable[[Any, int], Mapping[str, Any]]) -> list[Any] | None:
    if items is None:
        return None
    numbered = enumerate(_items(items, name))
    return [tracked_copy(plain(item, index), Origin(name, index)) for index, item in numbered]


def _items(values: Any, name: str) -> Iterable[Any]:
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping)):
        return values
    raise ArgumentTypeError(f"{name} must be a list, not {type(values).__name__}")


def _message(message: Any, index: int) -> dict[str, Any]:
    fields = {key: value for key, value in _fields(message, index).items() if value is not None}
    reasoning = next((fields[name] for name in REASONING if name in fields), None)
    if reasoning is not None:
        fields = {"thinking": reasoning, **fields, "reasoning_content": reasoning}
    copy = {}
    for key, value in fields.items():
        name = str.__str__(key) if isinstance(key, str) else ""
        origin = Origin("messages", index, name)
        # Of a class of its own, a text may be equal to any other.
        role = str.__str__(value) if name == "role" and isinstance(value, str) else None
        copy[tracked_copy(key, origin)] = role if role in ROLES else tracked_copy(value, origin)
    return copy


def _fields(message: Any, index: int) -> Mapping[Any, Any]:
    if isinstance(message, Mapping):
        return message
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        return {field.name: getattr(message, field.name) for field in dataclasses.fields(message)}
    if callable(getattr(message, "model_dump", None)):
        dump: Mapping[Any, Any] = message.model_dump()
        return dump
    raise ArgumentTypeError(
        f"message {index} must be a mapping with a role and a content, not {type(message).__name__}"
    )


def _schema(tool: Any, index: int) -> Mapping[str, Any]:
    if isinstance(tool, Mapping):
        return tool
    if isfunction(tool) or ismethod(tool):
        return tool_schema(tool)
    raise ArgumentTypeError(
        f"tool {index} must be a JSON schema (a mapping) or a function with type hints and a docstring, "
        f"not {type(tool).__name__}"
    )


def _document(document: Any, index: int) -> Mapping[str, Any]:
    if isinstance(document, Mapping):
        return document
    raise ArgumentTypeError(
        f"document {index} must be a mapping with a title and a text, not {type(document).__name__}"
    )


def tracked_copy(value: Any, origin: Origin) -> Any:
    """Copy what was handed in, so that each text and number in it knows where it came from.

    Only plain values are left, because templates are code of strangers and objects have methods: objects of
    other classes become their fields (dataclasses, pydantic models), the text that their class gives them
    (dates, decimal numbers), or their class's name.

    Args:
        value: A value as JSON knows it, or one of the above.
        origin: Where it came from.
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.dtype.hasobject):
        # Tables have the parts of a content as an array of objects.
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return Tracked(str.__str__(value), Tag(origin))
    if isinstance(value, int):
        return TrackedInt(int.__int__(value), Tag(origin))
    if isinstance(value, float):
        return TrackedFloat(float.__float__(value), Tag(origin))
    if isinstance(value, Mapping):
        return {tracked_copy(key, origin): tracked_copy(item, origin) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items: Iterable[Any] = (tracked_copy(item, origin) for item in value)
        return list(items) if isinstance(value, list) else tuple(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return tracked_copy(fields, origin)
    if callable(getattr(value, "model_dump", None)):
        return tracked_copy(value.model_dump(), origin)
    says_itself = any("__str__" in vars(kind) for kind in type(value).__mro__[:-1])
    return Tracked(str(value) if says_itself else f"<{type(value).__name__}>", Tag(origin))
