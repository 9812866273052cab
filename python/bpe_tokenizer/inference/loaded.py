"""What an adapter gives: a loaded model, token ids in, token ids out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from bpe_tokenizer.inference.options import GenerationOptions

__all__ = ["Cancellation", "LoadedModel"]


class Cancellation:
    """Asks a running generation to end; may be used from any thread.

    >>> cancellation = Cancellation()
    >>> cancellation.call(lambda: print("closing the connection"))
    >>> cancellation.cancel()
    closing the connection
    >>> cancellation.is_cancelled
    True
    """

    def __init__(self) -> None:
        # A garbage collection may close a generation while its thread is in here.
        self._lock = threading.RLock()
        self._callbacks: list[Callable[[], object]] = []
        self._is_cancelled = False

    @property
    def is_cancelled(self) -> bool:
        """Whether it was asked."""
        return self._is_cancelled

    def cancel(self) -> None:
        """Ask; more than once does no harm."""
        with self._lock:
            self._is_cancelled = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def call(self, callback: Callable[[], object]) -> None:
        """Have something called once when it is asked, or at once if it was: what wakes a waiting engine."""
        with self._lock:
            if not self._is_cancelled:
                self._callbacks.append(callback)
                return
        callback()


class LoadedModel(Protocol):
    """A model that an engine has loaded: what there is one adapter a backend for.

    `LanguageModel` does the rest for all of them alike: it checks ids and lengths, stops at stop ids, and
    lets one generation run at a time.
    """

    @property
    def vocab_size(self) -> int | None:
        """Ids below it have a row in the embedding; None if it is not known."""
        ...

    @property
    def context_length(self) -> int | None:
        """The most ids of a prompt and what is generated together; None if it is not known."""
        ...

    def generate(
        self, ids: Sequence[int], options: GenerationOptions, cancellation: Cancellation
    ) -> Iterator[int]:
        """Yield one id after the other, each as soon as it is sampled.

        Args:
            ids: The prompt: at least one id, all of them below `vocab_size`, shorter than `context_length`.
            options: `max_new_tokens` fits into the context. An engine may stop at `stop_ids` by itself, if it
                yields the stop id.
            cancellation: Asks to end within a token. The iterator may also be closed between two ids.
        """
        ...

    def close(self) -> None:
        """Free its memory."""
        ...
