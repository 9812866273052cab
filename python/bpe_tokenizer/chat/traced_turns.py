"""Finds the assistant's turns in a conversation whose template was traced: see `jinja.loop_tracing`.

Two facts decide which characters the model must produce:

- *Provenance*: the contents of the assistant's messages, and the markup that the template wrote while its
  loop was at one of them.
- *Prefixes*: the generation prompt after the messages before a turn. The part of it that a turn begins with
  is given to the model; the rest of the turn is the model's.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from bpe_tokenizer.chat.message_regions import is_markup_or_header
from bpe_tokenizer.chat.messages import Messages
from bpe_tokenizer.chat.segment import Rendered
from bpe_tokenizer.errors import OptionError, TokenizerError

__all__ = ["TracedTurns", "undecidable"]

Render = Callable[[Messages, bool], Rendered]

# A reply without reasoning or calls, to compare with.
_PLAIN = {"role": "assistant", "content": "x"}
# What looks like a control token, for vocabularies that lack the template's.
_TAG = re.compile(r"<[^<>\s]{1,48}>|\[/?[A-Z_]{2,32}\]")

# What shows that markup is a header, not a line end.
_WORD = re.compile(r"[^\W\d_]{3}")


class _Piece(NamedTuple):
    """A stretch of text with one author.

    Args:
        start: The first character.
        end: The end.
        turn: The message of the assistant that it belongs to; None for other people's text.
        field: The field of the message that it comes from; "" for markup.
        known: Whether the author of markup is known.
        message: The message of the assistant that a content comes from.
        writer: The message that the template was at; None if unknown.
    """

    start: int
    end: int
    turn: int | None
    field: str = ""
    known: bool = True
    message: int | None = None
    writer: int | None = None


@dataclass
class _Run:
    """A part of a turn without other people's text in it.

    Args:
        start: The first character.
        end: The end.
        outside: Whether it begins with markup that was written outside the loops.
        contents: The spans of the contents in it.
        fields: The fields of messages that they come from.
    """

    start: int
    end: int
    outside: bool = False
    contents: list[tuple[int, int]] = field(default_factory=list)
    fields: set[str] = field(default_factory=set)

    @property
    def opening(self) -> int:
        """The end of the markup at its start."""
        return self.contents[0][0] if self.contents else self.end

    @property
    def closing(self) -> int:
        """The start of the markup at its end."""
        return self.contents[-1][1] if self.contents else self.start


class TracedTurns:
    """Finds the assistant's turns in a traced conversation.

    Args:
        rendered: The conversation, with `written`.
        messages: Its messages.
        render: Renders messages, with or without the generation prompt.
        special: The texts of the special tokens.
    """

    def __init__(
        self, rendered: Rendered, messages: Messages, render: Render, special: Collection[str]
    ) -> None:
        self._text = rendered.text
        self._messages = messages
        self._render = render
        self._boundaries = _Boundaries(special)
        self._pieces = _pieces(rendered, messages)
        self._contents = [place for place in _origins(rendered) if place[2] is not None]
        # The places where markup can start.
        self._ends = [0, *(end for _, end, _ in self._contents)]
        self._headers: dict[tuple[object, ...], int] = {}
        self._late_ends: dict[tuple[object, ...], int] = {}

    def ranges(self) -> tuple[list[tuple[int, int]], set[int]]:
        """Return the spans of the turns that the trace explains, and the assistant's messages in them."""
        turns = _runs(self._pieces, self._prompt_start())
        found = {
            *turns,
            *(piece.message for piece in self._pieces if piece.message is not None and piece.turn in turns),
        }
        ranges = [self._turn(turn, runs) for turn, runs in turns.items()]
        for (last, before), (first, after) in pairwise(zip(turns.values(), ranges, strict=True)):
            start, (begin, end) = before[-1][1], after[0]
            unended = start == last[-1].closing and last[-1].end == first[0].start
            if unended and self._text[start:begin].isspace():
                # A template can join the messages of one speaker: the space between them is the model's.
                after[0] = (start, end)
        return list(chain.from_iterable(ranges)), found

    def _prompt_start(self) -> int:
        """Return where the generation prompt starts at the end of the text, if it has one."""
        without = self._try(self._messages)
        return len(without.text) if without and self._text.startswith(without.text) else len(self._text)

    def _turn(self, turn: int, runs: list[_Run]) -> list[tuple[int, int]]:
        first = runs[0]
        header = self._header(turn, first)
        start = first.start + header
        if first.fields == {"content"} and self._text[start : first.opening].isspace():
            start = first.opening
        given = self._text[first.start : first.start + header]
        ranges = []
        for run in runs:
            if run is not first:
                start = run.start
                if given.strip() and self._text.startswith(given, start):
                    start += len(given)
            closing = max(start, run.closing)
            end = closing + len(self._own_closing(turn, self._text[closing : run.end], given))
            if run is runs[-1]:
                end = self._late_end(turn, run, end)
            ranges.append((start, end))
        return ranges

    def _own_closing(self, turn: int, closing: str, given: str) -> str:
        """Return the markup at the end of a run, without a generation prompt or a user's header in it."""
        prompt = given.strip()
        if turn == len(self._messages) - 1 and prompt and prompt in closing:
            closing = closing[: closing.rindex(prompt)]
        closing = closing.rstrip()
        common = self._boundaries.common_suffix(closing, self._user_header)
        is_header = _WORD.search(closing[len(closing) - common :]) is not None
        return closing[: len(closing) - common].rstrip() if is_header else closing

    @cached_property
    def _user_header(self) -> str:
        """The markup before the first message of a user."""
        for begin, _, origin in self._contents:
            index = origin.index if origin.source == "messages" else None
            if index is not None and self._messages[index]["role"] == "user":
                return self._markup_before(begin).rstrip()
        return ""

    # The start of a turn.

    def _header(self, turn: int, run: _Run) -> int:
        """Return the length of the header: the part of the markup at the start that the model is given."""
        opening = self._text[run.start : run.opening]
        history = self._markup_before(run.start)
        previous = self._messages[turn - 1]["role"] if turn else None
        key = (previous, history, opening, frozenset(run.fields))
        if key not in self._headers:
            self._headers[key] = self._find_header(turn, run, opening, history)
        return self._headers[key]

    def _find_header(self, turn: int, run: _Run, opening: str, history: str) -> int:
        prompt, aligned = self._prompt(turn, run.start, history)
        length = self._common_anywhere(opening, prompt)
        if opening[:length].strip() or not opening.strip() or (aligned and prompt.strip()):
            return length
        if aligned and self._first_prompt.strip():
            # The template writes no generation prompt here, for example after the result of a tool.
            return self._common_anywhere(opening, self._first_prompt)
        plain = self._plain_opening(turn)
        if plain is not None:
            return self._boundaries.common_prefix(opening, plain)
        if run.fields == {"content"}:
            return len(opening)
        if prompt.strip():
            return length
        raise undecidable(turn, "which markup in front of it the model is given")

    def _common_anywhere(self, opening: str, prompt: str) -> int:
        """Return how much of the start of a turn is in a prompt, which can begin with other text."""
        places = [0, *(match.start() for match in self._boundaries.tags(prompt))]
        return max(self._boundaries.common_prefix(opening, prompt[place:]) for place in places)

    @cached_property
    def _first_prompt(self) -> str:
        """The generation prompt after the first message of a user; "" if the template writes none."""
        roles = [message["role"] for message in self._messages]
        first = self._messages[: roles.index("user") + 1] if "user" in roles else []
        prompted, plain = self._try(first, True), self._try(first)
        if prompted is None or plain is None or not prompted.text.startswith(plain.text):
            return ""
        return prompted.text[len(plain.text) :]

    def _prompt(self, turn: int, start: int, history: str) -> tuple[str, bool]:
        """Return the text that follows the messages before a turn when a reply is wanted.

        Returns:
            The text, and whether it begins where the turn does.
        """
        prompted = self._try(self._messages[:turn], True)
        if prompted is None:
            return "", False
        text = prompted.text
        if text.startswith(self._text[:start]):
            return text[start:], True
        markup = text[_markup_start(prompted) :]
        aligned = markup.startswith(history)
        return markup[len(history) if aligned else 0 :], aligned

    def _plain_opening(self, turn: int) -> str | None:
        """Return the markup before the content of a plain reply in place of a turn."""
        others = [*self._messages[:turn], _PLAIN]
        plain = self._try(others)
        if plain is None:
            return None
        runs = _runs(_pieces(plain, others), len(plain.text)).get(turn)
        return plain.text[runs[0].start : runs[0].opening] if runs and runs[0].contents else None

    def _markup_before(self, start: int) -> str:
        return self._text[self._ends[bisect_right(self._ends, start) - 1] : start]

    # The end of a turn.

    def _late_end(self, turn: int, run: _Run, end: int) -> int:
        """Return the end of a turn whose end token is written with the next message, or after all."""
        after, following = self._following(run.end)
        if not self._boundaries.starts_with_tag(after):
            return end
        key = (self._text[run.closing : run.end], after, following is None, frozenset(run.fields))
        if key not in self._late_ends:
            self._late_ends[key] = self._find_late_end(turn, run, after, following)
        length = self._late_ends[key]
        return run.end + length if length else end

    def _following(self, start: int) -> tuple[str, int | None]:
        """Return the markup after a turn, and the message that it belongs to; None at the end of the text."""
        first = bisect_left(self._pieces, start, key=itemgetter(0))
        place = _markup_end(self._pieces, first)
        writer = self._pieces[first].writer if place > first else None
        if writer is None and place < len(self._pieces):
            return "", None
        return self._text[start : self._pieces[place - 1].end], writer

    def _find_late_end(self, turn: int, run: _Run, after: str, following: int | None) -> int:
        if self._ends_itself(turn, run):
            return 0
        if following is None:
            # At the end of the text: the end token, then the generation prompt if it is written.
            first = self._lead([_PLAIN])
            lead = first if first is not None else self._text[run.start : run.opening]
            header = {match.group() for match in self._boundaries.tags(lead)}
            tags = self._boundaries.tags(after)
            prompt = next((match.start() for match in tags if match.group() in header), None)
            return len(after[:prompt].rstrip())
        message = self._messages[following]
        leads = (self._lead(others) for others in ([message], [*self._messages[:turn], message]))
        known = next((lead for lead in leads if lead is not None), None)
        if known is None:
            raise undecidable(turn, "whether the markup after it ends it or starts the next message")
        common = self._boundaries.common_suffix(after, known)
        return len(after[: len(after) - common].rstrip())

    def _ends_itself(self, turn: int, run: _Run) -> bool:
        """Whether a plain reply in place of a turn has an end token."""
        if run.fields == {"content"}:
            return bool(self._text[run.closing : run.end].strip())
        others = [*self._messages[:turn], _PLAIN, *self._messages[turn + 1 :]]
        plain = self._try(others) or self._try(others[: turn + 1])
        runs = _runs(_pieces(plain, others), len(plain.text)).get(turn) if plain else None
        return not plain or not runs or bool(plain.text[runs[-1].closing : runs[-1].end].strip())

    def _lead(self, messages: Messages) -> str | None:
        """Return the markup before the last of these messages; None if the template does not write it."""
        rendered = self._try(messages)
        if rendered is None:
            return None
        pieces = _pieces(rendered, messages)
        own = [place for place, piece in enumerate(pieces) if piece.writer == len(messages) - 1]
        if not own:
            return None
        return rendered.text[pieces[own[0]].start : pieces[_markup_end(pieces, own[0]) - 1].end]

    def _try(self, messages: Messages, add_generation_prompt: bool = False) -> Rendered | None:
        """Render messages; None if the template rejects them."""
        try:
            return self._render(messages, add_generation_prompt)
        except TokenizerError:
            return None


