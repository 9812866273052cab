"""Conversations as examples for supervised fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bpe_tokenizer.chat.budget import longest_beginning
from bpe_tokenizer.chat.encoding import ChatTemplateLike, EncodedChat, chat_options, encode_messages
from bpe_tokenizer.chat.messages import Messages, checked_messages
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import OptionError, TokenizerError

__all__ = ["NOT_LEARNED", "TrainingExamples", "training_examples"]

# The label that loss functions leave out: https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
NOT_LEARNED = -100

Encode = Callable[[Messages, Mapping[str, Any]], EncodedChat]


def training_examples(
    compiled: CompiledModel,
    conversations: Iterable[Any],
    template: ChatTemplateLike,
    system_prompt: str | None,
    options: Mapping[str, Any],
    max_length: int | None,
    labels: bool,
) -> TrainingExamples:
    """Return conversations as examples; fields of a conversation replace `options`."""

    def encode(messages: Messages, fields: Mapping[str, Any]) -> EncodedChat:
        chosen = chat_options(False, system_prompt, {**options, **fields})
        return encode_messages(compiled, messages, template, chosen, "all", mask=True)

    return TrainingExamples(conversations, encode, max_length, labels)


class TrainingExamples:
    """The examples, made while they are iterated over; `BPETokenizer.training_examples` makes them.

    Attributes:
        skipped: The numbers of the conversations that gave no example, from 0 on, in the latest iteration.
        shortened: How many conversations lost turns in it.
    """

    def __init__(
        self, conversations: Iterable[Any], encode: Encode, max_length: int | None, labels: bool
    ) -> None:
        self._conversations = conversations
        self._encode = encode
        self._max_length = max_length
        self._labels = labels
        self.skipped: list[int] = []
        self.shortened = 0

    def __iter__(self) -> Iterator[dict[str, list[int]]]:
        """Make the examples."""
        self.skipped, self.shortened = [], 0
        for number, given in enumerate(self._conversations):
            try:
                example = self._example(given)
            except TokenizerError as error:
                raise OptionError(f"conversation {number}: {error}") from error
            if example is None:
                self.skipped.append(number)
            else:
                yield example

    def _example(self, given: Any) -> dict[str, list[int]] | None:
        own = {}
        if isinstance(given, Mapping):
            own = {name: given[name] for name in ("tools", "documents") if given.get(name) is not None}
            given = given.get("messages")
        messages = checked_messages(given)
        chat = self._fitting(messages, own)
        if chat is None or 1 not in (mask := chat.assistant_mask or []):
            return None
        row = {"input_ids": chat.ids, "assistant_masks": mask}
        if self._labels:
            learned = zip(chat.ids, mask, strict=True)
            row["labels"] = [token_id if each else NOT_LEARNED for token_id, each in learned]
        return row

    def _fitting(self, messages: Messages, own: Mapping[str, Any]) -> EncodedChat | None:
        """Return the longest beginning that fits and in which the assistant speaks."""
        last: dict[int, EncodedChat] = {}

        def fits(some: Messages) -> bool:
            chat = self._encode(some, own)
            fitting = self._max_length is None or len(chat.ids) <= self._max_length
            if fitting:
                last[len(some)] = chat
            return fitting

        kept = longest_beginning(messages, fits)
        if kept is None:
            return None
        self.shortened += len(kept) < len(messages)
        return last[len(kept)]
