"""Text whose every character knows who wrote it.

`Tracked` is a `str`. What Python's own methods make of it carries over which characters came from where, so
that a template engine may cut, join and rewrite it without knowing. Where a method makes new characters out
of content (upper case of "ß", padding), they are content too; text that the template gives to a method (the
separator of a `join`, what `replace` puts in) stays the template's.
"""

# The methods of `Tracked` are `str`'s, and documented there.
# ruff: noqa: D102
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, SupportsIndex

from bpe_tokenizer.chat.segment import Origin

__all__ = ["TEMPLATE", "Tag", "Tracked", "concat", "merge_tags", "tracked"]


class Tag(NamedTuple):
    """What is known of a character.

    Args:
        origin: Whose content it is; None of the template's own text.
        generated: Whether the template marks it as the assistant's (`{% generation %}`).
        untracked: Why it could not be followed here, a sentence; "" if it was.
    """

    origin: Origin | None = None
    generated: bool = False
    untracked: str = ""


TEMPLATE = Tag()
# Each prefix is rewritten from its beginning: many take time that grows with the square of the text.
_MOST_PREFIXES = 200


def merge_tags(tags: Iterable[Tag], untracked: str = "") -> Tag:
    """Return the tag of text made from content of all these: what its origins have in common.

    The template's own tags count for nothing. Without any other the content is some message's.
    """
    known = {tag for tag in tags if tag.origin is not None}
    origins = {tag.origin for tag in known if tag.origin is not None}
    reason = untracked or next((tag.untracked for tag in known if tag.untracked), "")
    if not origins:
        return Tag(Origin("messages"), untracked=reason)
    if len(origins) == 1:
        return Tag(origins.pop(), untracked=reason)
    first = min(origins, key=repr)
    if any(origin.source != first.source for origin in origins):
        return Tag(Origin("messages"), untracked=reason)
    index = first.index if all(origin.index == first.index for origin in origins) else None
    return Tag(Origin(first.source, index), untracked=reason)