def undecidable(turn: int, what: str) -> OptionError:
    """Return the error for a template that does not tell what the model writes."""
    return OptionError(
        f"message {turn}: the chat template does not tell {what}, so its assistant mask is unknown; mark the "
        "assistant's text in the template with {% generation %} … {% endgeneration %}"
    )


class _Boundaries:
    """Compares markup without cutting through a control token.

    Args:
        special: The texts of the special tokens.
    """

    def __init__(self, special: Collection[str]) -> None:
        texts = sorted(filter(None, special), reverse=True)  # the longer of two that begin alike comes first
        self._tags = re.compile("|".join([*map(re.escape, texts), _TAG.pattern]))

    def tags(self, text: str) -> Sequence[re.Match[str]]:
        """Return the control tokens in a text."""
        return list(self._tags.finditer(text))

    def starts_with_tag(self, text: str) -> bool:
        """Whether a text starts with a control token, after white space."""
        return self._tags.match(text.lstrip()) is not None

    def common_prefix(self, a: str, b: str) -> int:
        """Return the length of the common prefix of whole tokens and words."""
        length = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
        return min(self._whole(a, length), self._whole(b, length))

    def common_suffix(self, a: str, b: str) -> int:
        """Return the length of the common suffix of whole tokens."""
        length = next(
            (n for n, (x, y) in enumerate(zip(reversed(a), reversed(b), strict=False)) if x != y),
            min(len(a), len(b)),
        )
        cut = [match.end() for match in self.tags(a) if match.start() < len(a) - length < match.end()]
        return len(a) - max(cut) if cut else length

    def _whole(self, text: str, length: int) -> int:
        for match in self.tags(text):
            if match.start() < length < match.end():
                return match.start()
        return length


