"""Which characters of a rendered conversation are the assistant's."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from bpe_tokenizer.chat.messages import Messages
from bpe_tokenizer.chat.parts import Part, is_markup, parts_of
from bpe_tokenizer.chat.segment import Rendered
from bpe_tokenizer.errors import OptionError, TokenizerError

__all__ = ["assistant_ranges"]

Render = Callable[[Messages, bool], Rendered]


def assistant_ranges(
    rendered: Rendered, messages: Messages, render: Render, special: Collection[str]
) -> list[tuple[int, int]]:
    """Return the characters of the assistant's turns: their contents and their end markers.

    A template with `{% generation %}` says it itself. Of the others, a turn begins with the first character
    of the message's contents; or, if it consists of more than a plain content, right behind what the template
    asks for a reply with, for then the markup before its contents is the model's too (`<tool_call>`). It ends
    with the end marker: what follows its contents whether the conversation goes on, is over or asks for a
    reply, up to the last special token there. If nothing does, the special token that follows here.

    Args:
        rendered: The conversation.
        messages: Its messages.
        render: Renders messages, with or without what asks for a reply.
        special: The texts of the special tokens.

    Returns:
        Characters (start, end) in the order of the text.

    Raises:
        OptionError: It cannot be known whose some text is, or nothing is the assistant's although it has
            messages.
    """
    assistants = [number for number, message in enumerate(messages) if message["role"] == "assistant"]
    ranges = list(rendered.generated) if rendered.generated is not None else None
    if ranges is None:
        _refuse_unknown_authors(rendered)
        ranges = _Turns(rendered, messages, render, special).ranges(assistants)
    ranges = [(start, end) for start, end in ranges if start < end]
    if assistants and not ranges:
        raise OptionError(
            f"the assistant has {len(assistants)} messages, and the template writes nothing of them: "
            "there is nothing to mask"
        )
    return ranges


def _refuse_unknown_authors(rendered: Rendered) -> None:
    for segment in rendered.segments:
        if (
            segment.origin is not None
            and segment.origin.source == "messages"
            and segment.origin.index is None
        ):
            reasons = "; ".join(rendered.untracked)
            raise OptionError(
                f"the template does something that hides whose text {segment.text[:40]!r} is ({reasons}); "
                "mark the assistant's text in the template with {% generation %}"
            )


@dataclass(frozen=True)
class _Shape:
    """How a turn lies around the contents of its message.

    Args:
        lead: Characters of the markup before them that belong to it.
        pieces: How many pieces of contents do.
        tail: Characters of the markup behind these that do.
    """

    lead: int
    pieces: int
    tail: int


class _Turns:
    """Finds the assistant's turns, with as few further renderings as possible."""

    def __init__(
        self, rendered: Rendered, messages: Messages, render: Render, special: Collection[str]
    ) -> None:
        self._rendered = rendered
        self._messages = messages
        self._render = render
        self._special = special
        # Where the markup is the same, the turn is.
        self._shapes: dict[tuple[object, ...], _Shape] = {}

    def ranges(self, assistants: list[int]) -> list[tuple[int, int]]:
        places: dict[int, list[Part]] = {index: [] for index in assistants}
        for part in parts_of(self._rendered):
            if part.index in places:
                places[part.index].append(part)
        ranges = []
        for index, parts in places.items():
            ranges += [self._range(part) for part in self._own(index, parts)] or [self._empty(index)]
        return sorted(ranges)

    def _own(self, index: int, parts: list[Part]) -> list[Part]:
        """Return the parts that are a message's own.

        A template may repeat something of it later, as gpt-oss's does with the names of called tools.
        """
        alone = self._try(index + 1, False) if len(parts) > 1 else None
        if alone is None:
            return parts
        return parts[: max(1, sum(part.index == index for part in parts_of(alone)))]

    def _range(self, part: Part) -> tuple[int, int]:
        key = (part.before, *part.gaps, part.after, frozenset(part.fields))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._shape(part)
        return part.start - shape.lead, part.pieces[shape.pieces - 1][1] + shape.tail

    def _shape(self, part: Part) -> _Shape:
        tails = self._tails(part.index)
        lead = self._lead(part)
        # From the last piece on; but what a template repeats right behind the turn is no piece of it.
        for place, markup in reversed(list(enumerate([*part.gaps, part.after]))):
            tail = _agreed_marker(markup, tails, self._special)
            if tail:
                return _Shape(lead, place + 1, tail)
        return _Shape(lead, len(part.pieces), _other_marker(part.after, tails, self._special))

    def _tails(self, index: int) -> list[str]:
        """Return what follows a message where it is the last one, and where a reply to it is asked for."""
        others = [self._try(index + 1, asks) for asks in (False, True)]
        tails = [_text_behind(other, index) for other in others if other is not None]
        return [tail for tail in tails if tail is not None]

    def _lead(self, part: Part) -> int:
        if part.fields == {"content"} and len(part.pieces) == 1:
            return 0
        asking = self._try(part.index, True)
        prompt = _closing_markup(asking) if asking else None
        return len(part.before) - len(prompt) if prompt is not None and part.before.startswith(prompt) else 0

    def _empty(self, index: int) -> tuple[int, int]:
        """Return the turn of a message without text, which is its end marker."""
        asking, alone = self._try(index, True), self._try(index + 1, False)
        text = self._rendered.text
        if asking is None or alone is None or not text.startswith(asking.text):
            return 0, 0
        start = len(asking.text)
        asking_again = self._try(index + 1, True)
        tails = [
            other.text[start:]
            for other in (alone, asking_again)
            if other is not None and other.text.startswith(asking.text)
        ]
        markup = self._markup_from(start)
        marker = _agreed_marker(markup, tails, self._special) or _other_marker(markup, tails, self._special)
        return start, start + marker

    def _markup_from(self, start: int) -> str:
        position = 0
        for segment in self._rendered.segments:
            if position >= start and not is_markup(segment):
                return self._rendered.text[start:position]
            position += len(segment.text)
        return self._rendered.text[start:]

    def _try(self, count: int, asks: bool) -> Rendered | None:
        """Render the first messages; None where the template takes no such conversation."""
        try:
            return self._render(self._messages[:count], asks) if count else None
        except TokenizerError:
            return None


