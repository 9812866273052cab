"""Conversations to ids, with assistant masks and message spans; several conversations to rows of a batch."""

from __future__ import annotations

import warnings
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from bpe_tokenizer.arguments import check_flag
from bpe_tokenizer.chat.assistant_spans import assistant_spans
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.chat.message_regions import message_regions
from bpe_tokenizer.chat.messages import Conversation, is_batch
from bpe_tokenizer.chat.options import ChatOptions
from bpe_tokenizer.chat.renderer import ConversationRenderer
from bpe_tokenizer.chat.segment import Rendered, Segment
from bpe_tokenizer.chat.template import Template
from bpe_tokenizer.chat.template_selection import named_special_tokens, select_template, with_control_tokens
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.decoding import ResultList
from bpe_tokenizer.encoding import resolve_allowed_special
from bpe_tokenizer.errors import OptionError, TokenizerError, caller_level, escaped
from bpe_tokenizer.options import Side
from bpe_tokenizer.results import (
    BatchOptions,
    Padding,
    check_return_tensors,
    to_dict,
    to_results,
)
from bpe_tokenizer.special_tokens import AllowedSpecial

__all__ = [
    "ChatEncoding",
    "ChatTemplateLike",
    "EncodedChat",
    "MessageSpan",
    "apply_chat_template",
    "chat_segments",
    "encode_messages",
    "stop_token_ids",
]

ChatTemplateLike: TypeAlias = str | Template | None
# What `BPETokenizer.apply_chat_template` returns, of one conversation or of several.
ChatEncoding: TypeAlias = (
    list[int]
    | tuple[list[int], list[int]]
    | str
    | dict[str, Any]
    | list[list[int]]
    | list[tuple[list[int], list[int]]]
    | list[str]
)
Range = tuple[int, int]


@dataclass(frozen=True)
class MessageSpan:
    """The tokens of a message's content.

    Args:
        index: The index of the message; None for an added system prompt.
        role: Its role.
        start: The first token with any part of the content.
        end: The end of the last such token, exclusive.
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
        assistant_mask: 1 for each id with any part of an assistant's turn, else 0; None if not requested.
        spans: The spans of the messages; None if not requested.
    """

    ids: list[int]
    assistant_mask: list[int] | None = None
    spans: list[MessageSpan] | None = None


def apply_chat_template(
    compiled: CompiledModel,
    messages: Any,
    template: ChatTemplateLike,
    options: ChatOptions,
    *,
    tokenize: bool,
    allowed_special: AllowedSpecial,
    return_assistant_mask: bool,
    return_message_spans: bool,
    return_dict: bool,
    padding: Padding,
    truncation: bool,
    max_length: int | None,
    padding_side: Side,
    return_tensors: Literal["np", "pt"] | None,
) -> ChatEncoding:
    """Encode one or several conversations. `BPETokenizer.apply_chat_template` documents the results."""
    tokenize = check_flag("tokenize", tokenize)
    return_assistant_mask = check_flag("return_assistant_mask", return_assistant_mask)
    return_message_spans = check_flag("return_message_spans", return_message_spans)
    return_dict = check_flag("return_dict", return_dict)
    batched = is_batch(messages)
    compiled, conversations = _conversations(compiled, messages if batched else [messages], template, options)
    if not tokenize:
        texts = [conversation.render().well_formed() for conversation in conversations]
        return texts if batched else texts[0]
    check_return_tensors(return_tensors)
    if return_message_spans and not (return_dict or return_tensors):
        raise OptionError("return_message_spans needs return_dict=True; message_spans() returns them alone")
    shape = BatchOptions(padding, truncation, max_length, pad_id=compiled.pad_id, padding_side=padding_side)
    shape.warn_if_unused()
    rows = [
        _encode(compiled, conversation, allowed_special, return_assistant_mask, return_message_spans)
        for conversation in conversations
    ]
    columns = _to_columns(rows, shape, return_tensors)
    if return_dict or return_tensors:
        single = not batched and not return_tensors
        return {name: column[0] for name, column in columns.items()} if single else columns
    names = ("input_ids", "assistant_masks") if return_assistant_mask else ("input_ids",)
    results = list(zip(*(columns[name] for name in names), strict=True))
    plain = results if return_assistant_mask else [ResultList(ids) for (ids,) in results]
    return ResultList(plain) if batched else plain[0]


