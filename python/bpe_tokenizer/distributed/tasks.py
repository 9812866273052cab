"""Tasks on an engine, and values that each process of the engine loads once."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from bpe_tokenizer.distributed.arrow import check_column
from bpe_tokenizer.options import ReadOptions, field_names

__all__ = ["Sent", "Tasks", "only_column"]

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

    def rows(self, source: Any, read: ReadOptions) -> Any:
        """Return the engine's own dataset, without columns that documents need not; None for files."""
        ...

    def map_rows(
        self, work: Callable[[_Shared, Iterator[Any]], Iterator[_Result]], rows: Any, shared: _Shared
    ) -> Iterator[_Result]:
        """Call a function with the record batches of each part of a dataset, and yield its results.

        Args:
            work: The function.
            rows: The dataset.
            shared: Its first argument, as in `run`.

        Raises:
            TokenizerError: As in `run`.
        """
        ...

    def write_rows(
        self, write: Callable[[_Shared, int, Iterator[Any]], _Result], rows: Any, shared: _Shared
    ) -> Iterable[_Result]:
        """Call a function with the number and the record batches of each part of a dataset.

        The same dataset has the same parts with the same numbers in each attempt. Arguments: `map_rows`.
        """
        ...


def only_column(read: ReadOptions, names: Sequence[str]) -> str | None:
    """Return the column that documents need; None if they may need several: of a path, a template, or ids.

    Args:
        read: How documents are found.
        names: The columns of the dataset.

    Raises:
        CorpusError: The dataset has no such column.
    """
    if "." in read.field or field_names(read.field) != [read.field] or read.id_field is not None:
        return None
    check_column(read.field, names)
    return read.field
