"""The budget of rendering a template, because a template is untrusted code that comes with a model's files.

A budget limits operations and characters. Operations are steps of loops, calls, and items that an operation
visits. Characters are those that operations read or write; items of lists and digits of numbers count too, so
they limit the memory. Every operation whose cost depends on a value charges the budget before it starts.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from contextlib import contextmanager
from typing import Any

from jinja2.utils import Namespace

from bpe_tokenizer.chat.template_budget import scaled
from bpe_tokenizer.errors import ChatTemplateError

__all__ = [
    "MAX_SOURCE",
    "RenderBudget",
    "charge_tree",
    "counted",
    "limited",
    "over_budget",
    "spend",
    "wrapped",
]

# Without any input, a rendering may do this much: about two seconds, and 250 MB at most.
_OPERATIONS, _CHARACTERS = 1_000_000, 64_000_000
# Each value in the input (a message has about three) and each of its characters adds this much. Templates
# read a content several times, and a few compare each message with each other one.
_OPERATIONS_PER_VALUE, _CHARACTERS_PER_VALUE = 500, 1_000
_OPERATIONS_PER_CHARACTER, _CHARACTERS_PER_CHARACTER = 4, 64
# The longest published template has 50,000 characters. Compiling takes 2 KB for each.
MAX_SOURCE = 400_000
# Hashing a tuple recurs in C without a check of the stack.
_MAX_DEPTH = 200
# Python's hash of an integer is the integer modulo this number: many with one hash make a dict quadratic.
_HASH_MODULUS = 2**61 - 1
_HOLDERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


class _State(threading.local):
    """The budget of the rendering that runs in this thread."""

    budget: RenderBudget | None = None


_STATE = _State()


class RenderBudget:
    """What is left for a rendering.

    Args:
        operations: The number of operations.
        characters: The number of characters.
    """

    __slots__ = ("characters", "operations")

    def __init__(self, operations: float, characters: float) -> None:
        self.operations, self.characters = operations, characters


@contextmanager
def limited(values: Mapping[str, Any], source: str) -> Iterator[None]:
    """Limit what is rendered inside the block by the budget for an input.

    Args:
        values: The context of the template.
        source: The source of the template.
    """
    nodes, characters = _size(values)
    characters += len(source)
    previous, _STATE.budget = (
        _STATE.budget,
        RenderBudget(
            scaled(_OPERATIONS + _OPERATIONS_PER_VALUE * nodes + _OPERATIONS_PER_CHARACTER * characters),
            scaled(_CHARACTERS + _CHARACTERS_PER_VALUE * nodes + _CHARACTERS_PER_CHARACTER * characters),
        ),
    )
    try:
        yield
    finally:
        _STATE.budget = previous


def _size(values: Any) -> tuple[int, int]:
    """Return the number of values and the number of characters in an input."""
    nodes = characters = 0
    left = [values]
    while left:
        value = left.pop()
        nodes += 1
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, dict):
            characters += sum(len(key) for key in value if isinstance(key, str))
            left += value.values()
        elif isinstance(value, (list, tuple)):
            left += value
    return nodes, characters


def spend(operations: float, characters: float = 0) -> None:
    """Charge the budget for an operation that is about to start; outside of a rendering, do nothing.

    Raises:
        ChatTemplateError: The budget is used up.
    """
    budget = _STATE.budget
    if budget is None:
        return
    # A negative width or count adds nothing to the budget.
    if operations > 0:
        budget.operations -= operations
    if characters > 0:
        budget.characters -= characters
    if budget.operations < 0 or budget.characters < 0:
        raise over_budget("does or writes too much for its input")


def over_budget(what: str) -> ChatTemplateError:
    """Return the error for a template that wants too much.

    Args:
        what: What the template does.
    """
    return ChatTemplateError(
        f"{what}: it exceeds its budget of operations and characters. If you trust the template, pass "
        "template_budget=10 for ten times the budget"
    )


def charge_tree(value: Any) -> tuple[int, int]:
    """Charge the budget for a visit of all values in a value, at every depth, as often as they occur.

    Printing, comparing and hashing do that. A list that holds another twice, which holds another twice, is
    small in memory, but takes exponential time.

    Returns:
        The number of values and of characters.

    Raises:
        ChatTemplateError: The budget is used up, or the value is nested too deeply.
    """
    nodes = characters = depth = large = 0
    level: list[Any] = [value]
    while level:
        following: list[Any] = []
        for item in level:
            if isinstance(item, (str, bytes)):
                characters += len(item)
            elif isinstance(item, dict):
                spend(len(item), 4 * len(item))
                following += item
                following += item.values()
            elif isinstance(item, _HOLDERS):
                spend(len(item) / 2, 2 * len(item))
                following += item
            elif isinstance(item, int):
                large += abs(item) >= _HASH_MODULUS
            elif isinstance(item, range):
                spend(len(item) / 2)
                large += len(item) if max(abs(item.start), abs(item.stop)) >= _HASH_MODULUS else 0
            elif isinstance(item, Namespace):
                # A namespace may hold itself. Then the depth ends this.
                spend(5)
                following += _attributes(item)
            elif (inner := wrapped(item)) is not item:
                following.append(inner)
        spend(1, characters / 16 + large * large / 8)
        nodes += len(level)
        level = following
        depth += 1
        if depth > _MAX_DEPTH:
            raise ChatTemplateError(f"builds a value that is nested more than {_MAX_DEPTH} levels deep")
    return nodes, characters


def wrapped(value: Any) -> Any:
    """Return the object in a `TaintedObject`, and other values unchanged."""
    return getattr(value, "__dict__", {}).get("_value", value)


def _attributes(namespace: Namespace) -> Collection[Any]:
    attributes: Mapping[str, Any] = object.__getattribute__(namespace, "_Namespace__attrs")
    return attributes.values()


def counted(items: Iterable[Any]) -> Iterator[Any]:
    """Iterate over items, and charge the budget for each."""
    for item in items:
        spend(1)
        yield item
