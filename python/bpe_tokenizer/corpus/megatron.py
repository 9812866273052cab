"""Megatron-LM's indexed datasets.

The layout is that of https://github.com/NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

__all__ = ["MegatronShard"]

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_CODES = {"int32": 4, "uint16": 8}


class MegatronShard:
    """Writes the ids to `.bin`, and the start and length of each document to `.idx`.

    Each document is one sequence. The lengths stay in memory until the end: four bytes a document.

    Args:
        paths: The `.bin` and the `.idx` to write.
        dtype: The type of an id.
    """

    def __init__(self, paths: Sequence[Path], dtype: Literal["uint16", "uint32", "int32"]) -> None:
        self._code = _CODES[dtype]
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._lengths = array("i")
        self._index = paths[1]
        self._data = paths[0].open("xb")

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        self._data.write(ids.astype(self._dtype).data)
        self._lengths.frombytes(lengths.astype(np.intc).tobytes())

    def finish(self) -> None:
        """Close the data and write the index."""
        self._data.close()
        lengths = np.frombuffer(self._lengths, dtype=np.intc)
        ends = np.cumsum(lengths, dtype=np.int64)
        pointers = (ends - lengths) * self._dtype.itemsize
        documents = np.arange(len(lengths) + 1, dtype="<i8")
        with self._index.open("xb") as file:
            file.write(_MAGIC)
            file.write(struct.pack("<QB", _VERSION, self._code))
            file.write(struct.pack("<QQ", len(lengths), len(documents)))
            file.write(lengths.astype("<i4").data)
            file.write(pointers.astype("<i8").data)
            file.write(documents.data)

    def abandon(self) -> None:
        """Close the unfinished data file."""
        self._data.close()
