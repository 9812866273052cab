"""Ropes: texts that are joined when they are needed.

`{% set x = x + message %}` in a loop copies all previous messages, and their provenance, each time. Here `+`
and `~` only remember both sides. So n additions take time linear in n and in the length of the
text.

Source: Boehm, Atkinson, Plass, "Ropes: an Alternative to Strings", Software: Practice and Experience 25(12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bpe_tokenizer.chat.jinja.limits import over_limit, spend
from bpe_tokenizer.chat.jinja.tainted_str import TaintedStr, concat_charged

__all__ = ["TEXTS", "Rope", "join_texts", "joined"]

# Shorter texts without provenance are joined at once.
_MIN_LENGTH = 512
# What one pass of a loop adds to a text is a few levels deep.
_MAX_MARKED_DEPTH = 50
# The longest text: Python's limit on 32-bit machines; a rope takes no memory for what it repeats.
_MAX_LENGTH = 2**31


class Rope:
    """A text as two sides, each a string or a rope.

    It stays a rope in variables, attributes of namespaces and arguments of macros only. Anything else joins
    it first. Python's operators, which templates use for comparing and for conditions, work on its text.

    Args:
        left: The left side.
        right: The right side.
    """

    __slots__ = ("_is_marked", "_joined", "_left", "_length", "_parts", "_right")
    _left: str | Rope
    _right: str | Rope

    def __init__(self, left: str | Rope, right: str | Rope) -> None:
        self._left, self._right = left, right
        self._length = len(left) + len(right)
        self._parts: int = getattr(left, "_parts", 1) + getattr(right, "_parts", 1)
        self._joined: str | None = None
        self._is_marked = False
        if self._length > _MAX_LENGTH:
            raise over_limit("joins too much text")

    def joined(self) -> str:
        """Return the text."""
        if self._joined is None:
            # A text that is doubled again and again has more parts than memory.
            spend(1 + self._parts / 2, self._length)
            self._joined = concat_charged([*self._strings()])
            self._left = self._right = ""
            self._parts = 1
        return self._joined

    def with_marks(self, mark: Callable[[str], str], depth: int = 0) -> str | Rope:
        """Return the text with its strings marked, except those of ropes that this returned before.

        Args:
            mark: Returns a string with marks on what has none.
            depth: How deep this rope is in the one to mark.
        """
        if self._is_marked:
            return self
        if self._joined is not None or depth > _MAX_MARKED_DEPTH:
            return mark(self.joined())
        sides = (
            side.with_marks(mark, depth + 1) if isinstance(side, Rope) else mark(side)
            for side in (self._left, self._right)
        )
        marked = Rope(*sides)
        marked._is_marked = True
        return marked

    def _strings(self) -> Iterator[str]:
        left: list[str | Rope] = [self]
        while left:
            text = left.pop()
            if not isinstance(text, Rope):
                yield text
            elif text._joined is not None:
                yield text._joined
            else:
                left += (text._right, text._left)

    def __str__(self) -> str:
        return self.joined()

    def __repr__(self) -> str:
        return repr(self.joined())

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return bool(self.joined() == joined(other))

    def __lt__(self, other: Any) -> bool:
        return bool(self.joined() < joined(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.joined() <= joined(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.joined() > joined(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.joined() >= joined(other))

    def __hash__(self) -> int:
        return hash(self.joined())

    def __contains__(self, part: Any) -> bool:
        return bool(joined(part) in self.joined())

    def __iter__(self) -> Iterator[str]:
        return iter(self.joined())

    def __getitem__(self, key: Any) -> str:
        return self.joined()[key]


def joined(value: Any) -> Any:
    """Return a value unchanged, except a rope: that becomes its text."""
    return value.joined() if type(value) is Rope else value


def join_texts(left: str | Rope, right: str | Rope) -> str | Rope:
    """Return `left + right`, of plain or tainted strings or ropes."""
    if type(left) is str and type(right) is str and len(left) + len(right) < _MIN_LENGTH:
        spend(1)
        return left + right
    spend(2)
    return Rope(left, right)


# The types that `join_texts` takes. A subclass may be marked as escaped for HTML, and is joined differently.
TEXTS = frozenset((str, TaintedStr, Rope))
