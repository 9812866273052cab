"""What stands of each message in a rendered conversation."""

from __future__ import annotations

from dataclasses import dataclass, field

from bpe_tokenizer.chat.segment import Rendered, Segment

__all__ = ["Part", "is_markup", "parts_of"]

# What says who speaks, and is no part of what is said.
_HEADER_FIELDS = frozenset(("role", "name"))


@dataclass
class Part:
    """What stands of a message in one place.

    Args:
        index: Which message.
        pieces: Characters (start, end) of its contents.
        fields: The fields that they are of.
        before: The markup before the first piece, from the end of the content before it.
        gaps: The markup between the pieces.
        after: The markup behind the last piece, up to the next content.
    """

    index: int
    pieces: list[tuple[int, int]]
    fields: set[str]
    before: str
    gaps: list[str] = field(default_factory=list)
    after: str = ""

    @property
    def start(self) -> int:
        """The first character."""
        return self.pieces[0][0]

    @property
    def end(self) -> int:
        """Behind the last character."""
        return self.pieces[-1][1]


def parts_of(rendered: Rendered) -> list[Part]:
    """Return what stands of the messages, in the order of the text; contents of others only part them."""
    parts: list[Part] = []
    text = rendered.text
    current: Part | None = None
    position = markup_start = 0
    for segment in rendered.segments:
        start, position = position, position + len(segment.text)
        origin = segment.origin
        if origin is None or is_markup(segment):
            continue
        markup, markup_start = text[markup_start:start], position
        if origin.source != "messages" or origin.index is None:
            _close(current, markup)
            current = None
        elif current is not None and origin.index == current.index:
            current.gaps.append(markup)
            current.pieces.append((start, position))
            current.fields.add(origin.field)
        else:
            _close(current, markup)
            current = Part(origin.index, [(start, position)], {origin.field}, markup)
            parts.append(current)
    _close(current, text[markup_start:])
    return parts


def _close(part: Part | None, markup: str) -> None:
    if part is not None:
        part.after = markup


def is_markup(segment: Segment) -> bool:
    """Whether a segment is around what is said: markup, or who says it."""
    return segment.origin is None or segment.origin.field in _HEADER_FIELDS
