"""Tainted values of other types than text.

Numbers, lists and other objects carry content to the output too, as the text that Python prints for them. So
each has a provenance, and the result of an unknown function of content is content as a whole.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from types import ModuleType
from typing import Any

from jinja2.environment import Environment
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, Undefined
from markupsafe import Markup

from bpe_tokenizer.chat.jinja.limits import spend, weigh
from bpe_tokenizer.chat.jinja.rope import Rope
from bpe_tokenizer.chat.jinja.tainted_str import Provenance, TaintedStr, merge_provenances
from bpe_tokenizer.chat.segment import Origin

__all__ = [
    "CONTAINERS",
    "TaintedFloat",
    "TaintedInt",
    "TaintedMarkup",
    "TaintedObject",
    "UntrustedMarkup",
    "demote_markup",
    "holds_content",
    "provenances_of",
    "taint",
    "to_output",
]

# Types whose plain values never hold content.
_UNTAINTED = (type(None), bool, str, Markup, int, float, range)
CONTAINERS = (list, tuple, dict, set, frozenset, KeysView, ValuesView, ItemsView)
_ENGINE = (Context, EvalContext, Environment, Undefined, ModuleType)


class TaintedInt(int):
    """An integer that is content, and so are its digits."""

    provenance: Provenance

    def __new__(cls, value: int, provenance: Provenance) -> TaintedInt:
        """Make a number with a provenance."""
        self = super().__new__(cls, value)
        self.provenance = provenance
        return self

    def __str__(self) -> str:
        return TaintedStr(int.__repr__(self), self.provenance)


class TaintedFloat(float):
    """A float that is content, and so are its digits."""

    provenance: Provenance

    def __new__(cls, value: float, provenance: Provenance) -> TaintedFloat:
        """Make a number with a provenance."""
        self = super().__new__(cls, value)
        self.provenance = provenance
        return self

    def __str__(self) -> str:
        return TaintedStr(float.__repr__(self), self.provenance)


class UntrustedMarkup(Markup):
    """Escaped text that is content as a whole; the methods of `Markup` return the same class."""

    provenance = merge_provenances(())

    @staticmethod
    def of(text: str, provenance: Provenance) -> UntrustedMarkup:
        """Make escaped text with a provenance.

        The provenance belongs to a new class, because the methods of `Markup` keep the class only.
        """
        kind: type[UntrustedMarkup] = type("UntrustedMarkup", (UntrustedMarkup,), {"provenance": provenance})
        return kind(str.__str__(text))

    def __str__(self) -> str:
        return TaintedStr(str.__str__(self), self.provenance)

    def __repr__(self) -> str:
        return f"Markup({str.__repr__(self)})"

    def __iter__(self) -> Iterator[str]:
        return (self[at] for at in range(len(self)))


class TaintedMarkup(TaintedStr):
    """Text that is marked as escaped for HTML: `markupsafe` escapes the text that is joined to it."""

    __slots__ = ()

    def __html__(self) -> str:
        return self

    def __repr__(self) -> str:
        return f"Markup({str.__repr__(self)})"


def demote_markup(value: Any) -> Any:
    """Return a value unchanged, except a `TaintedMarkup`: that becomes an `UntrustedMarkup`."""
    if not isinstance(value, TaintedMarkup):
        return value
    reason = "text escaped for HTML was joined to other text, so it is untrusted"
    return UntrustedMarkup.of(str(value), merge_provenances(value.provenances, reason))


class TaintedObject:
    """Wraps an object made from content that is not text, a number or a container, such as bytes."""

    def __init__(self, value: Any, provenance: Provenance) -> None:
        self._value, self._provenance = value, provenance

    def __str__(self) -> str:
        return TaintedStr(str(self._value), self._provenance)

    __repr__ = __str__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __eq__(self, other: object) -> bool:
        return bool(self._value == other)

    def __hash__(self) -> int:
        return hash(self._value)

    def __iter__(self) -> Iterator[Any]:
        return (taint(item, self._provenance) for item in self._value)

    def __getitem__(self, key: Any) -> Any:
        return taint(self._value[key], self._provenance)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it."""
        return taint(self._value(*arguments, **named), self._provenance)


def provenances_of(value: Any, visited: set[int] | None = None) -> Iterator[Provenance]:
    """Iterate over the provenances of the content in a value, at any depth; unknown objects are content.

    Args:
        value: The value. What occurs in it more than once is visited once.
        visited: The `id`s of the containers that were visited.
    """
    if isinstance(value, Rope):
        value = value.joined()
    if isinstance(value, TaintedStr):
        yield from (provenance for provenance in value.provenances if provenance.origin is not None)
    elif isinstance(value, (TaintedInt, TaintedFloat, UntrustedMarkup)):
        yield value.provenance
    elif isinstance(value, TaintedObject):
        yield value._provenance
    elif type(value) in _UNTAINTED or isinstance(value, _ENGINE):
        return
    elif isinstance(value, CONTAINERS):
        visited = set() if visited is None else visited
        if id(value) in visited:
            return
        visited.add(id(value))
        for item in value:
            spend(1 / 8)
            yield from provenances_of(item, visited)
            if isinstance(value, dict):
                yield from provenances_of(value[item], visited)
    elif isinstance(value, slice):
        yield from provenances_of((value.start, value.stop, value.step))
    else:
        yield Provenance(Origin("messages"))


def holds_content(value: Any) -> bool:
    """Return whether a value holds any content, at any depth."""
    return next(provenances_of(value), None) is not None


def taint(value: Any, provenance: Provenance) -> Any:
    """Return a value as content of a provenance, at every depth; content in it keeps its own origin."""
    if value is None or isinstance(value, (bool, Undefined)):
        return value
    if isinstance(value, Markup):
        return UntrustedMarkup.of(str.__str__(value), provenance)
    if isinstance(value, str):
        return TaintedStr(
            str.__str__(value),
            merge_provenances((*provenances_of(value), provenance), provenance.lost_reason),
        )
    if isinstance(value, int):
        return TaintedInt(value, provenance._replace(lost_reason=""))
    if isinstance(value, float):
        return TaintedFloat(value, provenance._replace(lost_reason=""))
    if isinstance(value, dict):
        return {taint(key, provenance): taint(item, provenance) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(taint(item, provenance) for item in value)
    if isinstance(value, (*CONTAINERS, range)):
        return [taint(item, provenance) for item in value]
    if isinstance(value, Iterator):
        return (taint(item, provenance) for item in value)
    return TaintedObject(value, provenance)


def to_output(value: Any) -> str:
    """Return the text that a template outputs for a value, `str(value)`, with its provenance."""
    kind = type(value)
    if kind is str or kind is TaintedStr:
        return value  # type: ignore[no-any-return]
    if kind is Rope:
        return value.joined()  # type: ignore[no-any-return]
    if kind is Markup or value is None or kind in (bool, int, float) or isinstance(value, Undefined):
        return str(value)
    if isinstance(value, (str, TaintedInt, TaintedFloat)):
        return value.__str__()
    spend(0, weigh(value)[1])
    if isinstance(value, TaintedObject):
        return value.__str__()
    provenances = tuple(provenances_of(value))
    return TaintedStr(str(value), merge_provenances(provenances)) if provenances else str(value)
