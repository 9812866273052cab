"""A language model: what every backend has in common, over what an adapter gives."""

from __future__ import annotations

import dataclasses
import os
import threading
import weakref
from collections.abc import Collection, Sequence

from bpe_tokenizer.errors import ArgumentTypeError, ContextLengthError, GenerationError, OptionError
from bpe_tokenizer.inference.backend import InferenceBackend
from bpe_tokenizer.inference.generation import Generation
from bpe_tokenizer.inference.loaded import LoadedModel
from bpe_tokenizer.inference.options import GenerationOptions
from bpe_tokenizer.inference.turns import Turns

__all__ = ["LanguageModel"]


class LanguageModel:
    """A model that is ready to generate: token ids in, token ids out, one at a time.

    `load_model` makes one; any object with the methods of `LoadedModel` can be made one too. Threads and
    tasks may share it: one generation runs at a time, the others wait in the order in which they began.

    Args:
        loaded: What an engine has loaded.
        name: What messages call it, such as the path of its file.
        backend: Which engine it is; None for one of your own.
        stop_ids: The ids that the model's own files say end a reply. A generation ends at none of them by
            itself: `GenerationOptions.stop_ids` says at which it does.

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
        loaded: LoadedModel,
        name: str = "",
        backend: InferenceBackend | None = None,
        stop_ids: Collection[int] = (),
    ) -> None:
        self.name = name
        self.backend = backend
        self.stop_ids = frozenset(stop_ids)
        self._loaded: LoadedModel | None = loaded
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._turns = Turns()
        self._generations: weakref.WeakSet[Generation] = weakref.WeakSet()

    def __repr__(self) -> str:
        backend = "" if self.backend is None else f", backend={self.backend.name}"
        return f"{type(self).__name__}({self.name!r}{backend})"

    @property
    def vocab_size(self) -> int | None:
        """Its embedding has so many rows, perhaps more than its tokenizer has ids; None if not known."""
        return self._open().vocab_size

    @property
    def context_length(self) -> int | None:
        """The most ids of a prompt and what is generated together; None if it is not known."""
        return self._open().context_length

    @property
    def is_closed(self) -> bool:
        """Whether its memory was freed, or it was loaded before this process was forked from another."""
        return self._loaded is None or self._process != os.getpid()

    def generate(self, ids: Sequence[int], options: GenerationOptions | None = None) -> Generation:
        """Generate ids that go on from a prompt.

        Args:
            ids: The prompt: at least one id, and fewer than the context holds, so that there is room for one.
            options: How to generate; None for the defaults. Where the context ends before `max_new_tokens`,
                the generation ends with it.

        Returns:
            The generation, which begins when its first id is asked for.

        Raises:
            ArgumentTypeError: `ids` are not integers, or `options` something else.
            ContextLengthError: The prompt leaves no room in the context; holds both lengths.
            GenerationError: The model was closed.
            OptionError: There are no ids, or one is not in the model's vocabulary.
        """
        loaded = self._open()
        options = GenerationOptions() if options is None else options
        if not isinstance(options, GenerationOptions):
            raise ArgumentTypeError(f"options must be GenerationOptions, not {type(options).__name__}")
        prompt = _checked_ids(ids, loaded.vocab_size)
        limit = loaded.context_length
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
        generation = Generation(loaded, self._turns, prompt, options)
        with self._lock:
            self._open()
            self._generations.add(generation)
        return generation

    def close(self) -> None:
        """Free the model's memory; generations that run or wait are cancelled."""
        with self._lock:
            loaded, self._loaded = self._loaded, None
            generations = list(self._generations)
        if self._process != os.getpid():
            return  # What an engine does in threads and on devices belongs to the process that loaded it.
        for generation in generations:
            generation.close()
        # The handler of a signal may be here while the engine is at a step of this thread: then the memory is
        # freed after that, with the last reference.
        has_ended = all(generation.finish_reason is not None for generation in generations)
        if loaded is not None and has_ended:
            loaded.close()

    def __enter__(self) -> LanguageModel:
        """Return itself; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> LoadedModel:
        if self._loaded is None:
            raise GenerationError(f"{self.name or 'the model'} was closed: load it again")
        if self._process != os.getpid():
            raise GenerationError(
                f"{self.name or 'the model'} was loaded before this process was forked: load it again in here"
            )
        return self._loaded


def _checked_ids(ids: Sequence[int], vocab_size: int | None) -> list[int]:
    """Return the ids as a list; engines answer those that they do not know with garbage or a crash."""
    checked: list[int] = []
    try:
        for token_id in ids:
            if isinstance(token_id, bool):
                raise TypeError
            checked.append(token_id.__index__())
    except (TypeError, AttributeError):
        raise ArgumentTypeError(
            f"ids must be a sequence of integers; {len(checked)} items in, something else comes"
        ) from None
    if not checked:
        raise OptionError("the prompt is empty: a model needs at least one id, such as the BOS token's")
    for at, token_id in enumerate(checked):
        if token_id < 0 or (vocab_size is not None and token_id >= vocab_size):
            known = "" if vocab_size is None else f", whose ids are below {vocab_size}"
            raise OptionError(f"ids[{at}] = {token_id} is not in the model's vocabulary{known}")
    return checked
