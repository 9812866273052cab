"""The texts of an array of pyarrow as bytes and offsets: the only place that reads the memory of Arrow.

pyarrow checks an array before its buffers are read. What a null row has in them is never read: a file or
another library may leave anything there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.errors import CorpusError, TokenizerError, escaped
from bpe_tokenizer.libraries import import_library

__all__ = [
    "Block",
    "Buffers",
    "Texts",
    "arrow_errors",
    "blocks",
    "buffers",
    "cuts",
    "holds_texts",
    "validity",
]

# The bytes of texts, and the start of each with the end of the last.
Buffers: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]

# The bytes of a view: the size of its text, and the text or where it is.
_VIEW_BYTES = 16


@dataclass(frozen=True)
class Texts:
    """The texts of an array.

    Args:
        array: Texts as an array of `binary` or `large_binary` without nulls. Some may not be UTF-8.
        valid: For each row whether it has a text; None if every row has.
        index: For each row with a text its position in `array`; None if they are in sequence.
    """

    array: Any
    valid: npt.NDArray[np.bool_] | None
    index: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, array: Any) -> Texts:
        """Return the texts of an array whose type passes `holds_texts`.

        Raises:
            pyarrow.ArrowInvalid: The array breaks Arrow's rules.
        """
        pyarrow = import_library("pyarrow")
        if isinstance(array, pyarrow.DictionaryArray):
            return cls._of_dictionary(pyarrow, array)
        binary = _binary_type(pyarrow, array.type)
        if binary is None:  # the type of nulls
            return cls(pyarrow.array([], pyarrow.binary()), np.zeros(len(array), bool), None)
        array = array.view(binary)  # a text that is not UTF-8 must not fail the others
        array.validate(full=True)
        valid = validity(array)
        if binary in (pyarrow.binary(), pyarrow.large_binary()):
            return cls(array if valid is None else _valid_texts(pyarrow, array, valid), valid, None)
        if valid is not None:
            array = _valid_views(pyarrow, array, valid)
        return cls(array.cast(pyarrow.large_binary()), valid, None)

    @classmethod
    def _of_dictionary(cls, pyarrow: Any, array: Any) -> Texts:
        indices = array.indices
        indices.validate(full=True)
        valid = indices.is_valid().to_numpy(zero_copy_only=False)
        index = indices.drop_null().to_numpy(zero_copy_only=False)
        try:
            dictionary = array.dictionary
            count = len(dictionary)
        except SystemError as error:  # of a length below 0
            raise pyarrow.ArrowInvalid("the dictionary of a column cannot be read") from error
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < count:
            wrong = int(np.flatnonzero((index < 0) | (index >= count))[0])
            row = int(np.flatnonzero(valid)[wrong])
            raise pyarrow.ArrowInvalid(
                f"row {row}: the index {index[wrong]} is not among the {count} texts of the dictionary"
            )
        texts = cls.of(dictionary)
        index = index.astype(np.int64, copy=False)
        if texts.valid is not None:
            has_text = texts.valid[index]
            valid[valid] = has_text
            index = (np.cumsum(texts.valid) - 1)[index[has_text]]
        return cls(texts.array, None if valid.all() else valid, index)

    def used(self) -> tuple[Any, npt.NDArray[np.int64]]:
        """Return the texts of a dictionary that occur, and for each row with a text its position in them."""
        index = np.arange(len(self.array)) if self.index is None else self.index
        is_used = np.zeros(len(self.array), bool)
        is_used[index] = True
        if is_used.all():
            return self.array, index
        positions = np.cumsum(is_used) - 1
        return self.array.filter(import_library("pyarrow").array(is_used)), positions[index]


def validity(array: Any) -> npt.NDArray[np.bool_] | None:
    """Return for each row of an array whether it is valid; None if every row is."""
    return array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None


def _valid_texts(pyarrow: Any, array: Any, valid: npt.NDArray[np.bool_]) -> Any:
    """Return the texts of the valid rows: over the same bytes, if the other rows have none."""
    data, offsets = buffers(array)
    places = np.append(offsets[:-1][valid], offsets[-1])
    if not np.array_equal(places[1:], offsets[1:][valid]):
        return array.drop_null()
    parts = [None, pyarrow.py_buffer(places), pyarrow.py_buffer(data)]
    return pyarrow.Array.from_buffers(pyarrow.large_binary(), len(places) - 1, parts)


def _valid_views(pyarrow: Any, array: Any, valid: npt.NDArray[np.bool_]) -> Any:
    """Return the views of the valid rows. pyarrow has no `drop_null` for them."""
    _, views, *data = array.buffers()
    count = len(array) * _VIEW_BYTES
    kept = np.frombuffer(views, np.uint8, count, array.offset * _VIEW_BYTES).reshape(-1, _VIEW_BYTES)[valid]
    return pyarrow.Array.from_buffers(array.type, len(kept), [None, pyarrow.py_buffer(kept), *data])


def holds_texts(kind: Any) -> bool:
    """Return whether a type is one of strings, of binary values or of nulls, or a dictionary of these."""
    pyarrow = import_library("pyarrow")
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return pyarrow.types.is_null(kind) or _binary_type(pyarrow, kind) is not None


def _binary_type(pyarrow: Any, kind: Any) -> Any:
    """Return the type of the bytes of texts; None for anything else."""
    types = pyarrow.types
    if types.is_string(kind) or types.is_binary(kind):
        return pyarrow.binary()
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return pyarrow.large_binary()
    is_view = types.is_string_view(kind) or types.is_binary_view(kind)
    return pyarrow.binary_view() if is_view else None


def buffers(array: Any) -> Buffers:
    """Return the bytes and the offsets of an array of `binary` or `large_binary` without nulls."""
    if len(array) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    _, places, content = array.buffers()
    kind = np.dtype(np.int64 if str(array.type).startswith("large") else np.int32)
    offsets = np.frombuffer(places, kind, len(array) + 1, array.offset * kind.itemsize)
    data = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(0, np.uint8)
    return data, np.require(offsets, np.int64, "A")


class Block(NamedTuple):
    """Rows of an array that follow each other.

    Args:
        data: The bytes of the texts.
        offsets: The start of each text in `data`, and the end of the last.
        rows: The number of the row of each, from 0.
        nulls: The numbers of the rows without a text.
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    nulls: npt.NDArray[np.int64]


