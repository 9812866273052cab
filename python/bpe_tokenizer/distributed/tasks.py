"""Tasks on an engine, and functions with a value that each process of the engine loads once."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from bpe_tokenizer.columns.mapper import check_column
from bpe_tokenizer.options import ReadOptions, field_names

__all__ = ["Bound", "Tasks", "only_column"]

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

# The value that this process loaded last, by its key: a process runs many tasks of one job in sequence.
_loaded: dict[str, Any] = {}


class Bound(Generic[_Result]):
    """A function with its first argument, which each process of an engine loads once.

    Loading a tokenizer takes up to a second, which a task should not pay again.

    Args:
        function: The function. The engine pickles it.
        value: Its first argument, which can be pickled.

    >>> bound = pickle.loads(pickle.dumps(Bound(max, 5)))
    >>> bound(3), bound(8)
    (5, 8)
    """

    def __init__(self, function: Callable[..., _Result], value: Any) -> None:
        self._function = function
        self._pickled = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        self._key = hashlib.sha256(self._pickled).hexdigest()

    def __call__(self, *arguments: Any) -> _Result:
        """Call the function with the value and these arguments."""
        if self._key not in _loaded:
            value = pickle.loads(self._pickled)
            _loaded.clear()
            _loaded[self._key] = value
        return self._function(_loaded[self._key], *arguments)


class Tasks(Protocol):
    """An engine that runs functions on many machines.

    A task may run several times: it is repeated when its process dies, and an engine may run a slow task
    twice. So a function must give the same result each time, and write a file completely or not at all.

    The methods that call a function yield its results in any order, as soon as the engine returns them. No
    task runs before the first result is asked for. If a task fails with a `TokenizerError`, they raise it.
    """

    def run(self, work: Callable[[_Argument], _Result], arguments: Sequence[_Argument]) -> Iterator[_Result]:
        """Call a function with each argument."""
        ...

    def rows(self, source: Any, read: ReadOptions) -> Any:
        """Return the engine's own dataset, without columns that documents need not; None for files."""
        ...

    def map_rows(self, work: Callable[[Iterator[Any]], _Result], rows: Any) -> Iterator[_Result]:
        """Call a function with the record batches of each part of a dataset."""
        ...

    def write_rows(self, work: Callable[[int, Iterator[Any]], _Result], rows: Any) -> Iterator[_Result]:
        """Call a function with the number and the record batches of each part of a dataset.

        The same dataset has the same parts with the same numbers in each attempt.
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
