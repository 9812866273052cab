"""Makes the JSON schema of a tool from a Python function's type hints and docstring.

Source: https://huggingface.co/docs/transformers/chat_extras#schema
"""

from __future__ import annotations

import inspect
import json
import re
import types
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from bpe_tokenizer.errors import OptionError, shorten

__all__ = ["tool_schema"]

Schema = dict[str, Any]

_TYPES: dict[Any, Schema] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}
_SCALAR_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}

_SECTION_START = re.compile(r"[\n\s]*(?:Args:|Returns:|Raises:|\Z)")
_ARGUMENTS = re.compile(r"\n\s*Args:\n(.*?)[\n\s]*(?:Returns:|Raises:|\Z)", re.DOTALL)
_RETURNS = re.compile(r"\n\s*Returns:\n\s*(.*?)[\n\s]*(?:Raises:|\Z)", re.DOTALL)
_ARGUMENT = re.compile(r"([ \t]*)(\w+):\s*(.*)")
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*$", re.IGNORECASE)


def tool_schema(function: Callable[..., Any]) -> Schema:
    """Describe a function as a tool.

    Args:
        function: A function with type hints and a docstring in Google style that describes every argument.
            `(choices: ["a", "b"])` at the end of a description lists the allowed values.

    Raises:
        OptionError: A hint or a description is missing, or a hint has no JSON schema.

    Example:
        >>> def add(a: int, b: int = 0) -> int:
        ...     '''Add two numbers.
        ...
        ...     Args:
        ...         a: The first.
        ...         b: The second.
        ...     '''
        ...     return a + b
        >>> tool_schema(add)["function"]["parameters"]["properties"]["b"]
        {'type': 'integer', 'description': 'The second.'}
    """
    name = getattr(function, "__name__", "operation")[:60]
    text = (inspect.getdoc(function) or "").strip()
    if not text:
        raise OptionError(f"the tool {name} has no docstring: describe its purpose and arguments in one")
    descriptions = _descriptions(text)
    parameters, returned = _parameters(function, name)
    for argument, schema in parameters["properties"].items():
        if argument not in descriptions:
            raise OptionError(f"the docstring of the tool {name} does not describe its argument {argument!r}")
        schema |= _description_schema(descriptions[argument], name, argument)
    about = _SECTION_START.split(text)[0]
    described: Schema = {"name": name, "description": about.strip(), "parameters": parameters}
    if returned is not None:
        returns = _RETURNS.search(text)
        described["return"] = returned | ({"description": returns.group(1).strip()} if returns else {})
    return {"type": "function", "function": described}


def _parameters(function: Callable[..., Any], name: str) -> tuple[Schema, Schema | None]:
    """Return the schema of a function's arguments, and that of its result or None."""
    try:
        hints = get_type_hints(function)
    except MemoryError:
        raise
    except Exception as error:
        raise OptionError(f"the type hints of the tool {name} cannot be read: {error}") from error
    properties, required = {}, []
    for position, argument in enumerate(inspect.signature(function).parameters.values()):
        if argument.annotation is inspect.Parameter.empty:
            if position == 0 and argument.name in ("self", "cls"):
                continue
            raise OptionError(f"the argument {argument.name!r} of the tool {name} has no type hint")
        if argument.name not in hints:  # Python 3.14 finds no hints for other callables
            raise OptionError(f"the type hints of the tool {name} cannot be read: it is not a function")
        where = f"the argument {argument.name!r} of {name}"
        properties[argument.name] = _hint_schema(hints[argument.name], where)
        if argument.default is inspect.Parameter.empty:
            required.append(argument.name)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    try:
        returned = _hint_schema(hints["return"], name) if "return" in hints else None
    except OptionError:
        # The model never writes the result, so any type is allowed.
        returned = None
    return schema, returned


def _hint_schema(hint: Any, where: str) -> Schema:
    """Return the schema of a type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union_schema(arguments, where)
    if origin is Literal:
        return _values_schema(list(arguments), where)
    if origin in (list, tuple) and not arguments:
        return {"type": "array"}  # `List` and `Tuple` of typing
    if origin is list:
        return {"type": "array", "items": _hint_schema(arguments[0], where)}
    if origin is dict and len(arguments) == 2:
        return {"type": "object", "additionalProperties": _hint_schema(arguments[1], where)}
    if origin is dict:
        return {"type": "object"}
    if origin is tuple and len(arguments) > 1 and ... not in arguments:
        return {"type": "array", "prefixItems": [_hint_schema(argument, where) for argument in arguments]}
    if origin is tuple:
        raise OptionError(f"{where}: {hint} has no JSON schema; use list for any number of items")
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _values_schema([member.value for member in hint], where)
    if origin is None and hint in _TYPES:
        return dict(_TYPES[hint])
    raise OptionError(
        f"{where}: {shorten(hint)} has no JSON schema; use int, float, str, bool, list, dict, tuple, Union, "
        "Literal or an Enum, or pass the tool as a JSON schema"
    )


def _union_schema(arguments: tuple[Any, ...], where: str) -> Schema:
    nullable = type(None) in arguments
    schemas = [_hint_schema(argument, where) for argument in arguments if argument is not type(None)]
    union: Schema
    if len(schemas) == 1:
        union = schemas[0]
    elif all(schema.keys() == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        kinds = sorted({schema["type"] for schema in schemas})
        union = {"type": kinds[0] if len(kinds) == 1 else kinds}
    else:
        union = {"anyOf": schemas}
    return union | ({"nullable": True} if nullable else {})


def _values_schema(values: list[Any], where: str) -> Schema:
    if not values or any(type(value) not in _SCALAR_NAMES for value in values):
        raise OptionError(f"{where}: {shorten(values)} are not values of JSON types")
    kinds = list(dict.fromkeys(_SCALAR_NAMES[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def _descriptions(text: str) -> dict[str, str]:
    """Return the description of each argument in a docstring, joined to one line."""
    section = _ARGUMENTS.search(text)
    lines = [line for line in section.group(1).split("\n") if line.strip()] if section else []
    descriptions: dict[str, str] = {}
    indent = name = None
    for line in lines:
        match = _ARGUMENT.match(line)
        if match and (indent is None or len(match[1]) <= len(indent)):
            indent, name = match[1], match[2]
            descriptions[name] = match[3]
        elif name is not None:
            descriptions[name] += "\n" + line
    return {name: re.sub(r"\s*\n+\s*", " ", about.strip()) for name, about in descriptions.items()}


def _description_schema(about: str, name: str, argument: str) -> Schema:
    """Return a description, and its choices if it lists any, as part of a schema."""
    match = _CHOICES.search(about)
    if match is None:
        return {"description": about}
    try:
        choices = json.loads(match.group(1))
    except (ValueError, RecursionError):
        raise OptionError(
            f"the choices of the argument {argument!r} of the tool {name} are not a JSON list: "
            f"{match[1]:.100}"
        ) from None
    values = [choice.strip() if isinstance(choice, str) else choice for choice in choices]
    return {"enum": values, "description": about[: match.start()].strip()}