def _agreed_marker(after: str, tails: list[str], special: Collection[str]) -> int:
    """Return how long the end marker in `after` is that `tails` begin with too; 0 if they don't."""
    agreed = _common_beginning([after, *tails]) if tails else ""
    return max((agreed.rfind(text) + len(text) for text in special if text in agreed), default=0)


def _other_marker(after: str, tails: list[str], special: Collection[str]) -> int:
    """Return how long the end marker in `after` is where there is none that stands everywhere.

    A template may end a message differently where it is the last one: then it is what stands here. Without
    special tokens, it is the text that follows where the message is the last one.
    """
    if tails and not any(text in tails[0] for text in special):
        closing = tails[0].rstrip()
        return len(closing) if after.startswith(closing) else 0
    found = [(after.find(text), -len(text)) for text in special if text in after]
    return min(found)[0] - min(found)[1] if found else 0


def _common_beginning(texts: list[str]) -> str:
    first, last = min(texts), max(texts)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]


def _text_behind(rendered: Rendered, index: int) -> str | None:
    """Return the text behind the last content of a message."""
    ends = [part.end for part in parts_of(rendered) if part.index == index]
    return rendered.text[ends[-1] :] if ends else None


def _closing_markup(rendered: Rendered) -> str:
    """Return the markup behind the last content."""
    length = 0
    for segment in reversed(rendered.segments):
        if not is_markup(segment):
            break
        length += len(segment.text)
    return rendered.text[len(rendered.text) - length :]
