"""Counts of pieces as Arrow columns: to NumPy arrays over the same memory, which the core reads, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.errors import ArgumentTypeError, CorpusError
from bpe_tokenizer.libraries import import_library

__all__ = ["piece_buffers", "to_batch"]

Bytes: TypeAlias = npt.NDArray[np.uint8]
Offsets: TypeAlias = npt.NDArray[np.int64]


def piece_buffers(batch: Any) -> Iterator[tuple[Bytes, Offsets, npt.NDArray[np.uint64]]]:
    """Yield the concatenated bytes of pieces, the offsets of the pieces and of the end, and their counts.

    Args:
        batch: A `pyarrow.RecordBatch` or `Table` with the columns `piece` and `n`.

    Raises:
        ArgumentTypeError: The columns have other types.
        CorpusError: A piece or a count is null, or a count is negative.
        MissingDependencyError: `pyarrow` is not installed.
    """
    pyarrow = import_library("pyarrow")
    batches = batch.to_batches() if isinstance(batch, pyarrow.Table) else [batch]
    for rows in batches:
        pieces, counts = rows.column("piece"), rows.column("n")
        if not pyarrow.types.is_integer(counts.type):
            raise ArgumentTypeError(f"the counts have the type {counts.type}, not an integer type")
        if pieces.null_count or counts.null_count:
            raise CorpusError("a piece or a count is null")
        try:
            numbers = counts.cast(pyarrow.uint64())
        except pyarrow.ArrowInvalid:
            raise CorpusError("a count is negative") from None
        yield *_binary(pieces), numbers.to_numpy(zero_copy_only=False)


def to_batch(data: Bytes, offsets: Offsets, counts: npt.NDArray[np.uint64]) -> Any:
    """Return pieces and their counts as a `pyarrow.RecordBatch`: `piece` large_binary, `n` uint64."""
    pyarrow = import_library("pyarrow")
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    pieces = pyarrow.LargeBinaryArray.from_buffers(pyarrow.large_binary(), len(counts), buffers)
    return pyarrow.RecordBatch.from_arrays([pieces, pyarrow.array(counts)], names=["piece", "n"])


def _binary(array: Any) -> tuple[Bytes, Offsets]:
    pyarrow = import_library("pyarrow")
    types = pyarrow.types
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    is_text = types.is_string(array.type) or types.is_large_string(array.type)
    if not (is_text or types.is_binary(array.type) or types.is_large_binary(array.type)):
        try:
            array = array.cast(pyarrow.large_binary())
        except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
            raise ArgumentTypeError(f"a column of {array.type} does not hold texts") from None
    wide = types.is_large_string(array.type) or types.is_large_binary(array.type)
    _, places, content = array.buffers()
    kind = np.dtype(np.int64 if wide else np.int32)
    offsets = np.zeros(1, np.int64)
    if len(array):
        offsets = np.frombuffer(places, kind, len(array) + 1, array.offset * kind.itemsize)
    data = np.frombuffer(content, np.uint8) if content is not None and content.size else np.zeros(0, np.uint8)
    return data, offsets.astype(np.int64, copy=False)
