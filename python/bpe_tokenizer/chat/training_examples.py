"""Makes examples for supervised fine-tuning from conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bpe_tokenizer.chat.budget import drop_last_turns
from bpe_tokenizer.chat.encoding import ChatTemplateLike, EncodedChat, encode_messages
from bpe_tokenizer.chat.messages import Conversation, Messages, checked_messages
from bpe_tokenizer.chat.options import ChatOptions
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import OptionError, TokenizerError

__all__ = ["IGNORE_INDEX", "TrainingExamples", "training_examples"]

# The label that loss functions ignore: https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
IGNORE_INDEX = -100

# The fields of TRL's rows, and the options that they are.
_FIELDS = {"tools": "tools", "documents": "documents", "chat_template_kwargs": "variables"}

Encode = Callable[[Messages, Mapping[str, Any]], EncodedChat]


def training_examples(
    compiled: CompiledModel,
    conversations: Iterable[Conversation | Mapping[str, Any]],
    template: ChatTemplateLike,
    options: ChatOptions,
    max_length: int | None,
    labels: bool,
) -> TrainingExamples:
    """Return conversations as examples; fields of a conversation replace `options`."""

    def encode(messages: Messages, fields: Mapping[str, Any]) -> EncodedChat:
        chosen = replace(options, **fields)
        return encode_messages(compiled, messages, template, chosen, "all", mask=True)

    return TrainingExamples(conversations, encode, max_length, labels)


class TrainingExamples:
    """An iterable that makes the examples; `BPETokenizer.training_examples` returns one.

    Attributes:
        skipped: The indices of the conversations without an example, in the latest iteration.
        shortened: The number of conversations that lost turns in it.
    """

    def __init__(
        self,
        conversations: Iterable[Conversation | Mapping[str, Any]],
        encode: Encode,
        max_length: int | None,
        labels: bool,
    ) -> None:
        self._conversations = conversations
        self._encode = encode
        self._max_length = max_length
        self._labels = labels
        self.skipped: list[int] = []
        self.shortened = 0

    def __repr__(self) -> str:
        given = self._conversations
        number = f"conversations={len(given):,}, " if isinstance(given, list | tuple) else ""
        return (
            f"{type(self).__name__}({number}max_length={self._max_length}, labels={self._labels}, "
            f"skipped={len(self.skipped):,}, shortened={self.shortened:,})"
        )

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
            own = {ours: given[name] for name, ours in _FIELDS.items() if given.get(name) is not None}
            given = given.get("messages")
        messages = checked_messages(given)
        chat = self._longest_fitting(messages, own)
        if chat is None or 1 not in (mask := chat.assistant_mask or []):
            return None
        row = {"input_ids": chat.ids, "assistant_masks": mask}
        if self._labels:
            learned = zip(chat.ids, mask, strict=True)
            row["labels"] = [token_id if each else IGNORE_INDEX for token_id, each in learned]
        return row

    def _longest_fitting(self, messages: Messages, own: Mapping[str, Any]) -> EncodedChat | None:
        """Return the encoding of the most turns, from the first on, that fit; None if the first does not."""
        last: dict[int, EncodedChat] = {}

        def fits(some: Messages) -> bool:
            chat = self._encode(some, own)
            fitting = self._max_length is None or len(chat.ids) <= self._max_length
            if fitting:
                last[len(some)] = chat
            return fitting

        kept = drop_last_turns(messages, fits)
        if kept is None:
            return None
        self.shortened += len(kept) < len(messages)
        return last[len(kept)]
