"""A language model: the checks, stop ids and locking that all engines share."""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from collections.abc import Collection, Sequence

from bpe_tokenizer.errors import ArgumentTypeError, ContextLengthError, GenerationError, OptionError, shorten
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.engine_model import EngineModel
from bpe_tokenizer.inference.fair_lock import FairLock
from bpe_tokenizer.inference.generation import Generation
from bpe_tokenizer.inference.options import GenerationOptions

__all__ = ["LanguageModel"]


class LanguageModel:
    """A model that is ready to generate: token ids in, token ids out, one at a time.

    `load_model` returns one. The constructor takes any object with the methods of `EngineModel`. Threads and
    tasks can share it: one generation runs at a time, and the others wait in the order of their start.

    Args:
        engine_model: The model that an engine has loaded.
        name: The name in error messages, such as the path of its file.
        backend: The engine; None for your own one.
        stop_ids: The ids that end a reply, from the model's own files. They do not end a generation:
            `GenerationOptions.stop_ids` does.

    >>> class Counting:
    ...     vocab_size, context_length = 100, 8
    ...     def generate(self, ids, options, cancellation):
    ...         yield from range(ids[-1] + 1, 100)
    ...     def close(self):
    ...         pass
    >>> model = LanguageModel(Counting(), "counting")
    >>> generation = model.generate([3, 4], GenerationOptions(stop_ids=frozenset({9})))
    >>> list(generation), generation.finish_reason, generation.stop_id
    ([5, 6, 7, 8], 'stop', 9)
    >>> generation = model.generate([3, 4])
    >>> list(generation), generation.finish_reason
    ([5, 6, 7, 8, 9, 10], 'length')
    """

    def __init__(
        self,
        engine_model: EngineModel,
        name: str = "",
        backend: InferenceBackend | None = None,
        stop_ids: Collection[int] = (),
    ) -> None:
        self.name = name
        self.backend = backend
        self.stop_ids = frozenset(stop_ids)
        self._engine_model: EngineModel | None = engine_model
        self._process = os.getpid()
        # Re-entrant, because a signal handler can close the model inside `generate`.
        self._state_lock = threading.RLock()
        self._fair_lock = FairLock()
        self._generations: weakref.WeakSet[Generation] = weakref.WeakSet()

    def __repr__(self) -> str:
        backend = "" if self.backend is None else f", backend={self.backend.name}"
        closed = ", closed" if self.is_closed else ""
        return f"{type(self).__name__}({shorten(self.name, 160)}{backend}{closed})"

    @property
    def vocab_size(self) -> int | None:
        """The number of rows of the embedding, which can exceed the tokenizer's; None if unknown."""
        return self._open().vocab_size

    @property
    def context_length(self) -> int | None:
        """The maximum number of ids in a prompt and its continuation together; None if unknown."""
        return self._open().context_length

    @property
    def is_closed(self) -> bool:
        """Whether its memory was freed, or this process was forked from the one that loaded it."""
        return self._engine_model is None or self._process != os.getpid()

    def generate(self, ids: Sequence[int], options: GenerationOptions | None = None) -> Generation:
        """Generate the ids that continue a prompt.

        Args:
            ids: The prompt: at least one id, and fewer than `context_length`, so that one id has room.
            options: How to generate; None for the defaults. The end of the context ends the generation too.

        Returns:
            The generation, which starts with the request for its first id.

        Raises:
            ArgumentTypeError: `ids` are not integers, or `options` has another type.
            ContextLengthError: The prompt leaves no room in the context. The error has both lengths.
            GenerationError: The model was closed.
            OptionError: `ids` is empty, or an id is not in the model's vocabulary.
        """
        engine_model = self._open()
        options = GenerationOptions() if options is None else options
        if not isinstance(options, GenerationOptions):
            raise ArgumentTypeError(f"options must be GenerationOptions, not {type(options).__name__}")
        prompt = _checked_ids(ids, engine_model.vocab_size)
        limit = engine_model.context_length
        if limit is not None:
            if len(prompt) >= limit:
                raise ContextLengthError(
                    f"the prompt has {len(prompt)} ids, and the context of {self.name or 'the model'} holds "
                    f"{limit}: at most {limit - 1} leave room for an answer. A larger n_ctx may hold more",
                    len(prompt),
                    limit,
                )
            room = min(options.max_new_tokens, limit - len(prompt))
            options = dataclasses.replace(options, max_new_tokens=room)
        generation = Generation(engine_model, self._fair_lock, prompt, options)
        with self._state_lock:
            self._open()
            self._generations.add(generation)
        return generation

    def close(self) -> None:
        """Free the model's memory, and cancel its running and waiting generations."""
        with self._state_lock:
            engine_model, self._engine_model = self._engine_model, None
            generations = list(self._generations)
        if self._process != os.getpid():
            return  # The engine's threads and devices belong to the process that loaded it.
        for generation in generations:
            generation.close()
        # A signal handler can run this during a step of the engine in the same thread. Then the memory is
        # freed after the step, with the last reference.
        has_ended = all(generation.finish_reason is not None for generation in generations)
        if engine_model is not None and has_ended:
            engine_model.close()

    def __enter__(self) -> LanguageModel:
        """Return itself; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> EngineModel:
        if self._engine_model is None:
            raise GenerationError(f"{self.name or 'the model'} was closed: load it again")
        if self._process != os.getpid():
            raise GenerationError(
                f"{self.name or 'the model'} was loaded before this process was forked: load it again in here"
            )
        return self._engine_model


def _checked_ids(ids: Sequence[int], vocab_size: int | None) -> list[int]:
    """Return the ids as a list of int. Engines answer unknown ids with garbage or a crash."""
    checked: list[int] = []
    try:
        for token_id in ids:
            if isinstance(token_id, bool):
                raise TypeError
            checked.append(token_id.__index__())
    except (TypeError, AttributeError):
        raise ArgumentTypeError(
            f"ids must be a sequence of integers; ids[{len(checked)}] is not an integer"
        ) from None
    if not checked:
        raise OptionError("the prompt is empty: a model needs at least one id, such as the BOS token's")
    for at, token_id in enumerate(checked):
        if token_id < 0 or (vocab_size is not None and token_id >= vocab_size):
            known = "" if vocab_size is None else f", whose ids are below {vocab_size}"
            raise OptionError(f"ids[{at}] = {token_id} is not in the model's vocabulary{known}")
    return checked
