"""A conversation with a language model, turn by turn."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import write_atomically
from bpe_tokenizer.chat.messages import checked_messages
from bpe_tokenizer.chat.reply import Reply
from bpe_tokenizer.chat.segment import Segment
from bpe_tokenizer.errors import ContextLengthError, FormatError, OptionError, TokenizerError
from bpe_tokenizer.inference import LanguageModel
from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["ChatSession"]

_Path = str | os.PathLike[str]

_CHAT = inspect.signature(BPETokenizer.chat).parameters
_MAX_NEW_TOKENS: int = _CHAT["max_new_tokens"].default
# The arguments of `BPETokenizer.chat` that say nothing about the template.
_OF_CHAT = frozenset(_CHAT) - {"template"}


class ChatSession:
    """A conversation with a language model: what was said, and what is said next.

    A turn that fails is taken back, as if nothing had been said, so that it can be tried again. Of a reply
    that is ended early, what there is stays.

    Args:
        model: A GGUF file, a model directory, the address of a server, or a `LanguageModel`.
        tokenizer: The tokenizer; None for the model's own.
        system_prompt: What stands before everything that is said.
        trim: Leave the oldest turns out of the prompt when it does not fit into the context any more. They
            stay in `messages`.
        **options: Arguments of `BPETokenizer.chat` for every turn: `template`, `temperature`, `seed`, ...

    Raises:
        FormatError: The model's own tokenizer cannot be represented.
        OptionError: There is no such model, or it has no tokenizer.

    >>> tokenizer = BPETokenizer().train("user user", 259, verbose=False)
    >>> class Parrot:
    ...     vocab_size, context_length = 259, 1000
    ...     def generate(self, ids, options, cancellation):
    ...         yield from tokenizer.encode("Why?")
    ...     def close(self):
    ...         pass
    >>> session = ChatSession(LanguageModel(Parrot()), tokenizer, template="chatml")
    >>> "".join(session.send("Say: Why?"))
    'Why?'
    >>> session.messages
    [{'role': 'user', 'content': 'Say: Why?'}, {'role': 'assistant', 'content': 'Why?'}]
    >>> session.undo()
    True
    >>> session.messages
    []
    """

    def __init__(
        self,
        model: _Path | LanguageModel,
        tokenizer: BPETokenizer | None = None,
        system_prompt: str | None = None,
        trim: bool = True,
        **options: Any,
    ) -> None:
        if tokenizer is None:
            if isinstance(model, LanguageModel):
                raise OptionError(
                    "a LanguageModel that is loaded already comes without a tokenizer: give one"
                )
            tokenizer = BPETokenizer.for_model(model)
        self.tokenizer = tokenizer
        self.system_prompt = system_prompt
        self.messages: list[dict[str, Any]] = []
        self.reply: Reply | None = None
        self._model = model
        self._trim = trim
        self._options = options

    def send(self, text: str) -> Generator[str, None, None]:
        """Say something, and yield the reply as it comes.

        The turn becomes part of `messages` when the reply ends, or when the iterator is closed; `reply` is
        the one that runs, or was the last; None if it could not begin.

        Args:
            text: What the user says.

        Yields:
            Text of the reply. Errors are those of `BPETokenizer.chat`.
        """
        asked = {"role": "user", "content": text}
        self.reply = None
        self.reply = reply = self._ask([*self.messages, asked])
        try:
            with reply:
                yield from reply
        except (GeneratorExit, KeyboardInterrupt):
            if reply.text:
                self._said(asked, reply)
            raise
        self._said(asked, reply)

    def undo(self) -> bool:
        """Take the last turn back: what the user said last, and the reply.

        Returns:
            Whether there was one.
        """
        users = [number for number, message in enumerate(self.messages) if message["role"] == "user"]
        del self.messages[users[-1] if users else len(self.messages) :]
        return bool(users)

    def reset(self) -> None:
        """Forget what was said; the system prompt stays."""
        self.messages.clear()

    def conversation(self) -> list[dict[str, Any]]:
        """Return everything that was said, with the system prompt."""
        if self.system_prompt is None:
            return list(self.messages)
        return [{"role": "system", "content": self.system_prompt}, *self.messages]

    def segments(self) -> list[tuple[Segment, list[int]]]:
        """Return the conversation as the template renders it, each segment with its ids."""
        return self.tokenizer.chat_segments(self.conversation(), **self._template_options())

    def save(self, path: _Path) -> None:
        """Write the conversation to a file: JSON with `messages`, the form that datasets for training have.

        Args:
            path: The file; it is replaced as a whole, or not at all.
        """
        text = json.dumps({"messages": self.conversation()}, ensure_ascii=False, indent=2)
        data = (text + "\n").encode("utf-8", "surrogatepass")
        write_atomically({Path(path): data})

    def load(self, path: _Path) -> None:
        """Go on with a conversation that `save` has written.

        Args:
            path: The file.

        Raises:
            FormatError: It holds no conversation.
            OSError: It cannot be read.
        """
        try:
            content = json.loads(Path(path).read_bytes())
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path} is no JSON: {error}") from None
        try:
            messages = checked_messages(content["messages"])
        except (KeyError, TypeError, TokenizerError) as error:
            raise FormatError(f"{path} holds no conversation: {error}") from None
        # Content in several parts is no text to set: such a message stays one of the messages.
        has_prompt = messages[0]["role"] == "system" and isinstance(messages[0].get("content"), str)
        self.system_prompt = messages[0]["content"] if has_prompt else None
        self.messages = [dict(message) for message in messages[has_prompt:]]

    def _said(self, asked: dict[str, Any], reply: Reply) -> None:
        self.messages += [asked, {"role": "assistant", "content": reply.text}]

    def _ask(self, messages: list[dict[str, Any]]) -> Reply:
        try:
            return self._reply(messages)
        except ContextLengthError as error:
            kept = self._trimmed(messages, error.limit) if self._trim else None
            if kept is None:
                raise
            return self._reply(kept)

    def _trimmed(self, messages: Sequence[Mapping[str, Any]], limit: int) -> list[Mapping[str, Any]] | None:
        """Return the newest turns that fit into a context; None if not even the last one does."""
        # A quarter of the context, or less where less is wanted, is left for the reply. The last turn may be
        # so long that it leaves less.
        wanted = min(self._options.get("max_new_tokens", _MAX_NEW_TOKENS), limit // 4)
        options = {"system_prompt": self.system_prompt, **self._template_options()}
        for room in (wanted, 1):
            with suppress(ContextLengthError):
                return self.tokenizer.trim_messages(messages, max(limit - room, 1), **options)
        return None

    def _reply(self, messages: Sequence[Mapping[str, Any]]) -> Reply:
        return self.tokenizer.chat(
            messages, self._model, system_prompt=self.system_prompt, stream=True, **self._options
        )

    def _template_options(self) -> dict[str, Any]:
        """Return what of the options is about the template."""
        return {name: value for name, value in self._options.items() if name not in _OF_CHAT}
