"""Counts of pieces as Arrow columns: to NumPy arrays over the same memory, which the core reads, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.columns.texts import Buffers, Texts, arrow_errors, buffers, holds_texts
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
        try:
            pieces, counts = rows.column("piece"), rows.column("n")
        except (AttributeError, KeyError):
            raise ArgumentTypeError(
                "expected a RecordBatch or a Table with the columns 'piece' and 'n', not "
                f"{type(batch).__name__}"
            ) from None
        if not pyarrow.types.is_integer(counts.type):
            raise ArgumentTypeError(f"the counts have the type {counts.type}, not an integer type")
        if counts.null_count:
            raise CorpusError("a piece or a count is null")
        try:
            numbers = counts.cast(pyarrow.uint64())
        except pyarrow.ArrowInvalid:
            raise CorpusError("a count is negative") from None
        yield *_binary(pieces), numbers.to_numpy(zero_copy_only=False)


def to_batch(data: Bytes, offsets: Offsets, counts: npt.NDArray[np.uint64]) -> Any:
    """Return pieces and their counts as a `pyarrow.RecordBatch`: `piece` large_binary, `n` uint64."""
    pyarrow = import_library("pyarrow")
    parts = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)]
    pieces = pyarrow.LargeBinaryArray.from_buffers(pyarrow.large_binary(), len(counts), parts)
    return pyarrow.RecordBatch.from_arrays([pieces, pyarrow.array(counts)], names=["piece", "n"])


def _binary(array: Any) -> Buffers:
    if not holds_texts(array.type):
        raise ArgumentTypeError(f"a column of {array.type} does not hold texts")
    with arrow_errors("the pieces cannot be read"):
        texts = Texts.of(array)
    if texts.valid is not None:
        raise CorpusError("a piece or a count is null")
    if texts.index is None:
        return buffers(texts.array)
    return buffers(texts.array.take(import_library("pyarrow").array(texts.index)))
