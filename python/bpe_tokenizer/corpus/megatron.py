"""Megatron-LM's indexed datasets.

The layout is that of https://github.com/NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py, for
text: only the index of a multimodal dataset has modes after the documents.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.flat import FlatShard

__all__ = ["MegatronShard"]

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_CODES = {"int32": 4, "uint16": 8}


class MegatronShard(FlatShard):
    """Writes the ids to `.bin`, and the start and length of each document to `.idx`.

    Each document is one sequence. The lengths stay in memory until the end: four bytes a document.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str) -> None:
        super().__init__(files, dtype)
        self._lengths = array("i")

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        super().write(ids, lengths)
        self._lengths.frombytes(lengths.astype(np.intc).tobytes())

    def finish(self) -> None:
        """Write the index."""
        lengths, dtype = np.frombuffer(self._lengths, dtype=np.intc), self.ids.dtype
        pointers = (np.cumsum(lengths, dtype=np.int64) - lengths) * dtype.itemsize
        documents = np.arange(len(lengths) + 1, dtype="<i8")
        file = self.files[1]
        file.write(_MAGIC)
        file.write(struct.pack("<QB", _VERSION, _CODES[dtype.name]))
        file.write(struct.pack("<QQ", len(lengths), len(documents)))
        file.write(lengths.astype("<i4").data)
        file.write(pointers.astype("<i8").data)
        file.write(documents.data)
