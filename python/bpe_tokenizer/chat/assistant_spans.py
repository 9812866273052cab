"""Finds the characters of a rendered conversation that are the assistant's, for loss masks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from bpe_tokenizer.chat.message_regions import MessageRegion, is_markup_or_header, message_regions
from bpe_tokenizer.chat.messages import Messages
from bpe_tokenizer.chat.segment import Rendered
from bpe_tokenizer.chat.traced_turns import TracedTurns, undecidable
from bpe_tokenizer.errors import OptionError, TokenizerError

__all__ = ["assistant_spans"]

Render = Callable[[Messages, bool], Rendered]


def assistant_spans(
    rendered: Rendered, messages: Messages, render: Render, special: Collection[str]
) -> list[tuple[int, int]]:
    """Return the characters that the model must produce: contents, the markup in turns, end tokens.

    A template with `{% generation %}` blocks marks them itself. `TracedTurns` finds the turns that a Jinja
    template writes in a loop over the messages. For any other turn, and for templates that are not Jinja:

    - A turn starts after the generation prompt: the model also writes the markup that the prompt lacks, such
      as `<tool_call>`. White space before a plain content is not the model's. Neither is any markup before it
      if no prompt can be rendered.
    - A turn ends with the end marker: the text after its contents that is the same if the conversation goes
      on, ends, or has a generation prompt, up to its last special token. If these have no common special
      token, the turn ends with the special token that follows in this conversation.

    Args:
        rendered: The conversation.
        messages: Its messages.
        render: Renders messages, with or without the generation prompt.
        special: The texts of the special tokens.

    Returns:
        Spans (start, end) in characters, in order.

    Raises:
        OptionError: The author of a text is unknown, the template does not tell what the model writes, or the
            assistant has messages but no text.
    """
    assistants = [number for number, message in enumerate(messages) if message["role"] == "assistant"]
    ranges = list(rendered.generated) if rendered.generated is not None else None
    if ranges is None:
        _reject_unknown_authors(rendered, messages)
        ranges, traced = (
            ([], set())
            if rendered.written is None
            else TracedTurns(rendered, messages, render, special).ranges()
        )
        untraced = [number for number in assistants if number not in traced]
        ranges += AssistantSpans(rendered, messages, render, special).ranges(untraced)
        ranges.sort()
    ranges = [(start, end) for start, end in ranges if start < end]
    if assistants and not ranges:
        raise OptionError(
            f"the template writes nothing of the assistant's {len(assistants)} messages, so the mask would "
            "be all 0"
        )
    return ranges


def _reject_unknown_authors(rendered: Rendered, messages: Messages) -> None:
    origins = [(text, origin) for text, origin in rendered.segments if origin and origin.source == "messages"]
    hidden = next((text for text, origin in origins if origin.index is None), None)
    if hidden is None:
        return
    found = {origin.index for _, origin in origins}
    lost = [str(number) for number in range(len(messages)) if number not in found]
    where = f"message {' or '.join(lost[:4])}: " if lost else ""
    reasons = "; ".join(rendered.untracked)[:100] or "it belongs to no message"
    raise OptionError(
        f"{where}the template hides the author of the text {hidden[:40]!r} ({reasons}); mark the assistant's "
        "text in the template with {% generation %} … {% endgeneration %}"
    )


@dataclass(frozen=True)
class _TurnEnd:
    """Where a turn ends.

    Args:
        pieces: The number of pieces of contents that belong to it.
        tail: The number of characters of the markup after these pieces that belong to it.
    """

    pieces: int
    tail: int


class AssistantSpans:
    """Finds the assistant's turns, with as few extra renderings as possible."""

    def __init__(
        self, rendered: Rendered, messages: Messages, render: Render, special: Collection[str]
    ) -> None:
        self._rendered = rendered
        self._messages = messages
        self._render = render
        self._special = special
        # Turns with the same markup start and end alike.
        self._leads: dict[tuple[object, ...], int] = {}
        self._turn_ends: dict[tuple[object, ...], _TurnEnd] = {}

    def ranges(self, assistants: list[int]) -> list[tuple[int, int]]:
        places: dict[int, list[MessageRegion]] = {index: [] for index in assistants}
        for region in message_regions(self._rendered):
            if region.index in places:
                places[region.index].append(region)
        ranges = []
        for index, regions in places.items():
            ranges += [self._turn(region) for region in self._own_regions(index, regions)] or [
                self._empty_turn(index)
            ]
        return sorted(ranges)

    def _own_regions(self, index: int, regions: list[MessageRegion]) -> list[MessageRegion]:
        """Return the regions of a message's own turn.

        A template can repeat a part of a message later, as gpt-oss's repeats the names of called tools.
        """
        alone = self._try(index + 1, False) if len(regions) > 1 else None
        if alone is None:
            return regions
        return regions[: max(1, sum(region.index == index for region in message_regions(alone)))]

    def _turn(self, region: MessageRegion) -> tuple[int, int]:
        key = (region.before, *region.gaps, region.after, frozenset(region.fields))
        if key not in self._turn_ends:
            self._turn_ends[key] = self._turn_end(region)
        end = self._turn_ends[key]
        return region.start - self._lead(region), region.pieces[end.pieces - 1][1] + end.tail

    def _turn_end(self, region: MessageRegion) -> _TurnEnd:
        tails = self._continuations(region.index)
        # Start at the last piece: a text that the template repeats after the turn is not a piece of it.
        for place, markup in reversed(list(enumerate([*region.gaps, region.after]))):
            tail = _common_end_marker(markup, tails, self._special)
            if tail:
                return _TurnEnd(place + 1, tail)
        return _TurnEnd(len(region.pieces), _local_end_marker(region.after, tails, self._special))

    def _continuations(self, index: int) -> list[str]:
        """Return the text after a message if it is the last one, without and with a generation prompt."""
        others = [self._try(index + 1, add_generation_prompt) for add_generation_prompt in (False, True)]
        tails = [_text_after(other, index) for other in others if other is not None]
        return [tail for tail in tails if tail is not None]

    def _lead(self, region: MessageRegion) -> int:
        """Return the length of the markup before the contents that the model writes."""
        is_plain = region.fields == {"content"} and len(region.pieces) == 1
        previous = self._messages[region.index - 1]["role"] if region.index else None
        key = (previous, region.before, is_plain)
        if key not in self._leads:
            self._leads[key] = self._find_lead(region.index, region.before, is_plain)
        return self._leads[key]

    def _find_lead(self, index: int, before: str, is_plain: bool) -> int:
        # The first message has no prompt, and a template can reject one elsewhere.
        prompted = self._try(index, True)
        prompt = "" if prompted is None else _final_markup(prompted)
        lead = before[len(prompt) :] if before.startswith(prompt) else ""
        if not lead or (is_plain and lead.isspace()):
            return 0
        unprompted = self._try(index, False)
        if prompted is not None and (unprompted is None or unprompted.text != prompted.text):
            return len(lead)
        if is_plain:
            return 0
        raise undecidable(index, "which markup in front of it the model is given")

    def _empty_turn(self, index: int) -> tuple[int, int]:
        """Return the turn of a message without text: its end marker."""
        prompted, alone = self._try(index, True), self._try(index + 1, False)
        text = self._rendered.text
        if prompted is None or alone is None or not text.startswith(prompted.text):
            return 0, 0
        start = len(prompted.text)
        prompted_after = self._try(index + 1, True)
        tails = [
            other.text[start:]
            for other in (alone, prompted_after)
            if other is not None and other.text.startswith(prompted.text)
        ]
        markup = self._markup_from(start)
        marker = _common_end_marker(markup, tails, self._special) or _local_end_marker(
            markup, tails, self._special
        )
        return start, start + marker

    def _markup_from(self, start: int) -> str:
        position = 0
        for segment in self._rendered.segments:
            if position >= start and not is_markup_or_header(segment):
                return self._rendered.text[start:position]
            position += len(segment.text)
        return self._rendered.text[start:]

    def _try(self, count: int, add_generation_prompt: bool) -> Rendered | None:
        """Render the first messages; None if the template rejects them."""
        try:
            return self._render(self._messages[:count], add_generation_prompt) if count else None
        except TokenizerError:
            return None


