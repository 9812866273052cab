"""The protocol of a loaded model: token ids in, token ids out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from bpe_tokenizer.inference.options import GenerationOptions

__all__ = ["Cancellation", "EngineModel"]


class Cancellation:
    """Asks a running generation to end, from any thread.

    >>> cancellation = Cancellation()
    >>> cancellation.call(lambda: print("closing the connection"))
    >>> cancellation.cancel()
    closing the connection
    >>> cancellation.is_cancelled
    True
    """

    def __init__(self) -> None:
        # Re-entrant, because a garbage collection inside these methods can close a generation.
        self._lock = threading.RLock()
        self._callbacks: list[Callable[[], object]] = []
        self._is_cancelled = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(is_cancelled={self._is_cancelled})"

    @property
    def is_cancelled(self) -> bool:
        """Whether the generation has to end."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Ask the generation to end. Can be called more than once."""
        with self._lock:
            self._is_cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def call(self, callback: Callable[[], object]) -> None:
        """Call a function at the cancellation, or now if it is cancelled: it wakes a waiting engine."""
        with self._lock:
            if not self._is_cancelled:
                self._callbacks.append(callback)
                return
        callback()


class EngineModel(Protocol):
    """The protocol of a model that an engine has loaded.

    `LanguageModel` adds what all engines share: it checks ids and lengths, stops at stop ids, and runs one
    generation at a time.
    """

    @property
    def vocab_size(self) -> int | None:
        """The number of rows of the embedding; None if unknown."""
        ...

    @property
    def context_length(self) -> int | None:
        """The maximum number of ids in a prompt and its continuation together; None if unknown."""
        ...

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield each id as soon as it is sampled.

        Args:
            ids: The prompt: at least one id, all of them below `vocab_size`, shorter than `context_length`.
            options: `max_new_tokens` fits into the context. An engine may stop at one of `stop_ids` itself
                after yielding it.
            cancellation: Asks to end within a token. The caller may also close the iterator between two ids.
        """
        ...

    def close(self) -> None:
        """Free its memory."""
        ...
