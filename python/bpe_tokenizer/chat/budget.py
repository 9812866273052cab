"""Conversations made shorter by whole turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bpe_tokenizer.chat.conversation import ChatOptions
from bpe_tokenizer.chat.encoding import ChatTemplateLike, encode_messages
from bpe_tokenizer.chat.messages import Messages, checked_messages
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import ContextLengthError
from bpe_tokenizer.special_tokens import AllowedSpecial

__all__ = ["longest_beginning", "newest_that_fit", "trim_messages"]

Message = Mapping[str, Any]


def trim_messages(
    compiled: CompiledModel,
    messages: Messages,
    max_tokens: int,
    template: ChatTemplateLike,
    options: ChatOptions,
    allowed_special: AllowedSpecial,
    keep_system: bool,
) -> list[Message]:
    """Return the messages without the oldest turns, so that they encode to at most `max_tokens` ids.

    Raises:
        ContextLengthError: The last turn alone is longer; it has both lengths.
    """
    length = 0

    def fits(some: Messages) -> bool:
        nonlocal length
        length = len(encode_messages(compiled, some, template, options, allowed_special).ids)
        return length <= max_tokens

    kept = newest_that_fit(checked_messages(messages), fits, keep_system)
    if kept is None:
        # `newest_that_fit` tries the shortest messages last, so `length` is theirs.
        raise ContextLengthError(
            f"the last turn alone is {length} ids long, with what always stands around it, and only "
            f"{max_tokens} are allowed: shorten it, or raise max_tokens",
            length,
            max_tokens,
        )
    return kept


def _split_turns(messages: Messages) -> tuple[list[Message], list[list[Message]]]:
    """Return the system messages at the beginning, and the turns behind them.

    A turn is a user message with everything up to the next one: the replies, the calls of tools and their
    results. What stands before the first user message is a turn too.
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


def newest_that_fit(
    messages: Messages, fits: Callable[[Messages], bool], keep_system: bool = True
) -> list[Message] | None:
    """Return the messages that are left when the oldest turns are dropped until they fit.

    Args:
        messages: The messages.
        fits: Whether messages are short enough. It is asked about log2(turns) times.
        keep_system: Keep the system messages at the beginning; otherwise they go with the first turn.

    Returns:
        The messages; all of them if they fit. None if not even the last turn does.

    >>> talk = [{"role": role} for role in ("system", "user", "assistant", "tool", "user", "assistant")]
    >>> [message["role"] for message in newest_that_fit(talk, lambda some: len(some) <= 5)]
    ['system', 'user', 'assistant']
    """
    if fits(messages):
        return list(messages)
    head, turns = _split_turns(messages)
    kept = head if keep_system else []

    def without(count: int) -> list[Message]:
        return [*kept, *(message for turn in turns[count:] for message in turn)]

    dropped = _least(len(turns), lambda count: fits(without(count)))
    return None if dropped is None else without(dropped)


def longest_beginning(messages: Messages, fits: Callable[[Messages], bool]) -> list[Message] | None:
    """Return the messages that are left when the last turns are dropped until they fit.

    Args:
        messages: The messages.
        fits: Whether messages are short enough. It is asked about log2(turns) times.

    Returns:
        The messages; all of them if they fit. None if not even the first turn does.

    >>> talk = [{"role": role} for role in ("user", "assistant", "user", "assistant")]
    >>> longest_beginning(talk, lambda some: len(some) <= 3)
    [{'role': 'user'}, {'role': 'assistant'}]
    """
    if fits(messages):
        return list(messages)
    head, turns = _split_turns(messages)

    def without(count: int) -> list[Message]:
        return [*head, *(message for turn in turns[: len(turns) - count] for message in turn)]

    dropped = _least(len(turns), lambda count: fits(without(count)))
    return None if dropped is None else without(dropped)


def _least(count: int, fits: Callable[[int], bool]) -> int | None:
    """Return the smallest number of turns, at least 1 and less than `count`, without which the rest fits.

    The search takes it that fewer turns are shorter; what it returns was asked about in any case.
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
