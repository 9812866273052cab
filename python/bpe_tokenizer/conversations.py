"""What conversations need beside their ids: counts, budgets and training examples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bpe_tokenizer.chat.budget import newest_that_fit
from bpe_tokenizer.chat.encoding import EncodedChat
from bpe_tokenizer.chat.messages import Messages, checked_messages
from bpe_tokenizer.chat.training_examples import TrainingExamples
from bpe_tokenizer.chat_encoding import (
    ChatEncoding,
    ChatTemplateLike,
    chat_options,
    conversations_of,
    encoded,
)
from bpe_tokenizer.encoding import checked_limit
from bpe_tokenizer.errors import ContextLengthError
from bpe_tokenizer.special_tokens import AllowedSpecial

__all__ = ["Conversations"]


class Conversations(ChatEncoding):
    """The part of `BPETokenizer` that measures conversations and makes examples of them.

    `ChatEncoding` says what the arguments have in common.
    """

    def count_chat_tokens(
        self,
        messages: Messages,
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        allowed_special: AllowedSpecial = "all",
        **options: Any,
    ) -> int:
        """Return the number of ids that `apply_chat_template` gives, whose arguments and errors these are.

        >>> from bpe_tokenizer import BPETokenizer
        >>> control = ["<|im_start|>", "<|im_end|>"]
        >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
        >>> tokenizer.count_chat_tokens([{"role": "user", "content": "Why?"}], "chatml", False)
        9
        """
        snapshot = self._trained()
        chosen = chat_options(add_generation_prompt, system_prompt, options)
        (conversation,) = conversations_of(snapshot, [messages], template, chosen)
        return len(encoded(snapshot, conversation, allowed_special).ids)

    def trim_messages(
        self,
        messages: Messages,
        max_tokens: int,
        template: ChatTemplateLike = None,
        add_generation_prompt: bool = True,
        system_prompt: str | None = None,
        allowed_special: AllowedSpecial = "all",
        *,
        keep_system: bool = True,
        **options: Any,
    ) -> list[Mapping[str, Any]]:
        """Return the messages without the oldest turns, so that they encode to at most `max_tokens` ids.

        A turn is a user message with everything up to the next one, so a call of a tool and its result stay
        together, and what is left begins with a user message. The system messages at the beginning stay.

        Args:
            messages: The messages.
            max_tokens: Largest number of ids of what is left, with the generation prompt if it is added.
            template: The template.
            add_generation_prompt: As in `apply_chat_template`.
            system_prompt: A system message for conversations without one; it counts, and is not returned.
            allowed_special: As in `apply_chat_template`.
            keep_system: False drops the system messages with the first turn.
            **options: `tools`, `documents`, and variables of the template.

        Returns:
            The messages that are left; all of them if they fit.

        Raises:
            ContextLengthError: Not even the last turn fits; it has both lengths.
            OptionError: `max_tokens` is less than 1.

        Other errors are those of `apply_chat_template`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("user user", 259, verbose=False)
        >>> talk = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"},
        ...         {"role": "user", "content": "Why?"}]
        >>> tokenizer.trim_messages(talk, 60, "chatml")
        [{'role': 'user', 'content': 'Why?'}]
        """
        limit = checked_limit("max_tokens", max_tokens, 1)
        snapshot = self._trained()
        chosen = chat_options(add_generation_prompt, system_prompt, options)
        shortest = 0

        def fits(some: Messages) -> bool:
            nonlocal shortest
            (conversation,) = conversations_of(snapshot, [some], template, chosen)
            shortest = len(encoded(snapshot, conversation, allowed_special).ids)
            return shortest <= limit

        left = newest_that_fit(checked_messages(messages), fits, keep_system)
        if left is None:
            # The last that was asked about was the shortest.
            raise ContextLengthError(
                f"the last turn alone is {shortest} ids long, with what always stands around it, and only "
                f"{limit} are allowed: shorten it, or raise max_tokens",
                shortest,
                limit,
            )
        return left

    def training_examples(
        self,
        conversations: Iterable[Any],
        template: ChatTemplateLike = None,
        max_length: int | None = None,
        system_prompt: str | None = None,
        *,
        labels: bool = False,
        **options: Any,
    ) -> TrainingExamples:
        """Return conversations as examples for supervised fine-tuning, made while they are iterated over.

        Conversations that are too long lose turns at their end, whole ones: the rest reads as it was written.
        Those of which nothing can be learned, because the assistant says nothing in them or not even the
        first turn fits, are left out; `skipped` says which, and `shortened` how many lost turns.

        Args:
            conversations: Lists of messages, or dicts with `messages` and perhaps `tools` and `documents`, as
                TRL's datasets have them. They may be a generator; then the examples can be iterated once.
            template: The template.
            max_length: Largest number of ids of an example; None for no limit.
            system_prompt: A system message for conversations without one.
            labels: Add `labels`: the ids, and -100 where nothing is learned.
            **options: `tools`, `documents` and variables of the template, for conversations that have none.

        Returns:
            An iterable of dicts of `input_ids` and `assistant_masks`, 1 where an id is learned: names that
            TRL's `SFTTrainer` knows (https://huggingface.co/docs/trl/sft_trainer).

        Raises:
            OptionError: `max_length` is less than 1; while iterating: the template refuses a conversation, or
                the mask cannot be known; the error has its number.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("user user", 259, verbose=False)
        >>> talk = [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]
        >>> (example,) = tokenizer.training_examples([talk], "mistral", labels=True)
        >>> tokenizer.decode([token_id for token_id in example["labels"] if token_id != -100])
        '2</s>'
        """
        limit = None if max_length is None else checked_limit("max_length", max_length, 1)

        snapshot = self._trained()

        def encode(messages: Messages, own: Mapping[str, Any]) -> EncodedChat:
            chosen = chat_options(False, system_prompt, {**options, **own})
            (conversation,) = conversations_of(snapshot, [messages], template, chosen)
            return encoded(snapshot, conversation, "all", mask=True)

        return TrainingExamples(conversations, encode, limit, labels)