def encode_messages(
    compiled: CompiledModel,
    messages: Conversation,
    template: ChatTemplateLike,
    options: ChatOptions,
    allowed_special: AllowedSpecial,
    *,
    mask: bool = False,
    spans: bool = False,
) -> EncodedChat:
    """Encode one conversation, with the assistant mask and the message spans on request."""
    compiled, (conversation,) = _conversations(compiled, [messages], template, options)
    return _encode(compiled, conversation, allowed_special, mask, spans)


def chat_segments(
    compiled: CompiledModel,
    messages: Conversation,
    template: ChatTemplateLike,
    options: ChatOptions,
    allowed_special: AllowedSpecial,
) -> list[tuple[Segment, list[int]]]:
    """Return the segments of a conversation, each with the ids that begin in it."""
    compiled, (conversation,) = _conversations(compiled, [messages], template, options)
    special = resolve_allowed_special(compiled, (), allowed_special)
    rendered = conversation.render()
    pieces = [(segment.text, segment.trusted) for segment in rendered.segments]
    markup = _markup_tokens(compiled, conversation, pieces)
    segments = conversation.segments_by_input(rendered)
    ids: list[list[int]] = [[] for _ in segments]
    for token_id, (first, _) in zip(*compiled.encoder.encode_segments(pieces, special, markup), strict=True):
        ids[first].append(token_id)
    return list(zip(segments, ids, strict=True))


def stop_token_ids(compiled: CompiledModel, template: ChatTemplateLike, options: ChatOptions) -> list[int]:
    """Return the ids that end a reply: those that the template declares or ends a sample with, and EOS."""
    sample = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "."}]
    compiled, (conversation,) = _conversations(compiled, [sample], template, options)
    declared: Sequence[str] = getattr(conversation.template, "stop_tokens", ())
    learned = {compiled.special[text] for text in declared if text in compiled.special}
    if not declared:
        # The template can reject the sample, or write nothing of the assistant's message.
        with suppress(TokenizerError):
            chat = _encode(compiled, conversation, "all", mask=True, spans=True)
            # The model also writes the markup before the content.
            end = max((span.end for span in chat.spans or ()), default=0)
            mask = (chat.assistant_mask or ())[end:]
            learned = {id_ for id_, each in zip(chat.ids[end:], mask, strict=True) if each}
    eos = compiled.role_ids.get("eos")
    return sorted((learned & {*compiled.special.values()}) | ({eos[1]} if eos else set()))


def _conversations(
    compiled: CompiledModel, several: Iterable[Conversation], template: ChatTemplateLike, options: ChatOptions
) -> tuple[CompiledModel, list[ConversationRenderer]]:
    """Return the conversations, and the model with the control tokens that their template brings."""
    with options.in_budget():
        chosen = select_template(compiled, template, bool(options.tools))
    special_tokens = named_special_tokens(compiled)
    is_default = template is None and any(chosen is built_in for built_in in BUILT_IN.values())
    return with_control_tokens(compiled, chosen), [
        ConversationRenderer(messages, chosen, options, special_tokens, is_default) for messages in several
    ]