def _origins(rendered: Rendered) -> list[tuple[int, int, Any]]:
    """Return the segments as (start, end, origin), with None for markup and headers."""
    found = []
    position = 0
    for segment in rendered.segments:
        end = position + len(segment.text)
        found.append((position, end, None if is_markup_or_header(segment) else segment.origin))
        position = end
    return found


def _markup_start(rendered: Rendered) -> int:
    """Return the end of the last content."""
    return max((end for _, end, origin in _origins(rendered) if origin is not None), default=0)


def _pieces(rendered: Rendered, messages: Messages) -> list[_Piece]:
    """Split a text at the borders of its segments and of the passes of the template's loops."""
    pieces: list[_Piece] = []
    written = list(rendered.written or ())
    turns = {number: number for number, message in enumerate(messages) if message["role"] == "assistant"}
    for _, _, writers in written:
        # A template can join messages before it writes them. Then they are one turn.
        if turns.keys() >= {*writers}:
            turns.update(dict.fromkeys(writers, min(turns[writer] for writer in writers)))
    seen: set[tuple[int, str, str]] = set()
    place = 0
    for begin, stop, origin in _origins(rendered):
        position = begin
        while position < stop:
            while place < len(written) and written[place][1] <= position:
                place += 1
            first, last, writers = written[place] if place < len(written) else (stop, stop, ())
            if position < first:
                last, writers = first, ()
            end = min(stop, last)
            pieces.append(_piece(rendered.text, position, end, origin, writers, turns, seen))
            position = end
    return pieces


