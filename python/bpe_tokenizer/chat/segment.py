"""What a conversation becomes before it becomes ids: text that knows who wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Origin", "Rendered", "Segment"]


class Origin(NamedTuple):
    """Where content came from.

    Args:
        source: What was handed in: `"messages"`, `"tools"`, `"documents"`, or the name of a variable.
        index: Which message, tool or document, from 0 on; None of a variable, and where it is not known.
        field: The key of a message that holds it, such as `"content"` or `"tool_calls"`; "" of all else.
    """

    source: str
    index: int | None = None  # type: ignore[assignment]  # hides tuple.index, which nobody wants of an origin
    field: str = ""


class Segment(NamedTuple):
    """A stretch of a rendered conversation.

    Args:
        text: Its text; never empty.
        origin: None of markup, which the template wrote: only there special tokens are recognised. Otherwise
            whose content it is, which is never anything but text.
    """

    text: str
    origin: Origin | None = None

    @property
    def trusted(self) -> bool:
        """Whether the template wrote it."""
        return self.origin is None


@dataclass(frozen=True)
class Rendered:
    """A conversation as a template renders it.

    Args:
        segments: In order; neighbours differ in their origin.
        generated: Characters (start, end) of the text that the template itself marks as the assistant's
            (`{% generation %}`); None if it marks nothing.
        untracked: What could not be followed while rendering, a sentence each: content that a template
            did something unusual with, and which is untrusted as a whole. Empty if all was followed.
    """

    segments: tuple[Segment, ...]
    generated: tuple[tuple[int, int], ...] | None = None
    untracked: tuple[str, ...] = ()

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
