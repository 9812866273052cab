"""A conversation with a language model, turn by turn."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import write_atomically
from bpe_tokenizer.chat.messages import checked_messages, with_system_prompt
from bpe_tokenizer.chat.options import TemplateOptions, check_option_names
from bpe_tokenizer.chat.reply import Reply
from bpe_tokenizer.chat.segment import Segment
from bpe_tokenizer.errors import ContextLengthError, FormatError, OptionError, TokenizerError, shorten
from bpe_tokenizer.inference import LanguageModel

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["ChatSession"]

# The arguments of `chat` that the session passes itself, and the name of its other options.
_OWN = {"messages", "model_path", "system_prompt", "stream", "options"}
_Path = str | os.PathLike[str]


class ChatSession:
    """A conversation with a language model, with its history.

    A turn that fails is removed from the history, so that it can be repeated. The text of a reply that is
    ended early stays. The end of a `with` block ends a running reply. A model that the session loaded stays
    in the cache; `inference.free_models` frees it.

    Args:
        model: A GGUF file, a model directory, the address of a server, or a `LanguageModel`.
        tokenizer: The tokenizer; None for the model's own.
        system_prompt: The system message of the conversation.
        trim: Drop the oldest turns from a prompt that does not fit into the context. They stay in `messages`.
        **options: Arguments of `BPETokenizer.chat` for every turn: `template`, `temperature`, `seed`, ...

    Raises:
        FormatError: The model's own tokenizer cannot be represented.
        OptionError: The model does not exist, or has no tokenizer.

    >>> from bpe_tokenizer import BPETokenizer
    >>> control = ["<|im_start|>", "<|im_end|>"]
    >>> tokenizer = BPETokenizer().train("user user", 261, special_tokens=control, verbose=False)
    >>> class Parrot:
    ...     vocab_size, context_length = 261, 1000
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
                raise OptionError("a LanguageModel has no tokenizer: pass tokenizer=")
            # The only use of the class: this room is imported without it.
            from bpe_tokenizer.tokenizer import BPETokenizer

            tokenizer = BPETokenizer.for_model(model)
        self.tokenizer = tokenizer
        self.system_prompt = system_prompt
        self.messages: list[dict[str, Any]] = []
        self.reply: Reply | None = None
        self._model = model
        self._trim = trim
        self._options = options
        of_chat = inspect.signature(tokenizer.chat).parameters.keys() - _OWN
        others = {name: value for name, value in options.items() if name not in of_chat}
        check_option_names(type(self).__name__, tokenizer.chat, others)

    def __repr__(self) -> str:
        prompt = "" if self.system_prompt is None else f", system_prompt={shorten(self.system_prompt)}"
        name = self._model if isinstance(self._model, LanguageModel) else shorten(os.fspath(self._model))
        return f"{type(self).__name__}({name!s}, messages={len(self.messages)}{prompt})"

    def __enter__(self) -> ChatSession:
        """Return itself; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End a running reply, and wait until the model is free again. The session can be used further."""
        if self.reply is not None:
            self.reply.close()

    def send(self, text: str) -> Generator[str, None, None]:
        """Send a user message, and yield the text of the reply as it arrives.

        The turn is added to `messages` when the reply ends or the iterator is closed. `reply` is the running
        or the last reply; None if it could not start.

        Args:
            text: The user's message.

        Yields:
            Text of the reply. The errors are those of `BPETokenizer.chat`.
        """
        asked = {"role": "user", "content": text}
        self.reply = None
        self.reply = reply = self._ask([*self.conversation(), asked])
        try:
            with reply:
                yield from reply
        except (GeneratorExit, KeyboardInterrupt):
            if reply.text:
                self._commit(asked, reply)
            raise
        self._commit(asked, reply)

    def undo(self) -> bool:
        """Remove the last turn: the last user message, and the reply.

        Returns:
            Whether a turn was removed.
        """
        users = [number for number, message in enumerate(self.messages) if message["role"] == "user"]
        del self.messages[users[-1] if users else len(self.messages) :]
        return bool(users)

    def reset(self) -> None:
        """Remove all messages; the system prompt stays."""
        self.messages.clear()

    def conversation(self) -> list[dict[str, Any]]:
        """Return all messages, with the system prompt in front: what the next turn follows."""
        # Not the argument `system_prompt` of the methods, which a system message further down replaces.
        first, _ = with_system_prompt([], self.system_prompt)
        return [*(dict(message) for message in first), *self.messages]

    def segments(self) -> list[tuple[Segment, list[int]]]:
        """Return the segments of the rendered conversation, each with its ids."""
        return self.tokenizer.chat_segments(self.conversation(), **self._template_options())

    def save(self, path: _Path) -> None:
        """Write the conversation to a file: JSON with `messages`, the format of training datasets.

        Args:
            path: The file, which is replaced atomically.

        Raises:
            OptionError: The conversation is empty. `load` refuses such a file.
        """
        messages = checked_messages(self.conversation())
        text = json.dumps({"messages": messages}, ensure_ascii=False, indent=2)
        data = (text + "\n").encode("utf-8", "surrogatepass")
        write_atomically({check_path("path", path): data})

    def load(self, path: _Path) -> None:
        """Continue a conversation from a file of `save`.

        Args:
            path: The file.

        Raises:
            FormatError: The file cannot be read, or does not hold a conversation.
        """
        from bpe_tokenizer.formats.files import read_bytes

        try:
            content = json.loads(read_bytes(check_path("path", path)))
        except FormatError:
            raise
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path} is not JSON: {error}") from None
        if not isinstance(content, dict) or "messages" not in content:
            raise FormatError(f"{path} does not hold a conversation: it is not an object with 'messages'")
        try:
            messages = checked_messages(content["messages"])
        except TokenizerError as error:
            raise FormatError(f"{path} does not hold a conversation: {error}") from None
        # `system_prompt` is a text: a system message with parts, or with other fields, stays in the messages.
        first = messages[0]
        is_text = first.keys() == {"role", "content"} and isinstance(first["content"], str)
        has_prompt = first["role"] == "system" and is_text
        self.system_prompt = first["content"] if has_prompt else None
        self.messages = [dict(message) for message in messages[has_prompt:]]

    def _commit(self, asked: dict[str, Any], reply: Reply) -> None:
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
        """Return the newest turns that fit into a context; None if not even the last one fits."""
        # Leave a quarter of the context for the reply, or less if less is requested or the last turn is long.
        default = inspect.signature(self.tokenizer.chat).parameters["max_new_tokens"].default
        wanted = min(self._options.get("max_new_tokens", default), limit // 4)
        options = self._template_options()
        for room in (wanted, 1):
            with suppress(ContextLengthError):
                return self.tokenizer.trim_messages(messages, max(limit - room, 1), **options)
        return None

    def _reply(self, messages: Sequence[Mapping[str, Any]]) -> Reply:
        return self.tokenizer.chat(messages, self._model, stream=True, **self._options)

    def _template_options(self) -> dict[str, Any]:
        """Return the options that concern the template."""
        names = {"template", *TemplateOptions.__annotations__}
        return {name: value for name, value in self._options.items() if name in names}
