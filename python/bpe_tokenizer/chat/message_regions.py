"""Locates the contents of each message in a rendered conversation."""

from __future__ import annotations

from dataclasses import dataclass, field

from bpe_tokenizer.chat.segment import Rendered, Segment

__all__ = ["MessageRegion", "is_markup_or_header", "message_regions"]

# These fields name the speaker, so they are not part of the contents.
_HEADER_FIELDS = frozenset(("role", "name"))


@dataclass
class MessageRegion:
    """A place in the text with contents of one message.

    Args:
        index: The index of the message.
        pieces: Spans (start, end) of its contents, in characters.
        fields: The message's fields that the contents come from.
        before: The markup before the first piece, up to the previous content.
        gaps: The markup between the pieces.
        after: The markup after the last piece, up to the next content.
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
        """The end of the last character."""
        return self.pieces[-1][1]


def message_regions(rendered: Rendered) -> list[MessageRegion]:
    """Return the regions of all messages in the order of the text. Other contents only separate them."""
    regions: list[MessageRegion] = []
    text = rendered.text
    current: MessageRegion | None = None
    position = markup_start = 0
    for segment in rendered.segments:
        start, position = position, position + len(segment.text)
        origin = segment.origin
        if origin is None or is_markup_or_header(segment):
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
            current = MessageRegion(origin.index, [(start, position)], {origin.field}, markup)
            regions.append(current)
    _close(current, text[markup_start:])
    return regions


def _close(region: MessageRegion | None, markup: str) -> None:
    if region is not None:
        region.after = markup


def is_markup_or_header(segment: Segment) -> bool:
    """Whether a segment is markup, or names the speaker."""
    return segment.origin is None or segment.origin.field in _HEADER_FIELDS
