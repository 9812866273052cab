"""The values of a template: what is handed in, as tracked copies, and what is made of it.

Text is not all that can carry content to the output: numbers print as digits, lists as Python writes them.
So numbers carry a tag as well, and whatever a function makes of content becomes content, whole.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from types import ModuleType
from typing import Any

from jinja2.environment import Environment
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, Undefined
from markupsafe import Markup

from bpe_tokenizer.chat.segment import Origin
from bpe_tokenizer.chat.tracked import Tag, Tracked, merge_tags

__all__ = [
    "CONTAINERS",
    "Opaque",
    "TrackedFloat",
    "TrackedInt",
    "TrackedMarkup",
    "UntrustedMarkup",
    "as_content",
    "holds_content",
    "printed",
    "tags_of",
    "unmixed",
]

# Values without content, whatever they are made of.
_HARMLESS = (type(None), bool, str, Markup, int, float, range)
CONTAINERS = (list, tuple, dict, set, frozenset, KeysView, ValuesView, ItemsView)
_ENGINE = (Context, EvalContext, Environment, Undefined, ModuleType)


class TrackedInt(int):
    """A number that is content: its digits are someone's text."""

    tag: Tag

    def __new__(cls, value: int, tag: Tag) -> TrackedInt:
        """Make a number of a tag."""
        self = super().__new__(cls, value)
        self.tag = tag
        return self

    def __str__(self) -> str:
        return Tracked(int.__repr__(self), self.tag)


class TrackedFloat(float):
    """A number that is content: its digits are someone's text."""

    tag: Tag

    def __new__(cls, value: float, tag: Tag) -> TrackedFloat:
        """Make a number of a tag."""
        self = super().__new__(cls, value)
        self.tag = tag
        return self

    def __str__(self) -> str:
        return Tracked(float.__repr__(self), self.tag)


class UntrustedMarkup(Markup):
    """What `markupsafe` makes of content: its methods give this class again, so that it stays untrusted."""

    tag = merge_tags(())

    @staticmethod
    def of(text: str, tag: Tag) -> UntrustedMarkup:
        """Make escaped text of a tag, which is its class's, so that what is made of it keeps it."""
        kind: type[UntrustedMarkup] = type("UntrustedMarkup", (UntrustedMarkup,), {"tag": tag})
        return kind(_plain(text))

    def __str__(self) -> str:
        return Tracked(str.__str__(self), self.tag)

    def __repr__(self) -> str:
        return f"Markup({str.__repr__(self)})"

    def __iter__(self) -> Iterator[str]:
        return (self[at] for at in range(len(self)))


class TrackedMarkup(Tracked):
    """Text that is escaped for HTML, or said to be: `markupsafe` escapes what is put together with it."""

    __slots__ = ()

    def __html__(self) -> str:
        return self

    def __repr__(self) -> str:
        return f"Markup({str.__repr__(self)})"


def unmixed(value: Any) -> Any:
    """Return a value; escaped text as the class of `markupsafe` that mixes it with other text, untrusted."""
    if not isinstance(value, TrackedMarkup):
        return value
    why = "text escaped for HTML was put together with other text, and is untrusted"
    return UntrustedMarkup.of(str(value), merge_tags(value.tags, why))


class Opaque:
    """An object made of content that is neither text nor number nor container, such as bytes."""

    def __init__(self, value: Any, tag: Tag) -> None:
        self._value, self._tag = value, tag

    def __str__(self) -> str:
        return Tracked(str(self._value), self._tag)

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
        return (as_content(item, self._tag) for item in self._value)

    def __getitem__(self, key: Any) -> Any:
        return as_content(self._value[key], self._tag)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it."""
        return as_content(self._value(*arguments, **named), self._tag)


def _plain(text: str) -> str:
    return str.__str__(text)


def tags_of(value: Any) -> Iterator[Tag]:
    """Iterate over the tags of the content in a value, however deep; anything unknown counts as content."""
    if isinstance(value, Tracked):
        yield from (tag for tag in value.tags if tag.origin is not None)
    elif isinstance(value, (TrackedInt, TrackedFloat, UntrustedMarkup)):
        yield value.tag
    elif isinstance(value, Opaque):
        yield value._tag
    elif type(value) in _HARMLESS or isinstance(value, _ENGINE):
        return
    elif isinstance(value, dict):
        yield from tags_of(value.items())
    elif isinstance(value, CONTAINERS):
        for item in value:
            yield from tags_of(item)
    elif isinstance(value, slice):
        yield from tags_of((value.start, value.stop, value.step))
    else:
        yield Tag(Origin("messages"))


def holds_content(value: Any) -> bool:
    """Return whether a value holds any content, however deep."""
    return next(tags_of(value), None) is not None


def as_content(value: Any, tag: Tag) -> Any:
    """Return what something unknown made of content: all of it is content, and of `tag` if of no other."""
    if value is None or isinstance(value, (bool, Undefined)):
        return value
    if isinstance(value, Markup):
        return UntrustedMarkup.of(str.__str__(value), tag)
    if isinstance(value, str):
        return Tracked(str.__str__(value), merge_tags((*tags_of(value), tag), tag.untracked))
    if isinstance(value, int):
        return TrackedInt(value, tag._replace(untracked=""))
    if isinstance(value, float):
        return TrackedFloat(value, tag._replace(untracked=""))
    if isinstance(value, dict):
        return {as_content(key, tag): as_content(item, tag) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(as_content(item, tag) for item in value)
    if isinstance(value, (*CONTAINERS, range)):
        return [as_content(item, tag) for item in value]
    if isinstance(value, Iterator):
        return (as_content(item, tag) for item in value)
    return Opaque(value, tag)


def printed(value: Any) -> str:
    """Return a value as a template prints it, `str(value)`, with the tags of its characters."""
    kind = type(value)
    if kind is str or kind is Tracked:
        return value  # type: ignore[no-any-return]
    if kind is Markup or value is None or kind in (bool, int, float) or isinstance(value, Undefined):
        return str(value)
    if isinstance(value, (str, TrackedInt, TrackedFloat, Opaque)):
        return value.__str__()
    tags = tuple(tags_of(value))
    return Tracked(str(value), merge_tags(tags)) if tags else str(value)
