"""A rendered conversation as ids: which are the assistant's, which are whose, and rows of several."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any, Literal

import numpy as np

from bpe_tokenizer.chat.conversation import Conversation
from bpe_tokenizer.chat.parts import parts_of
from bpe_tokenizer.chat.segment import Rendered, Segment
from bpe_tokenizer.chat.turns import assistant_ranges
from bpe_tokenizer.compiled import Snapshot
from bpe_tokenizer.results import BatchOptions, to_arrays, to_results, to_tensors

__all__ = ["EncodedChat", "MessageSpan", "encode_chat", "ids_of_segments", "markup_tokens", "to_columns"]

Range = tuple[int, int]


@dataclass(frozen=True)
class MessageSpan:
    """The tokens of a message's content.

    Args:
        index: Which of the messages; None of a system prompt that was put before them.
        role: Its role.
        start: The first token that holds something of the content.
        end: Behind the last one.
    """

    index: int | None
    role: str
    start: int
    end: int


@dataclass(frozen=True)
class EncodedChat:
    """The ids of a conversation.

    Args:
        ids: The ids.
        assistant_mask: 1 for each id that holds something of an assistant's turn; None if not asked for.
        spans: The spans of the messages; None if not asked for.
    """

    ids: list[int]
    assistant_mask: list[int] | None = None
    spans: list[MessageSpan] | None = None


def markup_tokens(snapshot: Snapshot, conversation: Conversation) -> frozenset[str]:
    """Return the added tokens that are not special, and that a template writes as markup.

    Models have such tokens for the parts of a turn (`<tool_call>`, `<think>`); in a template's markup they
    are control tokens, so in contents they are text. The others, like runs of spaces, are words.

    Args:
        snapshot: The model.
        conversation: Its template says what it may write.
    """
    plain = (token.content for token in snapshot.added.values() if not token.special)
    return frozenset(text for text in plain if not text.isspace() and conversation.may_write(text))


def encode_chat(
    snapshot: Snapshot,
    conversation: Conversation,
    special: bool | Collection[str],
    mask: bool = False,
    spans: bool = False,
) -> EncodedChat:
    """Encode a conversation; what is not markup never becomes a control token.

    Args:
        snapshot: The model.
        conversation: The conversation.
        special: The special tokens that are recognised in markup, as `_core.Encoder` takes them.
        mask: Whether to find the assistant's tokens.
        spans: Whether to find the messages' tokens.

    Raises:
        OptionError: The mask cannot be known, or would be all 0 although the assistant has messages.

    A `UserWarning` says if the template does something with contents that cannot be followed.
    """
    rendered = conversation.render()
    markup = markup_tokens(snapshot, conversation)
    learned: list[Range] = []
    if mask:
        control = {*snapshot.special, *markup}
        learned = assistant_ranges(rendered, conversation.messages, conversation.render_some, control)
    if rendered.untracked:
        warnings.warn(
            f"the chat template does what cannot be followed: {'; '.join(rendered.untracked)}. All text that "
            "this concerns is taken for content, so control tokens in it are lost",
            stacklevel=4,
        )
    parts = parts_of(rendered) if spans else []
    wanted = [*learned, *((part.start, part.end) for part in parts)]
    pieces, starts = _cut(rendered, {character for range_ in wanted for character in range_})
    ids, covered = snapshot.encoder.encode_segments(pieces, special, markup)
    firsts, lasts = [first for first, _ in covered], [last for _, last in covered]

    def tokens(characters: Range) -> Range:
        """Return the tokens (start, end) that hold something of these characters."""
        first, behind = (bisect_left(starts, character) for character in characters)
        return bisect_left(lasts, first), bisect_left(firsts, behind)

    held = [0] * len(ids)
    for start, end in map(tokens, learned):
        held[start:end] = [1] * (end - start)
    found = [
        MessageSpan(
            conversation.given_index(part.index),
            conversation.messages[part.index]["role"],
            *tokens((part.start, part.end)),
        )
        for part in parts
    ]
    return EncodedChat(ids, held if mask else None, found if spans else None)


def ids_of_segments(
    snapshot: Snapshot, conversation: Conversation, special: bool | Collection[str]
) -> list[tuple[Segment, list[int]]]:
    """Return the segments of a conversation with their ids; an id belongs to the segment that it begins in.

    Args:
        snapshot: The model.
        conversation: The conversation.
        special: The special tokens that are recognised in markup, as `_core.Encoder` takes them.
    """
    rendered = conversation.render()
    pieces = [(segment.text, segment.trusted) for segment in rendered.segments]
    markup = markup_tokens(snapshot, conversation)
    segments = conversation.segments_as_given(rendered)
    ids: list[list[int]] = [[] for _ in segments]
    for token_id, (first, _) in zip(*snapshot.encoder.encode_segments(pieces, special, markup), strict=True):
        ids[first].append(token_id)
    return list(zip(segments, ids, strict=True))


def _cut(rendered: Rendered, borders: Collection[int]) -> tuple[list[tuple[str, bool]], list[int]]:
    """Cut segments at characters.

    Returns:
        The pieces, each with whether it is trusted, and the character that each begins with.
    """
    pieces: list[tuple[str, bool]] = []
    starts: list[int] = []
    left = sorted(borders, reverse=True)
    position = 0
    for segment in rendered.segments:
        begin, end = position, position + len(segment.text)
        while begin < end:
            while left and left[-1] <= begin:
                left.pop()
            stop = min(left[-1], end) if left else end
            pieces.append((segment.text[begin - position : stop - position], segment.trusted))
            starts.append(begin)
            begin = stop
        position = end
    return pieces, starts


def to_columns(
    rows: Sequence[EncodedChat], options: BatchOptions, return_tensors: Literal["np", "pt"] | None
) -> dict[str, Any]:
    """Shape conversations into columns.

    Args:
        rows: The conversations.
        options: How to shape them.
        return_tensors: `"np"` for NumPy arrays, `"pt"` for PyTorch tensors, None for lists.

    Returns:
        `input_ids` and `attention_mask`, a row for each conversation; `assistant_masks` and `message_spans`
        if the conversations have them. Tensors are int64 of shape (conversations, longest row); spans are
        lists always, without what was cut off.

    Raises:
        MissingDependencyError: PyTorch is asked for and not installed.
        OptionError: Tensors are asked for of rows of different length.
    """
    columns = _shaped([row.ids for row in rows], options, return_tensors)
    masks = [row.assistant_mask for row in rows if row.assistant_mask is not None]
    if masks:
        unpadded = replace(options, pad_id=0)
        columns["assistant_masks"] = _shaped(masks, unpadded, return_tensors)["input_ids"]
    spans = [_clipped(row.spans, options.body(len(row.ids))) for row in rows if row.spans is not None]
    if spans:
        columns["message_spans"] = spans
    return columns


def _shaped(
    rows: list[list[int]], options: BatchOptions, return_tensors: Literal["np", "pt"] | None
) -> dict[str, Any]:
    if return_tensors is None:
        results = to_results(rows, options, {})
        return {
            "input_ids": [result.input_ids for result in results],
            "attention_mask": [result.attention_mask for result in results],
        }
    flat = np.array(list(chain.from_iterable(rows)), dtype=np.uint32)
    offsets = np.array([0, *accumulate(map(len, rows))], dtype=np.int64)
    arrays = to_arrays(flat, offsets, options)
    return to_tensors(arrays) if return_tensors == "pt" else dict(arrays)


def _clipped(spans: Sequence[MessageSpan], length: int) -> list[MessageSpan]:
    return [replace(span, end=min(span.end, length)) for span in spans if span.start < length]
