"""A string that carries the provenance of every character through Python's string methods.

A template engine can slice, join and rewrite a `TaintedStr` as any `str`. Characters that a method derives
from content (upper case of "ß", padding) are content too. Text that the template passes to a method (the
separator of `join`, the replacement of `replace`) stays the template's.
"""

# The methods of `TaintedStr` are `str`'s, and documented there.
# ruff: noqa: D102
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple, SupportsIndex

from bpe_tokenizer.chat.jinja.limits import spend
from bpe_tokenizer.chat.segment import Origin

__all__ = [
    "TEMPLATE",
    "Provenance",
    "TaintedStr",
    "as_tainted",
    "concat",
    "concat_charged",
    "merge_provenances",
]


class Provenance(NamedTuple):
    """Who wrote a character.

    Args:
        origin: The content that the character comes from; None for the template's own text.
        generated: Whether it is inside a `{% generation %}` block, which marks the assistant's text.
        lost_reason: Why the tracking lost the exact origin, a sentence; "" if it did not.
        writers: The messages that the loops of the template were at when they wrote it; see `loop_tracing`.
    """

    origin: Origin | None = None
    generated: bool = False
    lost_reason: str = ""
    writers: tuple[int, ...] = ()


TEMPLATE = Provenance()
# Rewriting every prefix takes time quadratic in the length of the text.
_MAX_PREFIXES = 200


def merge_provenances(provenances: Iterable[Provenance], lost_reason: str = "") -> Provenance:
    """Return the provenance of text that was made from content of all these: what their origins share.

    The template's own provenance is ignored. Without any content, the result is content of unknown messages.
    """
    known = dict.fromkeys(provenance for provenance in provenances if provenance.origin is not None)
    origins = {provenance.origin for provenance in known if provenance.origin is not None}
    reason = lost_reason or next(
        (provenance.lost_reason for provenance in known if provenance.lost_reason), ""
    )
    if not origins:
        return Provenance(Origin("messages"), lost_reason=reason)
    if len(origins) == 1:
        return Provenance(origins.pop(), lost_reason=reason)
    first, *others = origins
    if any(origin.source != first.source for origin in others):
        return Provenance(Origin("messages"), lost_reason=reason)
    index = first.index if all(origin.index == first.index for origin in others) else None
    return Provenance(Origin(first.source, index), lost_reason=reason)


