"""Megatron-LM's indexed datasets.

The layout is that of https://github.com/NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py, for
text: only the index of a multimodal dataset has modes after the documents.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import BinaryIO, Literal

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.flat import write_as

__all__ = ["MegatronShard"]

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_CODES = {"int32": 4, "uint16": 8}


class MegatronShard:
    """Writes the ids to `.bin`, and the start and length of each document to `.idx`.

    Each document is one sequence. The lengths stay in memory until the end: four bytes a document.

    Args:
        files: The `.bin` and the `.idx` to write.
        dtype: The type of an id.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: Literal["uint16", "uint32", "int32"]) -> None:
        self._code = _CODES[dtype]
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._lengths = array("i")
        self._data, self._index = files

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        write_as(self._data, ids, self._dtype)
        self._lengths.frombytes(lengths.astype(np.intc).tobytes())

    def finish(self) -> None:
        """Write the index."""
        lengths = np.frombuffer(self._lengths, dtype=np.intc)
        ends = np.cumsum(lengths, dtype=np.int64)
        pointers = (ends - lengths) * self._dtype.itemsize
        documents = np.arange(len(lengths) + 1, dtype="<i8")
        file = self._index
        file.write(_MAGIC)
        file.write(struct.pack("<QB", _VERSION, self._code))
        file.write(struct.pack("<QQ", len(lengths), len(documents)))
        file.write(lengths.astype("<i4").data)
        file.write(pointers.astype("<i8").data)
        file.write(documents.data)

    def sizes(self, documents: int, tokens: int) -> list[int]:
        """Return the size that each file must have."""
        header = len(_MAGIC) + struct.calcsize("<QB") + struct.calcsize("<QQ")
        return [tokens * self._dtype.itemsize, header + (4 + 8) * documents + 8 * (documents + 1)]

    def abandon(self) -> None:
        """Do nothing: the files hold nothing that is not in place."""
