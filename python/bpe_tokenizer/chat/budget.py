"""Shortens conversations by whole turns to a token budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from bpe_tokenizer.chat.encoding import ChatTemplateLike, encode_messages
from bpe_tokenizer.chat.messages import Conversation, Messages, checked_messages
from bpe_tokenizer.chat.options import ChatOptions
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import ContextLengthError
from bpe_tokenizer.special_tokens import AllowedSpecial

__all__ = ["drop_last_turns", "drop_oldest_turns", "trim_messages"]

Message = Mapping[str, Any]


def trim_messages(
    compiled: CompiledModel,
    messages: Conversation,
    max_tokens: int,
    template: ChatTemplateLike,
    options: ChatOptions,
    allowed_special: AllowedSpecial,
    keep_system: bool,
    truncate_last: bool,
) -> list[Message]:
    """Return the messages without the oldest turns, so that they encode to at most `max_tokens` ids.

    Raises:
        ContextLengthError: The last turn alone is longer, and `truncate_last` is False or does not
            suffice. The error has both lengths.
    """
    length = 0
    tried: Messages = ()

    def fits(some: Messages) -> bool:
        nonlocal length, tried
        tried = some
        length = len(encode_messages(compiled, some, template, options, allowed_special).ids)
        return length <= max_tokens

    kept = drop_oldest_turns(checked_messages(messages), fits, keep_system)
    if kept is None:
        # `drop_oldest_turns` tries the shortest messages last, so `length` and `tried` are theirs.
        shortest = length
        advice = "shorten it, raise max_tokens, or cut the text of its last message with truncate_last=True"
        if truncate_last:
            kept = _cut_last_text(tried, fits)
            advice = "shorten it or raise max_tokens; truncate_last=True cannot make its last message fit"
        if kept is None:
            raise ContextLengthError(
                f"the last turn alone is {shortest} ids long, with the system messages and the text that the "
                f"template always adds, and only {max_tokens} are allowed: {advice}",
                shortest,
                max_tokens,
            )
    return kept


def _split_turns(messages: Messages) -> tuple[list[Message], list[list[Message]]]:
    """Return the system messages at the start, and the turns after them.

    A turn is a user message with all messages up to the next one: replies, tool calls and their results. The
    messages before the first user message are a turn too.
    """
    head: list[Message] = []
    turns: list[list[Message]] = []
    for message in messages:
        if not turns and message["role"] in ("system", "developer"):
            head.append(message)
        elif message["role"] == "user" or not turns:
            turns.append([message])
        else:
            turns[-1].append(message)
    return head, turns


def _cut_last_text(messages: Messages, fits: Callable[[Messages], bool]) -> list[Message] | None:
    """Keep as many characters of the last message's text as fit; None if not one does.

    >>> def fits(talk):
    ...     return len(talk[-1]["content"]) <= 3
    >>> _cut_last_text([{"role": "user", "content": "naïve"}], fits)
    [{'role': 'user', 'content': 'naï'}]
    """
    last = messages[-1]
    text = last.get("content")
    if not isinstance(text, str):
        return None

    def shortened(length: int) -> list[Message]:
        return [*messages[:-1], {**last, "content": text[:length]}]

    # The search assumes that a shorter text has no more ids. `fits` was true for the length that it returns.
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(shortened(middle)):
            low = middle
        else:
            high = middle - 1
    return shortened(low) if low else None


def drop_oldest_turns(
    messages: Messages, fits: Callable[[Messages], bool], keep_system: bool = True
) -> list[Message] | None:
    """Drop the oldest turns until the messages fit.

    Args:
        messages: The messages.
        fits: Returns whether messages are short enough. Called about log2(turns) times.
        keep_system: Keep the system messages at the start. If False, they are dropped with the first turn.

    Returns:
        The remaining messages, which are all if they fit. None if not even the last turn fits.

    >>> talk = [{"role": role} for role in ("system", "user", "assistant", "tool", "user", "assistant")]
    >>> [message["role"] for message in drop_oldest_turns(talk, lambda some: len(some) <= 5)]
    ['system', 'user', 'assistant']
    """
    return _drop_turns(messages, fits, lambda turns, count: turns[count:], keep_system)


def drop_last_turns(messages: Messages, fits: Callable[[Messages], bool]) -> list[Message] | None:
    """Drop the last turns until the messages fit.

    Args:
        messages: The messages.
        fits: Returns whether messages are short enough. Called about log2(turns) times.

    Returns:
        The remaining messages, which are all if they fit. None if not even the first turn fits.

    >>> talk = [{"role": role} for role in ("user", "assistant", "user", "assistant")]
    >>> drop_last_turns(talk, lambda some: len(some) <= 3)
    [{'role': 'user'}, {'role': 'assistant'}]
    """
    return _drop_turns(messages, fits, lambda turns, count: turns[: len(turns) - count])


def _drop_turns(
    messages: Messages,
    fits: Callable[[Messages], bool],
    remaining: Callable[[list[list[Message]], int], list[list[Message]]],
    keep_system: bool = True,
) -> list[Message] | None:
    if fits(messages):
        return list(messages)
    head, turns = _split_turns(messages)

    def without(count: int) -> list[Message]:
        return [*(head if keep_system else []), *chain.from_iterable(remaining(turns, count))]

    dropped = _min_dropped(len(turns), lambda count: fits(without(count)))
    return None if dropped is None else without(dropped)


def _min_dropped(count: int, fits: Callable[[int], bool]) -> int | None:
    """Return the smallest number of turns to drop, at least 1 and less than `count`, so that the rest fits.

    The binary search assumes that fewer turns are shorter. `fits` was true for the number that it returns.
    """
    low, high = 1, count - 1
    if high < low or not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low
