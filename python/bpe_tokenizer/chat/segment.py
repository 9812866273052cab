"""Segments of a rendered conversation: text with its provenance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from bpe_tokenizer.errors import shorten

__all__ = ["Origin", "Rendered", "Segment"]


class Origin(NamedTuple):
    """The input that content comes from.

    Args:
        source: The argument: `"messages"`, `"tools"`, `"documents"`, or the name of a variable.
        index: The index of the message, tool or document; None for a variable, and if unknown.
        field: The message's key, such as `"content"` or `"tool_calls"`; "" for other inputs.
    """

    source: str
    index: int | None = None  # type: ignore[assignment]  # hides tuple.index, which an origin does not need
    field: str = ""


class Segment(NamedTuple):
    """A stretch of a rendered conversation.

    Args:
        text: The text, never empty.
        origin: The origin of content, which always stays text; None for markup, the template's own text, in
            which special tokens are recognised.
    """

    text: str
    origin: Origin | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(text={shorten(self.text, 160)}, origin={self.origin})"

    @property
    def trusted(self) -> bool:
        """Whether it is the template's own text."""
        return self.origin is None


@dataclass(frozen=True)
class Rendered:
    """A conversation as a template renders it.

    Args:
        segments: The segments in order. Neighbours differ in their origin.
        generated: Spans (start, end) of the characters that the template marks as the assistant's with
            `{% generation %}`; None if it does not use this block.
        untracked: The operations on content that could not be tracked, a sentence each. Their results are
            content as a whole.
        written: Spans (start, end, messages) of the characters that the template wrote in a loop over
            messages: the indices of the messages that the loop was at. None if the loops were not traced.
    """

    segments: tuple[Segment, ...]
    generated: tuple[tuple[int, int], ...] | None = None
    untracked: tuple[str, ...] = ()
    written: tuple[tuple[int, int, tuple[int, ...]], ...] | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(segments={len(self.segments)}, text={shorten(self.text, 160)})"

    @property
    def text(self) -> str:
        """The conversation as one string."""
        return "".join(segment.text for segment in self.segments)

    def well_formed(self) -> str:
        """Return the string as it is encoded: pairs of surrogates joined, lone ones as U+FFFD."""
        text = self.text
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text