class Tracked(str):
    """A string with the tag of every character, as runs of characters of one tag.

    Args:
        text: The text.
        tag: The tag of all of it.

    Example:
        >>> content = Tracked("Hi ", Tag(Origin("messages", 0, "content")))
        >>> rendered = "<user>" + content.strip() + "</user>"
        >>> [(rendered[a:b] + "", tag.origin and tag.origin.field) for a, b, tag in rendered.runs()]
        [('<user>', None), ('Hi', 'content'), ('</user>', None)]
    """

    __slots__ = ("ends", "tags")
    ends: Sequence[int]
    tags: Sequence[Tag]

    def __new__(cls, text: str, tag: Tag) -> Tracked:
        """Make a string of which every character has the same tag."""
        self = super().__new__(cls, text)
        self.ends, self.tags = ((len(text),), (tag,)) if text else ((), ())
        return self

    @classmethod
    def of_runs(cls, text: str, ends: Sequence[int], tags: Sequence[Tag]) -> Tracked:
        """Make a string of runs: where each ends, and its tag."""
        self = super().__new__(cls, text)
        self.ends, self.tags = ends, tags
        return self

    def runs(self) -> Iterator[tuple[int, int, Tag]]:
        """Iterate over the runs: their characters (start, end) and their tag."""
        start = 0
        for end, tag in zip(self.ends, self.tags, strict=True):
            yield start, end, tag
            start = end

    @property
    def is_content(self) -> bool:
        """Whether any character is not the template's."""
        return any(tag.origin is not None for tag in self.tags)

    # Pieces of it.

    def cut(self, start: int, end: int) -> Tracked:
        """Return the characters from `start` to `end`, which lie inside."""
        text = str.__getitem__(self, slice(start, end))
        if len(self.tags) <= 1:
            return Tracked(text, self.tags[0]) if text else Tracked("", TEMPLATE)
        if not text:
            return Tracked("", TEMPLATE)
        first, last = bisect_right(self.ends, start), bisect_left(self.ends, end)
        ends = [min(run, end) - start for run in self.ends[first : last + 1]]
        return Tracked.of_runs(text, ends, self.tags[first : last + 1])

    def cuts(self, pieces: Iterable[str], gap: int = 0) -> list[Tracked]:
        """Return pieces as they stand one after the other, with a gap of so many characters between them."""
        cuts, start = [], 0
        for piece in pieces:
            cuts.append(self.cut(start, start + len(piece)))
            start += len(piece) + gap
        return cuts

    def found(self, pieces: Iterable[str]) -> list[Tracked]:
        """Return pieces that stand in this order with nothing but white space between them."""
        cuts, start = [], 0
        for piece in pieces:
            start = str.index(self, piece, start)
            cuts.append(self.cut(start, start + len(piece)))
            start += len(piece)
        return cuts

    def __str__(self) -> str:
        return self

    def __iter__(self) -> Iterator[Tracked]:
        for start, end, tag in self.runs():
            for character in str.__getitem__(self, slice(start, end)):
                yield Tracked(character, tag)

    def __getitem__(self, key: SupportsIndex | slice) -> Tracked:
        text = str.__getitem__(self, key)
        if not isinstance(key, slice):
            start = range(len(self))[key]
            return self.cut(start, start + 1)
        start, stop, step = key.indices(len(self))
        if step == 1:
            return self.cut(start, max(start, stop))
        if len(self.tags) == 1:
            return Tracked(text, self.tags[0])
        return tracked(concat([self.cut(at, at + 1) for at in range(start, stop, step)]))

    def lstrip(self, chars: str | None = None, /) -> Tracked:
        return self.cut(len(self) - len(str.lstrip(self, chars)), len(self))

    def rstrip(self, chars: str | None = None, /) -> Tracked:
        return self.cut(0, len(str.rstrip(self, chars)))

    def strip(self, chars: str | None = None, /) -> Tracked:
        return self.lstrip(chars).rstrip(chars)

    def removeprefix(self, prefix: str, /) -> Tracked:
        return self.cut(len(self) - len(str.removeprefix(self, prefix)), len(self))

    def removesuffix(self, suffix: str, /) -> Tracked:
        return self.cut(0, len(str.removesuffix(self, suffix)))

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[Tracked]:  # type: ignore[override]
        pieces = str.split(self, sep, maxsplit)
        return self.found(pieces) if sep is None else self.cuts(pieces, len(sep))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[Tracked]:  # type: ignore[override]
        pieces = str.rsplit(self, sep, maxsplit)
        return self.found(pieces) if sep is None else self.cuts(pieces, len(sep))

    def splitlines(self, keepends: bool = False) -> list[Tracked]:  # type: ignore[override]
        lines = self.cuts(str.splitlines(self, True))
        lengths = map(len, str.splitlines(self, keepends))
        return [line.cut(0, length) for line, length in zip(lines, lengths, strict=True)]

    def partition(self, sep: str, /) -> tuple[Tracked, Tracked, Tracked]:
        before, separator, after = self.cuts(str.partition(self, sep))
        return before, separator, after

    def rpartition(self, sep: str, /) -> tuple[Tracked, Tracked, Tracked]:
        before, separator, after = self.cuts(str.rpartition(self, sep))
        return before, separator, after

    # Put together with others.

    def __add__(self, other: str) -> Tracked:
        return tracked(concat((self, other))) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> Tracked:
        return tracked(concat((other, self))) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Tracked:
        text = str.__mul__(self, times)
        if len(self.tags) == 1:
            return Tracked(text, self.tags[0])
        return tracked(concat([self] * (len(text) // len(self) if self else 0)))

    __rmul__ = __mul__

    def __mod__(self, arguments: Any) -> Tracked:
        from bpe_tokenizer.chat.formatting import percent_format

        return tracked(percent_format(self, arguments))

    def __rmod__(self, template: Any) -> Tracked:
        from bpe_tokenizer.chat.formatting import percent_format

        return tracked(percent_format(template, self)) if isinstance(template, str) else NotImplemented

    def format(self, *arguments: Any, **named: Any) -> Tracked:
        from bpe_tokenizer.chat.formatting import brace_format

        return tracked(brace_format(self, arguments, named))

    def format_map(self, mapping: Mapping[str, Any], /) -> Tracked:  # type: ignore[override]
        from bpe_tokenizer.chat.formatting import brace_format

        return tracked(brace_format(self, (), mapping))

    def join(self, pieces: Iterable[str], /) -> Tracked:
        parts: list[str] = []
        for piece in pieces:
            if parts:
                parts.append(self)
            parts.append(piece)
        return tracked(concat(parts))

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> Tracked:
        if old:
            return tracked(new).join(self.split(old, count))
        gaps = len(self) + 1
        times = count.__index__() if 0 <= count.__index__() < gaps else gaps
        if times == 0:
            return self
        return tracked(new).join(["", *self.cut(0, times - 1), self.cut(times - 1, len(self))])

    # Rewritten from left to right.

    def rewritten(self, rewrite: Callable[..., str], *arguments: Any) -> Tracked:
        """Rewrite it by a method that looks only to the left, so that each run ends where its prefix does."""
        text = rewrite(self, *arguments)
        if len(self.tags) == 1:
            return Tracked(text, self.tags[0])
        runs = (str.__getitem__(self, slice(start, end)) for start, end, _ in self.runs())
        pieces = [rewrite(run, *arguments) for run in runs]
        if "".join(pieces) == text:
            ends = list(accumulate(map(len, pieces)))
        elif len(self.tags) <= _MOST_PREFIXES:
            # A run is written otherwise because of what stands before it.
            ends = [len(rewrite(str.__getitem__(self, slice(end)), *arguments)) for end in self.ends]
        else:
            return Tracked(text, merge_tags(self.tags, "text of very many parts was rewritten"))
        return Tracked.of_runs(text, *_merged_runs(ends, self.tags))

    def upper(self) -> Tracked:
        return self.rewritten(str.upper)

    def lower(self) -> Tracked:
        return self.rewritten(str.lower)

    def title(self) -> Tracked:
        return self.rewritten(str.title)

    def capitalize(self) -> Tracked:
        return self.rewritten(str.capitalize)

    def casefold(self) -> Tracked:
        return self.rewritten(str.casefold)

    def swapcase(self) -> Tracked:
        return self.rewritten(str.swapcase)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> Tracked:
        return self.rewritten(str.expandtabs, tabsize)

    def translate(self, table: Any, /) -> Tracked:
        return self.rewritten(str.translate, table)

    # Padded.

    def _padded(self, text: str, before: int, fill: str) -> Tracked:
        """Return `text`, which is this with so many characters before it and others behind."""
        filling = [tag for tag in tracked(fill).tags if tag != TEMPLATE]
        first, last = (filling or [*self.tags, TEMPLATE])[0], (filling or [TEMPLATE, *self.tags])[-1]
        after = before + len(self)
        return tracked(concat((Tracked(text[:before], first), self, Tracked(text[after:], last))))

    def ljust(self, width: SupportsIndex, fillchar: str = " ", /) -> Tracked:
        return self._padded(str.ljust(self, width, fillchar), 0, fillchar)

    def rjust(self, width: SupportsIndex, fillchar: str = " ", /) -> Tracked:
        text = str.rjust(self, width, fillchar)
        return self._padded(text, len(text) - len(self), fillchar)

    def center(self, width: SupportsIndex, fillchar: str = " ", /) -> Tracked:
        text = str.center(self, width, fillchar)
        padding = len(text) - len(self)
        # The odd one stands before, if the width is odd as well.
        return self._padded(text, padding // 2 + (padding & width.__index__() & 1), fillchar)

    def zfill(self, width: SupportsIndex, /) -> Tracked:
        sign = 1 if self.startswith(("+", "-")) else 0
        text = str.zfill(self, width)
        digits = self.cut(sign, len(self))
        zeros = len(text) - len(self)
        return self.cut(0, sign) + digits._padded(text[sign:], zeros, "")


def concat(parts: Iterable[str]) -> str:
    """Join strings, some of them tracked; a plain string is the template's.

    Returns:
        A `Tracked` if any of them is, else a plain string.
    """
    parts = list(parts)
    text = "".join(parts)
    # Other classes of strings say by str() what they know.
    parts = [part if type(part) is str else str(part) for part in parts]
    if not any(isinstance(part, Tracked) for part in parts):
        return text
    ends: list[int] = []
    tags: list[Tag] = []
    last: Tag | None = None
    start = 0
    for part in parts:
        runs = (
            zip(part.ends, part.tags, strict=True) if isinstance(part, Tracked) else ((len(part), TEMPLATE),)
        )
        for end, tag in runs:
            if tag is last or tag == last:
                ends[-1] = start + end
            elif end:
                ends.append(start + end)
                tags.append(tag)
                last = tag
        start += len(part)
    return Tracked.of_runs(text, ends, tags)


def tracked(text: str) -> Tracked:
    """Return a string as a tracked one; a plain one is the template's."""
    if not isinstance(text, str):
        # Python would make a string of it that has forgotten what is in it.
        raise TypeError(f"expected str instance, {type(text).__name__} found")
    # Other classes of strings say by str() what they know.
    known = str(text)
    return known if isinstance(known, Tracked) else Tracked(known, TEMPLATE)


def _merged_runs(ends: Iterable[int], tags: Iterable[Tag]) -> tuple[list[int], list[Tag]]:
    """Return the runs without empty ones, and neighbours of the same tag as one."""
    kept_ends: list[int] = []
    kept_tags: list[Tag] = []
    previous = 0
    for end, tag in zip(ends, tags, strict=True):
        if end == previous:
            continue
        if kept_tags and kept_tags[-1] == tag:
            kept_ends[-1] = end
        else:
            kept_ends.append(end)
            kept_tags.append(tag)
        previous = end
    return kept_ends, kept_tags
