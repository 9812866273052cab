"""Tasks on an engine, and values that each process of the engine loads once."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Sent", "Tasks"]

_Shared = TypeVar("_Shared")
_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

# The value that this process loaded last, by its key: a process runs many tasks of one job in sequence.
_loaded: dict[str, Any] = {}


class Sent(Generic[_Shared]):
    """A value that is sent to the processes of an engine, and is loaded once in each.

    Loading a tokenizer takes up to a second, which a task should not pay again.

    Args:
        value: A value that can be pickled.

    >>> sent = pickle.loads(pickle.dumps(Sent([1, 2])))
    >>> sent.load() is sent.load()
    True
    """

    def __init__(self, value: _Shared) -> None:
        self._pickled = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        self._key = hashlib.sha256(self._pickled).hexdigest()

    def load(self) -> _Shared:
        """Return the value."""
        if self._key not in _loaded:
            value = pickle.loads(self._pickled)
            _loaded.clear()
            _loaded[self._key] = value
        loaded: _Shared = _loaded[self._key]
        return loaded


class Tasks(Protocol):
    """An engine that runs functions on many machines.

    A task may run several times: it is repeated when its process dies, and an engine may run a slow task
    twice. So a function must give the same result each time, and write a file completely or not at all.
    """

    def run(
        self,
        work: Callable[[_Shared, _Argument], _Result],
        shared: _Shared,
        arguments: Sequence[_Argument],
    ) -> Iterator[tuple[int, _Result]]:
        """Call a function with each argument.

        Args:
            work: The function. The engine pickles it.
            shared: Its first argument, sent to each process once.
            arguments: Its second argument in each task.

        Yields:
            The index of an argument and the result, as soon as the engine returns it.

        Raises:
            TokenizerError: A task failed with this error.
        """
        ...
