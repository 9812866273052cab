"""Token files with the ends of the documents beside them: those of Megatron-LM, OLMo and datatrove."""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import BinaryIO

import numpy as np

from bpe_tokenizer.corpus.documents import Counts, Ids
from bpe_tokenizer.corpus.flat import ArrayFile, FlatShard, no_header

__all__ = ["DatatroveShard", "DocumentIndex", "MegatronShard", "OlmoShard"]

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_CODES = {"int32": 4, "uint16": 8}
# The format of gzip, with a header that has no time and no name.
_GZIP_BITS = 31


class DocumentIndex:
    """Writes a line of CSV for each document of a shard, in gzip: where it starts and ends, in ids, and more.

    Args:
        file: The file to write.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._gzip = zlib.compressobj(wbits=_GZIP_BITS)
        self._tokens = 0

    def write(self, lengths: Counts, columns: Iterable[str] = repeat("")) -> None:
        """Add documents.

        Args:
            lengths: The number of ids of each.
            columns: What follows in the line of each, with a comma at the beginning.
        """
        ends = self._tokens + np.cumsum(lengths)
        starts = (ends - lengths).tolist()
        lines = (
            f"{start},{end}{more}\n" for start, end, more in zip(starts, ends.tolist(), columns, strict=False)
        )
        self._tokens += int(lengths.sum())
        self._file.write(self._gzip.compress("".join(lines).encode()))

    def finish(self) -> None:
        """Write the end of the file."""
        self._file.write(self._gzip.flush())


class MegatronShard(FlatShard):
    """Megatron-LM's indexed dataset: the ids in `.bin`, and the start and length of each document in `.idx`.

    https://github.com/NVIDIA/Megatron-LM, megatron/core/datasets/indexed_dataset.py, for text: only the index
    of a multimodal dataset has modes after the documents. Each document is one sequence. The lengths stay in
    memory until the end: four bytes a document.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str) -> None:
        super().__init__(files, dtype)
        self._lengths = array("i")

    def write(self, ids: Ids, lengths: Counts) -> None:
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


class OlmoShard(FlatShard):
    """OLMo's files: the ids in `.npy`, without a header, and `start,end` of each document in `.csv.gz`.

    https://github.com/allenai/OLMo-core, src/olmo_core/data/utils.py (`write_document_indices`). The files of
    https://github.com/allenai/dolma have more columns after these two (`IndexedShard`), which no training
    program reads.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str) -> None:
        super().__init__(files, dtype)
        self._index = DocumentIndex(files[1])

    def write(self, ids: Ids, lengths: Counts) -> None:
        """Add documents."""
        super().write(ids, lengths)
        self._index.write(lengths)

    def finish(self) -> None:
        """Write the end of the index."""
        self._index.finish()


class DatatroveShard(FlatShard):
    """datatrove's files: the ids in `.ds`, the end of each document in `.ds.index`, and `.ds.metadata`.

    https://github.com/huggingface/datatrove, src/datatrove/pipeline/tokens/tokenizer.py (`TokenizedFile`).
    An end is a number of ids, as uint64. The metadata are lines: the name of a tokenizer with the number of
    bytes of an id, the number of ids, and the same for people.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str) -> None:
        super().__init__(files, dtype)
        self._ends = ArrayFile(files[1], "uint64", no_header)

    def write(self, ids: Ids, lengths: Counts) -> None:
        """Add documents."""
        self._ends.write(self.ids.items + np.cumsum(lengths))
        super().write(ids, lengths)

    def finish(self) -> None:
        """Write the metadata."""
        size, tokens = self.ids.dtype.itemsize, self.ids.items
        self.files[2].write(f"bpe-tokenizer|{size}\n{tokens}\n{tokens:,} T".encode())