class TaintedStr(str):
    """A string of runs, each with one provenance for all of its characters.

    Args:
        text: The text.
        provenance: The provenance of all characters.

    Example:
        >>> content = TaintedStr("Hi ", Provenance(Origin("messages", 0, "content")))
        >>> rendered = "<user>" + content.strip() + "</user>"
        >>> [(rendered[a:b] + "", known.origin and known.origin.field) for a, b, known in rendered.runs()]
        [('<user>', None), ('Hi', 'content'), ('</user>', None)]
    """

    __slots__ = ("ends", "provenances")
    ends: Sequence[int]
    provenances: Sequence[Provenance]

    def __new__(cls, text: str, provenance: Provenance) -> TaintedStr:
        """Make a string whose characters all have the same provenance."""
        self = super().__new__(cls, text)
        self.ends, self.provenances = ((len(text),), (provenance,)) if text else ((), ())
        return self

    @classmethod
    def from_runs(cls, text: str, ends: Sequence[int], provenances: Sequence[Provenance]) -> TaintedStr:
        """Make a string from its runs: the end and the provenance of each."""
        self = super().__new__(cls, text)
        self.ends, self.provenances = ends, provenances
        return self

    def runs(self) -> Iterator[tuple[int, int, Provenance]]:
        """Iterate over the runs as (start, end, provenance), in characters."""
        start = 0
        for end, provenance in zip(self.ends, self.provenances, strict=True):
            yield start, end, provenance
            start = end

    # Parts of the string.

    def substring(self, start: int, end: int) -> TaintedStr:
        """Return the characters from `start` to `end`; both must be in range."""
        text = str.__getitem__(self, slice(start, end))
        if not text:
            return TaintedStr("", TEMPLATE)
        if len(self.provenances) == 1:
            return TaintedStr(text, self.provenances[0])
        first, last = bisect_right(self.ends, start), bisect_left(self.ends, end)
        ends = [min(run, end) - start for run in self.ends[first : last + 1]]
        return TaintedStr.from_runs(text, ends, self.provenances[first : last + 1])

    def consecutive(self, pieces: Iterable[str], gap: int = 0) -> list[TaintedStr]:
        """Return pieces that follow each other from the start, with `gap` characters between them."""
        parts, start = [], 0
        for piece in pieces:
            parts.append(self.substring(start, start + len(piece)))
            start += len(piece) + gap
        return parts

    def locate(self, pieces: Iterable[str]) -> list[TaintedStr]:
        """Return pieces that occur in this order, with only white space between them."""
        parts, start = [], 0
        for piece in pieces:
            start = str.index(self, piece, start)
            parts.append(self.substring(start, start + len(piece)))
            start += len(piece)
        return parts

    def __str__(self) -> str:
        return self

    def __iter__(self) -> Iterator[TaintedStr]:
        for start, end, provenance in self.runs():
            for character in str.__getitem__(self, slice(start, end)):
                yield TaintedStr(character, provenance)

    def __getitem__(self, key: SupportsIndex | slice) -> TaintedStr:
        text = str.__getitem__(self, key)
        if not isinstance(key, slice):
            start = range(len(self))[key]
            return self.substring(start, start + 1)
        start, stop, step = key.indices(len(self))
        if step == 1:
            return self.substring(start, max(start, stop))
        if len(self.provenances) == 1:
            return TaintedStr(text, self.provenances[0])
        return as_tainted(concat([self.substring(at, at + 1) for at in range(start, stop, step)]))

    def lstrip(self, chars: str | None = None, /) -> TaintedStr:
        return self.substring(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> TaintedStr:
        return self.substring(0, len(str.rstrip(self, chars)))

    def strip(self, chars: str | None = None, /) -> TaintedStr:
        return self.lstrip(chars).rstrip(chars)

    def removeprefix(self, prefix: str, /) -> TaintedStr:
        return self.substring(len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> TaintedStr:
        return self.substring(0, len(str.removesuffix(self, suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[TaintedStr]:  # type: ignore[override]
        pieces = str.split(self, sep, maxsplit)
        return self.locate(pieces) if sep is None else self.consecutive(pieces, len(sep))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[TaintedStr]:  # type: ignore[override]
        pieces = str.rsplit(self, sep, maxsplit)
        return self.locate(pieces) if sep is None else self.consecutive(pieces, len(sep))

    def splitlines(self, keepends: bool = False) -> list[TaintedStr]:  # type: ignore[override]
        lines = self.consecutive(str.splitlines(self, True))
        lengths = map(len, str.splitlines(self, keepends))
        return [line.substring(0, length) for line, length in zip(lines, lengths, strict=True)]

    def partition(self, sep: str, /) -> tuple[TaintedStr, TaintedStr, TaintedStr]:
        before, separator, after = self.consecutive(str.partition(self, sep))
        return before, separator, after

    def rpartition(self, sep: str, /) -> tuple[TaintedStr, TaintedStr, TaintedStr]:
        before, separator, after = self.consecutive(str.rpartition(self, sep))
        return before, separator, after

    # Combinations with other strings.

    def __add__(self, other: str) -> TaintedStr:
        return as_tainted(concat((self, other))) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> TaintedStr:
        return as_tainted(concat((other, self))) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> TaintedStr:
        text = str.__mul__(self, times)
        if len(self.provenances) == 1:
            return TaintedStr(text, self.provenances[0])
        return as_tainted(concat([self] * (len(text) // len(self) if self else 0)))

    __rmul__ = __mul__

    # Templates do not reach these four: the environment calls `formatting`, which tracks each argument. Any
    # other caller gets a result that is content as a whole.

    def __mod__(self, arguments: Any) -> TaintedStr:
        return _untraced(str.__mod__(self, arguments), "the operator %")

    def __rmod__(self, template: Any) -> TaintedStr:
        return _untraced(str.__mod__(template, self), "%") if isinstance(template, str) else NotImplemented

    def format(self, *arguments: Any, **named: Any) -> TaintedStr:
        return _untraced(str.format(self, *arguments, **named), "the method format()")

    def format_map(self, mapping: Mapping[str, Any], /) -> TaintedStr:  # type: ignore[override]
        return _untraced(str.format_map(self, mapping), "the method format_map()")

    def join(self, pieces: Iterable[str], /) -> TaintedStr:
        parts: list[str] = []
        for piece in pieces:
            if parts:
                parts.append(self)
            parts.append(piece)
        return as_tainted(concat(parts))

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> TaintedStr:
        if old:
            return as_tainted(new).join(self.split(old, count))
        gaps = len(self) + 1
        times = count.__index__() if 0 <= count.__index__() < gaps else gaps
        if times == 0:
            return self
        return as_tainted(new).join(["", *self.substring(0, times - 1), self.substring(times - 1, len(self))])

    # Rewriting from left to right.

    def map_runs(self, rewrite: Callable[..., str], *arguments: Any) -> TaintedStr:
        """Apply a method in which each character depends only on the text to its left, and keep the runs.

        A run of the result ends where the rewritten prefix ends.
        """
        text = rewrite(self, *arguments)
        if len(self.provenances) == 1:
            return TaintedStr(text, self.provenances[0])
        runs = (str.__getitem__(self, slice(start, end)) for start, end, _ in self.runs())
        pieces = [rewrite(run, *arguments) for run in runs]
        if "".join(pieces) == text:
            ends = list(accumulate(map(len, pieces)))
        elif len(self.provenances) <= _MAX_PREFIXES:
            # The text to the left of a run changes how the run is rewritten.
            ends = [len(rewrite(str.__getitem__(self, slice(end)), *arguments)) for end in self.ends]
        else:
            return TaintedStr(
                text, merge_provenances(self.provenances, "text of very many parts was rewritten")
            )
        return TaintedStr.from_runs(text, *_merge_runs(ends, self.provenances))

    def upper(self) -> TaintedStr:
        return self.map_runs(str.upper)

    def lower(self) -> TaintedStr:
        return self.map_runs(str.lower)

    def title(self) -> TaintedStr:
        return self.map_runs(str.title)

    def capitalize(self) -> TaintedStr:
        return self.map_runs(str.capitalize)

    def casefold(self) -> TaintedStr:
        return self.map_runs(str.casefold)

    def swapcase(self) -> TaintedStr:
        return self.map_runs(str.swapcase)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> TaintedStr:
        return self.map_runs(str.expandtabs, tabsize)

    def translate(self, table: Any, /) -> TaintedStr:
        return self.map_runs(str.translate, table)

    # Padding.

    def _pad(self, text: str, before: int, fill: str) -> TaintedStr:
        """Return `text`, which is this string with padding, of which `before` characters are on the left."""
        filling = [provenance for provenance in as_tainted(fill).provenances if provenance != TEMPLATE]
        first = (filling or [*self.provenances, TEMPLATE])[0]
        last = (filling or [TEMPLATE, *self.provenances])[-1]
        after = before + len(self)
        return as_tainted(concat((TaintedStr(text[:before], first), self, TaintedStr(text[after:], last))))

    def ljust(self, width: SupportsIndex, fillchar: str = " ", /) -> TaintedStr:
        return self._pad(str.ljust(self, width, fillchar), 0, fillchar)

    def rjust(self, width: SupportsIndex, fillchar: str = " ", /) -> TaintedStr:
        text = str.rjust(self, width, fillchar)
        return self._pad(text, len(text) - len(self), fillchar)

    def center(self, width: SupportsIndex, fillchar: str = " ", /) -> TaintedStr:
        text = str.center(self, width, fillchar)
        padding = len(text) - len(self)
        # CPython puts the odd character of padding on the left if the width is odd too.
        return self._pad(text, padding // 2 + (padding & width.__index__() & 1), fillchar)

    def zfill(self, width: SupportsIndex, /) -> TaintedStr:
        sign = 1 if self.startswith(("+", "-")) else 0
        text = str.zfill(self, width)
        digits = self.substring(sign, len(self))
        zeros = len(text) - len(self)
        return self.substring(0, sign) + digits._pad(text[sign:], zeros, "")


def concat(parts: Iterable[str]) -> str:
    """Join strings; a plain one is the template's.

    Returns:
        A `TaintedStr` if any part is one, else a plain string.
    """
    parts = list(parts)
    with suppress(TypeError):  # `join` reports a part that is not text
        spend(1 + len(parts) / 2, sum(map(len, parts)))
    return concat_charged(parts)


def concat_charged(parts: list[str]) -> str:
    """Return `concat(parts)`, which was charged for."""
    text = "".join(parts)
    # Other tainted string classes return a `TaintedStr` from str().
    parts = [part if type(part) is str else str(part) for part in parts]
    if not any(isinstance(part, TaintedStr) for part in parts):
        return text
    ends: list[int] = []
    provenances: list[Provenance] = []
    last: Provenance | None = None
    start = 0
    for part in parts:
        runs = (
            zip(part.ends, part.provenances, strict=True)
            if isinstance(part, TaintedStr)
            else ((len(part), TEMPLATE),)
        )
        for end, provenance in runs:
            if provenance is last or provenance == last:
                ends[-1] = start + end
            elif end:
                ends.append(start + end)
                provenances.append(provenance)
                last = provenance
        start += len(part)
    return TaintedStr.from_runs(text, ends, provenances)


def as_tainted(text: str) -> TaintedStr:
    """Return a string as a `TaintedStr`; a plain one is the template's."""
    if not isinstance(text, str):
        # str() of another type would drop the provenance of the content in it.
        raise TypeError(f"expected str instance, {type(text).__name__} found")
    # Other tainted string classes return a `TaintedStr` from str().
    known = str(text)
    return known if isinstance(known, TaintedStr) else TaintedStr(known, TEMPLATE)


def _untraced(text: str, what: str) -> TaintedStr:
    return TaintedStr(str.__str__(text), merge_provenances((), f"{what} was called on a TaintedStr"))


def _merge_runs(ends: Iterable[int], provenances: Iterable[Provenance]) -> tuple[list[int], list[Provenance]]:
    """Drop empty runs, and merge neighbours of the same provenance."""
    kept_ends: list[int] = []
    kept: list[Provenance] = []
    previous = 0
    for end, provenance in zip(ends, provenances, strict=True):
        if end == previous:
            continue
        if kept and kept[-1] == provenance:
            kept_ends[-1] = end
        else:
            kept_ends.append(end)
            kept.append(provenance)
        previous = end
    return kept_ends, kept
