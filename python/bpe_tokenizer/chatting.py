"""Replies of language models: our ids go in, and what comes out goes through our decoder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from bpe_tokenizer.chat.messages import Messages
from bpe_tokenizer.chat_encoding import ChatTemplateLike
from bpe_tokenizer.conversations import Conversations
from bpe_tokenizer.errors import OptionError, UnknownIdError
from bpe_tokenizer.inference import (
    FinishReason,
    Generation,
    GenerationOptions,
    InferenceBackend,
    LanguageModel,
    check_match,
    kind_of,
    load_model,
    tokenizer_path,
)
from bpe_tokenizer.inference.source import FileStates, file_states
from bpe_tokenizer.streaming import StreamDecoder

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Chatting", "Reply"]

_Path = str | os.PathLike[str]


class Reply(Iterator[str], AsyncIterator[str]):
    """The text of a reply as it is generated, for `for` and `async for`; never a part of a character.

    `BPETokenizer.chat(..., stream=True)` makes one. It begins when the first text is asked for.

    Args:
        generation: The ids.
        decoder: Turns them into text.

    Attributes:
        generation: The ids so far, why they ended, and the id that ended them.
        text: The text so far.
    """

    def __init__(self, generation: Generation, decoder: StreamDecoder) -> None:
        self.generation = generation
        self.text = ""
        self._decoder = decoder
        self._begin: float | None = None
        self._first: float | None = None
        self._last: float | None = None
        self._flushed = False

    @property
    def prompt_tokens(self) -> int:
        """How many ids the prompt has."""
        return self.generation.prompt_tokens

    @property
    def new_tokens(self) -> int:
        """How many ids were generated so far."""
        return self.generation.new_tokens

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the reply ended: `"stop"`, `"length"`, `"cancelled"`, `"error"`; None before."""
        return self.generation.finish_reason

    @property
    def seconds_to_first_token(self) -> float | None:
        """How long the first id took; None before it is there."""
        return None if self._first is None or self._begin is None else self._first - self._begin

    @property
    def tokens_per_second(self) -> float | None:
        """How many ids came in a second behind the first; None before there are two."""
        if self._first is None or self._last is None or self._last <= self._first or self.new_tokens < 2:
            return None
        return (self.new_tokens - 1) / (self._last - self._first)

    def summary(self) -> str:
        """Return how long the reply is and how fast it came, for people.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("user user", 259, verbose=False)
        >>> class Silence:
        ...     vocab_size, context_length = 259, 1000
        ...     def generate(self, ids, options, cancellation):
        ...         yield from ()
        ...     def close(self):
        ...         pass
        >>> talk = [{"role": "user", "content": "Why?"}]
        >>> reply = tokenizer.chat(talk, LanguageModel(Silence()), "chatml", stream=True)
        >>> list(reply), reply.summary()
        ([], '0 tokens after a prompt of 51 (stop)')
        """
        speed = self.tokens_per_second
        fast = f", {speed:.1f} tokens/s" if speed is not None else ""
        ended = f" ({self.finish_reason})" if self.finish_reason is not None else ""
        return f"{self.new_tokens} tokens after a prompt of {self.prompt_tokens}{fast}{ended}"

    def cancel(self) -> None:
        """Ask it to end within a token; from any thread. Returns at once."""
        self.generation.cancel()

    def close(self) -> None:
        """End it, and wait until the model can be used again."""
        self.generation.close()

    async def aclose(self) -> None:
        """The same without blocking the loop; with `contextlib.aclosing`, at the end of a block."""
        await self.generation.aclose()

    def __enter__(self) -> Reply:
        """Return itself; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Reply:
        return self

    def __next__(self) -> str:
        """Return the text that the next ids complete.

        Raises:
            GenerationError: The engine failed.
        """
        self._started()
        for token_id in self.generation:
            if text := self._received(token_id):
                return text
        if text := self._rest():
            return text
        raise StopIteration

    def __aiter__(self) -> Reply:
        return self

    async def __anext__(self) -> str:
        """Return the text that the next ids complete, without blocking the loop."""
        self._started()
        async for token_id in self.generation:
            if text := self._received(token_id):
                return text
        if text := self._rest():
            return text
        raise StopAsyncIteration

    def _started(self) -> None:
        if self._begin is None:
            self._begin = time.perf_counter()

    def _received(self, token_id: int) -> str:
        self._last = time.perf_counter()
        if self._first is None:
            self._first = self._last
        try:
            text = self._decoder.step(token_id)
        except UnknownIdError:
            # The embeddings of many models have more rows than there are tokens, and any may be drawn.
            text = self._decoder.flush() + "\ufffd"
        self.text += text
        return text

    def _rest(self) -> str:
        if self._flushed:
            return ""
        self._flushed = True
        text = self._decoder.flush()
        self.text += text
        return text


class Chatting(Conversations):
    """The part of `BPETokenizer` that talks to language models; see there."""

    @classmethod
    def for_model(cls, model_path: _Path) -> Self:
        """Load the tokenizer that a language model has in its own files.

        Args:
            model_path: A GGUF file or a model directory.

        Raises:
            FormatError: The tokenizer cannot be represented.
            OptionError: There is no such model, or it has no tokenizer, as behind the address of a server.
        """
        path = tokenizer_path(model_path)
        if path is None:
            raise OptionError(
                f"{os.fspath(model_path)} comes without a tokenizer of a known format: load the one that it "
                "was trained with, such as BPETokenizer.load(directory)"
            )
        state = _state(model_path)
        tokenizer = cls.load(path)
        # It need not be read again to be compared with itself.
        tokenizer._trained().matching_models.add(state)
        return tokenizer

    @overload
    def chat(
        self,
        messages: Messages,
        model_path: _Path | LanguageModel,
        template: ChatTemplateLike = None,
        system_prompt: str | None = None,
        max_new_tokens: int = 512,
        temperature: float = 0.7,
        top_p: float = 0.9,
        backend: InferenceBackend | str | None = None,
        n_gpu_layers: int = -1,
        n_ctx: int = 8192,
        seed: int | None = None,
        stream: Literal[False] = False,
        verbose: bool = False,
        *,
        stop_ids: Collection[int] = (),
        **options: Any,
    ) -> str: ...
    @overload
    def chat(
        self,
        messages: Messages,
        model_path: _Path | LanguageModel,
        template: ChatTemplateLike = None,
        system_prompt: str | None = None,
        max_new_tokens: int = 512,
        temperature: float = 0.7,
        top_p: float = 0.9,
        backend: InferenceBackend | str | None = None,
        n_gpu_layers: int = -1,
        n_ctx: int = 8192,
        seed: int | None = None,
        *,
        stream: Literal[True],
        verbose: bool = False,
        stop_ids: Collection[int] = (),
        **options: Any,
    ) -> Reply: ...
    def chat(
        self,
        messages: Messages,
        model_path: _Path | LanguageModel,
        template: ChatTemplateLike = None,
        system_prompt: str | None = None,
        max_new_tokens: int = 512,
        temperature: float = 0.7,
        top_p: float = 0.9,
        backend: InferenceBackend | str | None = None,
        n_gpu_layers: int = -1,
        n_ctx: int = 8192,
        seed: int | None = None,
        stream: bool = False,
        verbose: bool = False,
        *,
        stop_ids: Collection[int] = (),
        api_key: str | None = None,
        timeout: float = 600.0,
        **options: Any,
    ) -> str | Reply:
        """Let a language model reply to a conversation.

        The prompt is the ids of `apply_chat_template`, so no message can forge another's turn, and the reply
        ends at an id of `stop_token_ids`, or at a special token that the model's own files name as an end, as
        those of Llama 3.1 do with `<|eom_id|>`. An id without a token, such as a row that pads the embedding,
        is U+FFFD in the text. The model stays loaded (`inference.free_models` frees it), and is
        checked to be one for this tokenizer before anything is generated.

        Args:
            messages: The messages, as `apply_chat_template` takes them.
            model_path: A GGUF file; a model directory; the address of a server, `http://host:port`; or a
                `LanguageModel`.
            template: The template; None for the tokenizer's own.
            system_prompt: A system message for conversations without one.
            max_new_tokens: The most ids to generate.
            temperature: 0 always takes the likeliest id.
            top_p: Of the likeliest ids, those whose probabilities sum up to this are drawn from.
            backend: An `InferenceBackend` or its name; None for the best that can load the model.
            n_gpu_layers: llama.cpp: how many layers the GPU computes; -1 for all.
            n_ctx: The most ids of prompt and reply together, at most what the model was made for.
            seed: The same seed gives the same reply, on the same backend and machine.
            stream: Return the text as it comes.
            verbose: Say on stderr which model replied, how long and how fast; not of streams.
            stop_ids: Further ids that end the reply.
            api_key: Servers: the key that they ask for.
            timeout: Servers: seconds to wait for a connection, and for each piece of the reply.
            **options: `tools`, `documents`, `continue_final_message`, and variables of the template.

        Returns:
            The reply; a `Reply`, which is an iterator of its text, if it is streamed.

        Raises:
            ContextLengthError: The prompt does not fit into the context; it has both lengths.
            GenerationError: The engine cannot load the model, or fails.
            MismatchError: The tokenizer is not the model's.
            MissingDependencyError: The backend is not installed; says how to install it.
            OptionError: An option is out of range, or nothing can load such a model.

        Other errors are those of `apply_chat_template`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("user user", 259, verbose=False)
        >>> class Parrot:
        ...     vocab_size, context_length = 259, 1000
        ...     def generate(self, ids, options, cancellation):
        ...         yield from tokenizer.encode("Why?")
        ...     def close(self):
        ...         pass
        >>> talk = [{"role": "user", "content": "Say: Why?"}]
        >>> tokenizer.chat(talk, LanguageModel(Parrot(), "parrot"), "chatml")
        'Why?'
        """
        prompt = self.apply_chat_template(
            messages, template, not options.get("continue_final_message"), system_prompt, **options
        )
        stops = {*self.stop_token_ids(template, **options), *stop_ids}
        chosen = GenerationOptions(max_new_tokens, temperature, top_p, seed, frozenset(stops))
        if isinstance(model_path, LanguageModel):
            model = model_path
        else:
            loading = {"n_gpu_layers": n_gpu_layers, "n_ctx": n_ctx, "api_key": api_key, "timeout": timeout}
            model = self._load(model_path, backend, **loading)
        # Special tokens alone: no file can make a word end every reply.
        stops |= model.stop_ids.intersection(self._trained().special.values())
        generation = model.generate(prompt, replace(chosen, stop_ids=frozenset(stops)))
        reply = Reply(generation, StreamDecoder(self, skip_special_tokens=True))
        if stream:
            return reply
        with reply:
            text = "".join(reply)
        if verbose:
            print(f"{model}: {reply.summary()}", file=sys.stderr)
        return text

    async def chat_async(
        self, messages: Messages, model_path: _Path | LanguageModel, *args: Any, **options: Any
    ) -> str | Reply:
        """Let a language model reply without blocking the loop; the arguments and errors are those of `chat`.

        Returns:
            The reply; a `Reply` for `async for`, if it is streamed.

        >>> import asyncio
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("user user", 259, verbose=False)
        >>> class Parrot:
        ...     vocab_size, context_length = 259, 1000
        ...     def generate(self, ids, options, cancellation):
        ...         yield from tokenizer.encode("Why?")
        ...     def close(self):
        ...         pass
        >>> parrot = LanguageModel(Parrot(), "parrot")
        >>> talk = [{"role": "user", "content": "Say: Why?"}]
        >>> async def reply():
        ...     texts = await tokenizer.chat_async(talk, parrot, "chatml", stream=True)
        ...     return [text async for text in texts]
        >>> asyncio.run(reply())
        ['W', 'h', 'y', '?']
        """
        import asyncio  # takes longer than the rest of this package to import

        streams = options.pop("stream", False)
        chat = partial(self.chat, messages, model_path, *args, **options)
        reply = cast("Reply", await asyncio.to_thread(chat, stream=True))
        if streams:
            return reply
        try:
            async for _ in reply:
                pass
        finally:
            await reply.aclose()
        if options.get("verbose"):
            print(f"{model_path}: {reply.summary()}", file=sys.stderr)
        return reply.text

    def _load(
        self, model_path: _Path, backend: InferenceBackend | str | None, **options: Any
    ) -> LanguageModel:
        """Load a model that this tokenizer is made for."""
        snapshot = self._trained()
        kind_of(model_path)  # is there such a model?
        state = _state(model_path)
        if state in snapshot.matching_models:
            return load_model(model_path, backend, **options)
        tokens = snapshot.model.core.vocab
        check_match(model_path, tokens)  # what can be told without loading it
        model = load_model(model_path, backend, **options)
        check_match(model_path, tokens, model.vocab_size)
        snapshot.matching_models.add(state)
        return model


def _state(model_path: _Path) -> tuple[str, FileStates]:
    """Return what is another one when a model on disk changes."""
    return os.fspath(model_path), file_states(model_path)
