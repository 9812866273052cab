"""The JSON schemas of tools that are Python functions, for chat templates."""

from __future__ import annotations

import json
import threading
import typing
from collections.abc import Generator
from enum import Enum
from functools import partial
from inspect import Parameter, Signature
from typing import Any, Literal

import pytest

from bpe_tokenizer.chat.jinja.tool_schema import tool_schema
from bpe_tokenizer.chat.segment import Origin
from bpe_tokenizer.errors import OptionError, TokenizerError
from jinja_rendering import rendered, tool_of


class Unit(Enum):
    CELSIUS = "C"
    KELVIN = 3


class Mixed(Enum):
    ONE = (1,)  # some releases of Python 3.11 replace `()`


class Nothing(Enum):
    pass


def schema_of(hint: Any) -> Any:
    """The schema of an argument with this hint."""

    tool = tool_of("x", "x: It.")
    tool.__annotations__["x"] = hint
    tool.__signature__ = Signature([Parameter("x", Parameter.POSITIONAL_ONLY, annotation=hint)])
    schema = tool_schema(tool)["function"]["parameters"]["properties"]["x"]
    assert schema.pop("description") == "It."
    return schema


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (list, {"type": "array"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (typing.List, {"type": "array"}),  # noqa: UP006
        (typing.Tuple, {"type": "array"}),  # noqa: UP006
        (typing.Dict, {"type": "object"}),  # noqa: UP006
        (dict, {"type": "object"}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (tuple, {"type": "array"}),
        (tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}),
        (
            tuple[int, str, bool],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}, {"type": "boolean"}]},
        ),
        (str | int, {"type": ["integer", "string"]}),
        (list | tuple, {"type": "array"}),
        (int | str | None, {"type": ["integer", "string"], "nullable": True}),
        (list[int] | int, {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "integer"}]}),
        (Any | int, {"anyOf": [{}, {"type": "integer"}]}),
        (
            Literal["a", 3] | None,
            {"type": ["string", "integer"], "enum": ["a", 3], "nullable": True},
        ),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"] | int, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer"}]}),
        (
            Literal["a", 3] | Literal[True],
            {
                "anyOf": [
                    {"type": ["string", "integer"], "enum": ["a", 3]},
                    {"type": "boolean", "enum": [True]},
                ]
            },
        ),
        (Unit, {"type": ["string", "integer"], "enum": ["C", 3]}),
        (Any, {}),
    ],
)
def test_the_schema_of_a_hint(hint: Any, schema: Any) -> None:
    # As text, because the order is what a model sees.
    assert str(schema_of(hint)) == str(schema)


@pytest.mark.parametrize(
    ("hint", "message"),
    [
        (tuple[int], "the argument 'x' of tool: tuple.int. has no JSON schema; use list for any number"),
        (tuple[int, ...], "the argument 'x' of tool: tuple.*has no JSON schema; use list for any number"),
        (set, "the argument 'x' of tool: .*set.* has no JSON schema; use int"),
        (list[bytes], "the argument 'x' of tool: .*bytes.* has no JSON schema; use int"),
        (dict[str, bytes], "the argument 'x' of tool: .*bytes.* has no JSON schema; use int"),
        (tuple[bytes, int], "the argument 'x' of tool: .*bytes.* has no JSON schema; use int"),
        (set[int], "the argument 'x' of tool: .*set.* has no JSON schema; use int"),
        (Generator[int, int, str], "the argument 'x' of tool: .*Generator.* has no JSON schema; use int"),
        (int | bytes, "the argument 'x' of tool: .*bytes.* has no JSON schema; use int"),
        (Literal[b"a"], r"the argument 'x' of tool: .*b'a'.* are not values of JSON types"),
        (Mixed, r"the argument 'x' of tool: .*\(1,\).* are not values of JSON types"),
        (Nothing, r"the argument 'x' of tool: .* are not values of JSON types"),
        ("Unknown", "the type hints of the tool tool cannot be read: name 'Unknown' is not defined"),
    ],
)
def test_hints_without_a_schema_are_refused(hint: Any, message: str) -> None:
    with pytest.raises(OptionError, match=f"^{message}"):
        schema_of(hint)


class Desk:
    """Its methods are tools."""

    def find(self, destination: str, near: int = 0) -> list[str]:
        """Find a place: quickly.

        And slowly.

        Args:
            destination: The name:
              of the place
                near: by (choices: [" a ", 3])
            near: Where.

        Returns:
            The places.

        Raises:
            ValueError: Never.
        """
        return [destination] * near

    @classmethod
    def make(cls) -> threading.Thread:
        """Make one."""
        raise NotImplementedError


FIND = {
    "name": "find",
    "description": "Find a place: quickly.\n\nAnd slowly.",
    "parameters": {
        "type": "object",
        "properties": {
            "destination": {
                "type": "string",
                "enum": ["a", 3],
                "description": "The name: of the place near: by",
            },
            "near": {"type": "integer", "description": "Where."},
        },
        "required": ["destination"],
    },
    "return": {"type": "array", "items": {"type": "string"}, "description": "The places."},
}


def test_methods_are_tools() -> None:
    for method in (Desk().find, Desk.find):
        schema = tool_schema(method)
        assert schema == {"type": "function", "function": FIND}
        result = rendered("{{ tools | tojson }}", tools=[method])
        assert json.loads(result.text) == [schema]
        assert {segment.origin for segment in result.segments} == {Origin("tools", 0)}
    # The model never writes the result, so any type is allowed; then it is left out.
    for tool in (Desk.make, vars(Desk)["make"].__func__):
        assert tool_schema(tool)["function"] == {
            "name": "make",
            "description": "Make one.",
            "parameters": {"type": "object", "properties": {}},
        }
    with pytest.raises(OptionError, match="the type hints of the tool operation cannot be read"):
        tool_schema(partial(Desk().find, "x"))


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (lambda a: a, "<lambda> has no docstring"),
        (tool_of("a, b=1", "a: One.", "b: Other."), "argument 'a' of the tool tool has no type hint"),
        (tool_of("a: Thread", "a: One."), "Thread.*has no JSON schema"),
        (
            tool_of("a: int, b: int", "a: One."),
            "the docstring of the tool tool does not describe its argument 'b'",
        ),
        (tool_of("a: str"), "the tool tool does not describe its argument 'a'"),
        (
            tool_of("a: int, self", "a: One.", "self: Other."),
            "the argument 'self' of the tool tool has no type hint",
        ),
        (
            tool_of("a: str", "a: One (choices: x, y)"),
            "the choices of the argument 'a' of the tool tool are not a JSON list: x, y$",
        ),
        ("weather", "tool 0 must be a JSON schema"),
    ],
)
def test_tools_without_a_schema_are_refused(tool: Any, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        rendered("x", tools=[tool])