def _common_end_marker(after: str, tails: list[str], special: Collection[str]) -> int:
    """Return the length of the end marker that `after` and all of `tails` start with; 0 if none."""
    agreed = _common_prefix([after, *tails]) if tails else ""
    return max((agreed.rfind(text) + len(text) for text in special if text in agreed), default=0)


def _local_end_marker(after: str, tails: list[str], special: Collection[str]) -> int:
    """Return the length of the end marker in `after` if the continuations have no common one.

    A template can end the last message differently. Then the marker is the first special token in `after`.
    Without special tokens, it is the text after the message if that is the last one.
    """
    if tails and not any(text in tails[0] for text in special):
        closing = tails[0].rstrip()
        return len(closing) if after.startswith(closing) else 0
    found = [(after.find(text), -len(text)) for text in special if text in after]
    return min(found)[0] - min(found)[1] if found else 0


def _common_prefix(texts: list[str]) -> str:
    first, last = min(texts), max(texts)
    length = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]


def _text_after(rendered: Rendered, index: int) -> str | None:
    """Return the text after the last content of a message."""
    ends = [region.end for region in message_regions(rendered) if region.index == index]
    return rendered.text[ends[-1] :] if ends else None


def _final_markup(rendered: Rendered) -> str:
    """Return the markup after the last content."""
    length = 0
    for segment in reversed(rendered.segments):
        if not is_markup_or_header(segment):
            break
        length += len(segment.text)
    return rendered.text[len(rendered.text) - length :]