def blocks(array: Any, max_bytes: int) -> Iterator[Block]:
    """Yield the rows of an array in blocks of about `max_bytes`, or of one row with more.

    Args:
        array: The array, whose type passes `holds_texts`.
        max_bytes: The bytes of the texts of a block.

    Raises:
        pyarrow.ArrowInvalid: The array breaks Arrow's rules.
    """
    pyarrow = import_library("pyarrow")
    step = max(len(array), 1)
    if not isinstance(array, pyarrow.DictionaryArray):
        # `Texts.of` may copy what it is given.
        step = max(max_bytes * step // max(array.get_total_buffer_size(), 1), 1)
    for first in range(0, len(array), step):
        part = array.slice(first, step)
        texts = Texts.of(part)
        data, offsets = buffers(texts.array)
        lengths = np.diff(offsets)
        if texts.index is not None:
            lengths = lengths[texts.index]
        # The row of each text, and the bytes up to each row.
        rows = np.arange(len(part)) if texts.valid is None else np.flatnonzero(texts.valid)
        sizes = np.zeros(len(part), np.int64)
        sizes[rows] = lengths
        for start, stop in cuts(np.cumsum(sizes), max_bytes):
            begin, end = np.searchsorted(rows, (start, stop)).tolist()
            if texts.index is None:
                found = data[offsets[begin] : offsets[end]], offsets[begin : end + 1] - offsets[begin]
            else:
                found = buffers(texts.array.take(pyarrow.array(texts.index[begin:end])))
            nulls = np.setdiff1d(np.arange(start, stop), rows[begin:end], assume_unique=True)
            yield Block(*found, first + rows[begin:end], first + nulls)


def cuts(ends: npt.NDArray[np.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that have at most `limit` items, or are one row, from the end of each row."""
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + limit, side="right")), start + 1)
        yield start, stop
        start = stop


@contextmanager
def arrow_errors(problem: str) -> Iterator[None]:
    """Report what pyarrow raises for broken data as a `CorpusError` that begins with `problem`."""
    pyarrow = import_library("pyarrow")
    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, EOFError) as error:
        if isinstance(error, TokenizerError | MemoryError):
            raise
        raise CorpusError(f"{problem}: {escaped(str(error), 150)}") from None
