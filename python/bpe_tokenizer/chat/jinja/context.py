"""The context of a template, in Jinja's sense: tainted copies of everything that the caller passes.

Source of the conversions: https://huggingface.co/docs/transformers/chat_templating
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import isfunction, ismethod
from typing import Any

import numpy as np

from bpe_tokenizer.chat.jinja.tainted_str import Provenance, TaintedStr
from bpe_tokenizer.chat.jinja.tool_schema import tool_schema
from bpe_tokenizer.chat.jinja.values import TaintedFloat, TaintedInt
from bpe_tokenizer.chat.messages import fields_of
from bpe_tokenizer.chat.segment import Origin
from bpe_tokenizer.errors import ArgumentTypeError, OptionError

__all__ = ["REASONING", "ROLES", "build_context"]

# The field names of a message's reasoning. Most templates read the first, gpt-oss reads the second.
REASONING = ("reasoning_content", "thinking", "reasoning")

# The roles of the published templates. They are words of the protocol, so they are not tainted: templates
# build tokens from them ('<|' + message.role + '|>'), which must stay tokens. Any other role is content.
ROLES = frozenset((
    "assistant", "context", "critic", "developer", "document", "documents", "environment", "function",
    "human", "ipython", "model", "observation", "system", "tool", "tool_call", "tool_response", "tool_result",
    "tool_results", "tools", "user",
))  # fmt: skip


def build_context(
    messages: Sequence[Any],
    tools: Sequence[Any] | None,
    documents: Sequence[Any] | None,
    variables: Mapping[str, Any],
) -> dict[str, Any]:
    """Return tainted copies of all arguments of a template, by name.

    Args:
        messages: Mappings, dataclasses or pydantic models. Fields that are None are dropped, and the
            reasoning is stored under every name that templates read.
        tools: JSON schemas or Python functions.
        documents: Mappings.
        variables: Values of other names.

    Raises:
        OptionError: The list of messages is empty, a variable has the name of another argument, or a
            function lacks the type hints or the docstring that its schema needs.
        ArgumentTypeError: A message, tool or document has another type.
    """
    values = {name: taint_input(value, Origin(name)) for name, value in variables.items()}
    for name in ("messages", "tools", "documents", "add_generation_prompt"):
        if name in values:
            raise OptionError(f"a template variable cannot have the name {name!r}: it is an argument already")
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
    return [taint_input(plain(item, index), Origin(name, index)) for index, item in numbered]


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
        # A subclass of str can compare equal to any text, so compare the plain text.
        role = str.__str__(value) if name == "role" and isinstance(value, str) else None
        copy[taint_input(key, origin)] = role if role in ROLES else taint_input(value, origin)
    return copy


def _fields(message: Any, index: int) -> Mapping[Any, Any]:
    if isinstance(message, Mapping):
        return message
    fields = fields_of(message)
    if fields is not None:
        return fields
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


def taint_input(value: Any, origin: Origin) -> Any:
    """Return a tainted copy of a value, with the origin on every text and number in it.

    The copy holds plain values only: a template is untrusted code, and the methods of an object are not for
    it. Dataclasses and pydantic models become their fields. Other objects become their `str()` if their class
    defines one (dates, decimal numbers), else the name of their class.
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.dtype.hasobject):
        # Data frames hold the parts of a content as an array of objects.
        value = value.tolist()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return TaintedStr(str.__str__(value), Provenance(origin))
    if isinstance(value, int):
        return TaintedInt(int.__int__(value), Provenance(origin))
    if isinstance(value, float):
        return TaintedFloat(float.__float__(value), Provenance(origin))
    if isinstance(value, Mapping):
        return {taint_input(key, origin): taint_input(item, origin) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items: Iterable[Any] = (taint_input(item, origin) for item in value)
        return list(items) if isinstance(value, list) else tuple(items)
    fields = fields_of(value)
    if fields is not None:
        return taint_input(fields, origin)
    has_str = any("__str__" in vars(kind) for kind in type(value).__mro__[:-1])
    return TaintedStr(str(value) if has_str else f"<{type(value).__name__}>", Provenance(origin))
