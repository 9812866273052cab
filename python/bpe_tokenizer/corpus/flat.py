"""Token files that hold the ids in sequence: nanoGPT's, llm.c's and NumPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

__all__ = [
    "LLM_C_HEADER_BYTES",
    "LLM_C_MAX_TOKENS",
    "ArrayFile",
    "FlatShard",
    "LlmCShard",
    "NumpyShard",
    "llm_c_header",
    "write_as",
]

LLM_C_HEADER_BYTES = 256 * 4
# llm.c's dataloader.h (dataloader_load_batch) casts a position in the file to `int` before it seeks, so no
# batch may start at 2 GiB or later. Its header counts the ids as an int32, a weaker limit.
LLM_C_MAX_TOKENS = (2**31 - LLM_C_HEADER_BYTES) // 2
# Values that are converted at once: they stay in the processor's cache until they are written.
_CONVERTED = 1 << 17


class FlatShard:
    """nanoGPT's files: the ids in sequence, little-endian, without a header.

    https://github.com/karpathy/nanoGPT/blob/master/data/openwebtext/prepare.py
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: Literal["uint16", "uint32", "int32"]) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._tokens = 0
        self._file = files[0]
        self._write_header(self._file)
        self._header_bytes = self._file.tell()

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        write_as(self._file, ids, self._dtype)
        self._tokens += len(ids)

    def finish(self) -> None:
        """Write the header again with the final number of tokens."""
        self._file.seek(0)
        self._write_header(self._file)

    def sizes(self, documents: int, tokens: int) -> list[int]:
        """Return the size that the file must have."""
        return [self._header_bytes + tokens * self._dtype.itemsize]

    def abandon(self) -> None:
        """Do nothing: the file holds nothing that is not in place."""

    def _write_header(self, file: BinaryIO) -> None:
        pass


class LlmCShard(FlatShard):
    """llm.c's files: a header, and the ids."""

    def _write_header(self, file: BinaryIO) -> None:
        file.write(llm_c_header(self._dtype.itemsize, self._tokens))


class NumpyShard:
    """A one-dimensional array."""

    def __init__(self, files: Sequence[BinaryIO], dtype: Literal["uint16", "uint32", "int32"]) -> None:
        self._array = ArrayFile(files[0], np.dtype(dtype))

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        self._array.write(ids)

    def finish(self) -> None:
        """Write the header again with the final number of tokens."""
        self._array.finish()

    def sizes(self, documents: int, tokens: int) -> list[int]:
        """Return the size that the file must have."""
        return [self._array.size(tokens)]

    def abandon(self) -> None:
        """Do nothing: the file holds nothing that is not in place."""


class ArrayFile:
    """Writes an array of unknown length to `.npy`.

    The format is https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.

    Args:
        file: The empty file.
        dtype: The type of an item; stored little-endian.
        columns: The number of columns, for an array of two dimensions.

    >>> import io
    >>> file = io.BytesIO()
    >>> array = ArrayFile(file, np.dtype("uint16"), columns=2)
    >>> array.write(np.arange(4).reshape(2, 2))
    >>> array.finish()
    >>> _ = file.seek(0)
    >>> np.load(file).tolist()
    [[0, 1], [2, 3]]
    """

    def __init__(self, file: BinaryIO, dtype: np.dtype[Any], columns: int | None = None) -> None:
        self._file = file
        self._dtype = dtype.newbyteorder("<")
        self._columns = columns
        self._rows = 0
        self._write_header()
        self._header_bytes = file.tell()

    def write(self, items: npt.NDArray[Any]) -> None:
        """Add items, or rows."""
        write_as(self._file, items, self._dtype)
        self._rows += len(items)

    def finish(self) -> None:
        """Write the header again with the final length."""
        self._file.seek(0)
        self._write_header()

    def size(self, rows: int | None = None) -> int:
        """Return the size of a file with a number of items or rows; by default with those written."""
        rows = self._rows if rows is None else rows
        return self._header_bytes + rows * (self._columns or 1) * self._dtype.itemsize

    def _write_header(self) -> None:
        # NumPy pads the header for the length of the first axis, so all headers have the same size.
        shape = (self._rows,) if self._columns is None else (self._rows, self._columns)
        np.lib.format.write_array_header_1_0(
            self._file, {"descr": self._dtype.str, "fortran_order": False, "shape": shape}
        )


def write_as(file: BinaryIO, values: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
    r"""Write the values of an array, converted to another type in steps of bounded memory.

    >>> import io
    >>> file = io.BytesIO()
    >>> write_as(file, np.array([1, 258], np.uint32), np.dtype("<u2"))
    >>> file.getvalue()
    b'\x01\x00\x02\x01'
    """
    values = np.ascontiguousarray(values).reshape(-1)
    if values.dtype == dtype:
        file.write(values.data)
        return
    room = np.empty(min(len(values), _CONVERTED), dtype)
    for start in range(0, len(values), _CONVERTED):
        part = values[start : start + _CONVERTED]
        np.copyto(room[: len(part)], part, casting="unsafe")
        file.write(room[: len(part)].data)


def llm_c_header(itemsize: int, tokens: int) -> bytes:
    """Return the header of an llm.c file: 256 int32, of which the first are magic, version and number of ids.

    https://github.com/karpathy/llm.c/blob/master/dev/data/data_common.py: version 1 has ids of 16 bits (its
    "gpt-2"), version 7 of 32 bits (its "llama-3").

    Args:
        itemsize: The number of bytes of an id, 2 or 4.
        tokens: The number of ids.

    >>> np.frombuffer(llm_c_header(2, 1000), "<i4")[:4].tolist()
    [20240520, 1, 1000, 0]
    """
    header = np.zeros(LLM_C_HEADER_BYTES // 4, dtype="<i4")
    magic, version = (20240520, 1) if itemsize == 2 else (20240801, 7)
    header[:3] = magic, version, tokens
    return header.tobytes()