def _piece(
    text: str,
    start: int,
    end: int,
    origin: Any,
    writers: tuple[int, ...],
    turns: Mapping[int, int],
    seen: set[tuple[int, str, str]],
) -> _Piece:
    by_assistant = bool(writers) and turns.keys() >= {*writers}
    turn = turns[writers[0]] if by_assistant else None
    if origin is None:
        known = bool(writers) and (by_assistant or turns.keys().isdisjoint(writers))
        return _Piece(start, end, turn, known=known, writer=writers[0] if writers else None)
    if origin.source != "messages" or origin.index not in turns:
        return _Piece(start, end, None, "other")
    content = (origin.index, origin.field, text[start:end])
    if writers and not by_assistant and (origin.field == "tool_calls" or content in seen):
        # A template can repeat a part of a message later, as gpt-oss's repeats the names of called tools.
        return _Piece(start, end, None, "other")
    seen.add(content)
    return _Piece(
        start, end, turns[origin.index] if turn is None else turn, origin.field, message=origin.index
    )


def _markup_end(pieces: Sequence[_Piece], first: int) -> int:
    """Return the place after the markup from a place on that is written at the same message."""
    place = first
    while place < len(pieces) and not pieces[place].field and pieces[place].writer == pieces[first].writer:
        place += 1
    return place


def _runs(pieces: Sequence[_Piece], limit: int) -> dict[int, list[_Run]]:
    """Join the pieces of each turn.

    Markup of an unknown author between two of them belongs to the turn. So does the markup around a turn that
    begins outside the loops, as Nemotron's last one does.
    """
    turns: dict[int, list[_Run]] = {}
    traced = {piece.turn for piece in pieces if not piece.field and piece.turn is not None}
    current: int | None = None
    unknown: int | None = None
    for piece in pieces:
        if piece.start >= limit:
            break
        end = min(piece.end, limit)
        if piece.turn is None or piece.turn not in traced:
            if piece.known:
                current = unknown = None
            elif current is not None and turns[current][-1].outside:
                turns[current][-1].end = end
            elif unknown is None:
                unknown = piece.start
            continue
        runs = turns.setdefault(piece.turn, [])
        if current == piece.turn:
            runs[-1].end = end
        elif unknown is not None and piece.turn and not runs:
            runs.append(_Run(unknown, end, outside=True))
        else:
            runs.append(_Run(piece.start, end))
        if piece.field:
            runs[-1].contents.append((piece.start, end))
            runs[-1].fields.add(piece.field)
        current, unknown = piece.turn, None
    return turns
