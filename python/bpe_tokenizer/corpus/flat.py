"""Token files that hold the ids in sequence: nanoGPT's, llm.c's and NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.documents import Counts, Ids

__all__ = ["LLM_C_MAX_TOKENS", "ArrayFile", "FlatShard", "Header", "llm_c_header", "no_header", "npy_header"]

_LLM_C_HEADER_BYTES = 256 * 4
# llm.c's dataloader.h (dataloader_load_batch) casts a position in the file to `int` before it seeks, so no
# batch may start at 2 GiB or later. Its header counts the ids as an int32, a weaker limit.
LLM_C_MAX_TOKENS = (2**31 - _LLM_C_HEADER_BYTES) // 2
# Values that are converted at once: they stay in the processor's cache until they are written.
_CONVERTED = 1 << 17


# The beginning of a file, given the type of its items and their number.
Header: TypeAlias = Callable[[np.dtype[Any], int], bytes]


def no_header(dtype: np.dtype[Any], items: int) -> bytes:
    """Return nothing."""
    return b""


def npy_header(dtype: np.dtype[Any], items: int, columns: int | None = None) -> bytes:
    """Return the header of a file of NumPy.

    https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

    Args:
        dtype: The type of an item.
        items: The number of items, or of rows.
        columns: The number of columns, for an array of two dimensions.
    """
    # NumPy pads the header for the length of the first axis, so all headers have the same size.
    shape = (items,) if columns is None else (items, columns)
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    return header.getvalue()


def llm_c_header(dtype: np.dtype[Any], items: int) -> bytes:
    """Return the header of an llm.c file: 256 int32, of which the first are magic, version and number of ids.

    https://github.com/karpathy/llm.c/blob/master/dev/data/data_common.py: version 1 has ids of 16 bits (its
    "gpt-2"), version 7 of 32 bits (its "llama-3").

    >>> np.frombuffer(llm_c_header(np.dtype("uint16"), 1000), "<i4")[:4].tolist()
    [20240520, 1, 1000, 0]
    """
    header = np.zeros(_LLM_C_HEADER_BYTES // 4, dtype="<i4")
    magic, version = (20240520, 1) if dtype.itemsize == 2 else (20240801, 7)
    header[:3] = magic, version, items
    return header.tobytes()


class ArrayFile:
    """Writes an array of unknown length to a file: a header, and the items, little-endian.

    Args:
        file: The empty file.
        dtype: The type of an item.
        header: Returns the header, whose size does not depend on the number of items.

    >>> import io
    >>> file = io.BytesIO()
    >>> array = ArrayFile(file, "uint16", lambda *of: npy_header(*of, columns=2))
    >>> array.write(np.arange(4).reshape(2, 2))
    >>> array.finish()
    >>> _ = file.seek(0)
    >>> np.load(file).tolist()
    [[0, 1], [2, 3]]
    """

    def __init__(self, file: BinaryIO, dtype: str, header: Header = npy_header) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        self.items = 0
        self._file = file
        self._header = header
        file.write(header(self.dtype, 0))

    def write(self, items: npt.NDArray[Any]) -> None:
        """Add items, or rows of them."""
        _write_as(self._file, items, self.dtype)
        self.items += len(items)

    def finish(self) -> None:
        """Write the header again with the final number of items."""
        end = self._file.tell()
        self._file.seek(0)
        self._file.write(self._header(self.dtype, self.items))
        self._file.seek(end)


class FlatShard:
    """Writes the ids in sequence to the first file: the shards of nanoGPT, and a part of most others.

    https://github.com/karpathy/nanoGPT/blob/master/data/openwebtext/prepare.py

    Args:
        files: The files to write.
        dtype: The type of an id.
        header: The beginning of the first file.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str, header: Header = no_header) -> None:
        self.files = files
        self.ids = ArrayFile(files[0], dtype, header)

    def write(self, ids: Ids, lengths: Counts) -> None:
        """Add documents."""
        self.ids.write(ids)

    def finish(self) -> None:
        """Write the header again with the final number of ids."""
        self.ids.finish()

    def abandon(self) -> None:
        """Do nothing: the files hold nothing that is not in place."""


def _write_as(file: BinaryIO, values: npt.NDArray[Any], dtype: np.dtype[Any]) -> None:
    """Write the values of an array, converted to another type in steps of bounded memory."""
    values = np.ascontiguousarray(values).reshape(-1)
    if values.dtype == dtype:
        file.write(values.data)
        return
    room = np.empty(min(len(values), _CONVERTED), dtype)
    for start in range(0, len(values), _CONVERTED):
        part = values[start : start + _CONVERTED]
        np.copyto(room[: len(part)], part, casting="unsafe")
        file.write(room[: len(part)].data)