def _encode(
    compiled: CompiledModel,
    conversation: ConversationRenderer,
    allowed_special: AllowedSpecial,
    mask: bool = False,
    spans: bool = False,
) -> EncodedChat:
    """Encode a conversation. Contents never become control tokens.

    Args:
        compiled: The model.
        conversation: The conversation.
        allowed_special: The special tokens that are recognised in markup.
        mask: Whether to find the assistant's tokens.
        spans: Whether to find the messages' tokens.

    Raises:
        OptionError: The vocabulary lacks control tokens of the template, or the mask is unknown or would
            be all 0 although the assistant has messages.

    Warns with a `UserWarning` if the template does something with contents that cannot be tracked.
    """
    special = resolve_allowed_special(compiled, (), allowed_special)
    rendered = conversation.render(traced=mask)
    pieces = [(segment.text, segment.trusted) for segment in rendered.segments]
    markup = _markup_tokens(compiled, conversation, pieces)
    learned: list[Range] = []
    if mask:
        control = {*compiled.special, *markup}
        learned = assistant_spans(rendered, conversation.messages, conversation.render_messages, control)
    if rendered.untracked:
        what = escaped("; ".join(rendered.untracked), 160)
        warnings.warn(
            f"the chat template does something that cannot be tracked: {what}. The text that it "
            "makes is content, so control tokens in it are lost",
            stacklevel=caller_level(),
        )
    regions = message_regions(rendered) if spans else []
    wanted = [*learned, *((region.start, region.end) for region in regions)]
    pieces, starts = _cut(rendered, {character for range_ in wanted for character in range_})
    ids, covered = compiled.encoder.encode_segments(pieces, special, markup)
    firsts, lasts = [first for first, _ in covered], [last for _, last in covered]

    def tokens(characters: Range) -> Range:
        """Return the tokens (start, end) with any of these characters."""
        first, end = (bisect_left(starts, character) for character in characters)
        return bisect_left(lasts, first), bisect_left(firsts, end)

    held = [0] * len(ids)
    for start, end in map(tokens, learned):
        held[start:end] = [1] * (end - start)
    found = [
        MessageSpan(
            conversation.input_index(region.index),
            conversation.messages[region.index]["role"],
            *tokens((region.start, region.end)),
        )
        for region in regions
    ]
    return EncodedChat(ids, held if mask else None, found if spans else None)


def _markup_tokens(
    compiled: CompiledModel, conversation: ConversationRenderer, pieces: Sequence[tuple[str, bool]]
) -> set[str]:
    """Return the plain added tokens that are control tokens, because the template writes or can write them.

    Raises:
        OptionError: The vocabulary lacks control tokens of the template.
    """
    conversation.check_control_tokens(compiled.added)
    return compiled.encoder.markup_tokens(pieces, conversation.may_write)


def _cut(rendered: Rendered, borders: Collection[int]) -> tuple[list[tuple[str, bool]], list[int]]:
    """Split segments at character positions.

    Returns:
        The pieces as (text, trusted), and the position of each piece's first character.
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


def _to_columns(
    rows: Sequence[EncodedChat], options: BatchOptions, return_tensors: Literal["np", "pt"] | None
) -> dict[str, Any]:
    """Shape conversations into columns.

    Args:
        rows: The conversations.
        options: How to shape them.
        return_tensors: `"np"` for NumPy arrays, `"pt"` for PyTorch tensors, None for lists.

    Returns:
        `input_ids` and `attention_mask`, a row for each conversation; `assistant_masks` and `message_spans`
        if the conversations have them. Tensors are int64 of shape (conversations, longest row). Spans are
        always lists, clipped to the truncated rows.

    Raises:
        MissingDependencyError: PyTorch is requested, but not installed.
        OptionError: Tensors are requested, but the rows have different lengths.
    """
    columns = _to_rows([row.ids for row in rows], options, return_tensors)
    options = replace(options, pad_id=0)  # of masks and spans
    masks = [row.assistant_mask for row in rows if row.assistant_mask is not None]
    if masks:
        columns["assistant_masks"] = _to_rows(masks, options, return_tensors)["input_ids"]
    lengths = [options.body(len(row.ids)).stop for row in rows]
    width = options.width(lengths) if options.padding_side == "left" else 0
    spans = [
        _clip(row.spans, length, max(width - length, 0))
        for row, length in zip(rows, lengths, strict=True)
        if row.spans is not None
    ]
    if spans:
        columns["message_spans"] = spans
    return columns


def _to_rows(
    rows: list[list[int]], options: BatchOptions, return_tensors: Literal["np", "pt"] | None
) -> dict[str, Any]:
    return to_dict(to_results(rows, options, dict), return_tensors)


def _clip(spans: Sequence[MessageSpan], length: int, padding: int) -> list[MessageSpan]:
    """The spans in a row that is cut to a length and then has padding at its beginning."""
    return [
        replace(span, start=span.start + padding, end=min(span.end, length) + padding)
        for span in spans
        if span.start < length
    ]
