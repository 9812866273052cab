"""Token files with the ends of the documents in files beside them: OLMo's and datatrove's."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.flat import FlatShard, write_as

__all__ = ["DatatroveShard", "DocumentIndex", "OlmoShard"]

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

    def write(self, lengths: npt.NDArray[np.int64], columns: Iterable[str] = repeat("")) -> None:
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


class OlmoShard(FlatShard):
    """OLMo's files: the ids in `.npy`, without a header, and `start,end` of each document in `.csv.gz`.

    https://github.com/allenai/OLMo-core, src/olmo_core/data/utils.py (`write_document_indices`). The files of
    https://github.com/allenai/dolma have more columns after these two (`IndexedShard`), which no training
    program reads.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str) -> None:
        super().__init__(files, dtype)
        self._index = DocumentIndex(files[1])

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
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

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        write_as(self.files[1], self.ids.items + np.cumsum(lengths), np.dtype("<u8"))
        super().write(ids, lengths)

    def finish(self) -> None:
        """Write the metadata."""
        size, tokens = self.ids.dtype.itemsize, self.ids.items
        self.files[2].write(f"bpe-tokenizer|{size}\n{tokens}\n{tokens:,} T".encode())
