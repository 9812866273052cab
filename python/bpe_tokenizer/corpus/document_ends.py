"""Token files with the ends of the documents in files beside them: OLMo's and datatrove's."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import BinaryIO, Literal

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
        self.bytes = 0

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
        self._write(self._gzip.compress("".join(lines).encode()))

    def finish(self) -> None:
        """Write the end of the file."""
        self._write(self._gzip.flush())

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self.bytes += len(data)


class OlmoShard(FlatShard):
    """OLMo's files: the ids in `.npy`, without a header, and `start,end` of each document in `.csv.gz`.

    https://github.com/allenai/OLMo-core, src/olmo_core/data/utils.py (`write_document_indices`). The files of
    https://github.com/allenai/dolma have more columns after these two (`IndexedShard`), which no training
    program reads.

    Args:
        files: The `.npy` and the `.csv.gz` to write.
        dtype: The type of an id.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: Literal["uint16", "uint32", "int32"]) -> None:
        super().__init__(files, dtype)
        self._index = DocumentIndex(files[1])

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        super().write(ids, lengths)
        self._index.write(lengths)

    def finish(self) -> None:
        """Write the end of the index."""
        self._index.finish()

    def sizes(self, documents: int, tokens: int) -> list[int]:
        """Return the size that each file must have."""
        return [*super().sizes(documents, tokens), self._index.bytes]


class DatatroveShard:
    """datatrove's files: the ids in `.ds`, the end of each document in `.ds.index`, and `.ds.metadata`.

    https://github.com/huggingface/datatrove, src/datatrove/pipeline/tokens/tokenizer.py (`TokenizedFile`).
    An end is a number of ids, as uint64. The metadata are lines: the name of a tokenizer with the number of
    bytes of an id, the number of ids, and the same for people.

    Args:
        files: The three files.
        dtype: The type of an id.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: Literal["uint16", "uint32", "int32"]) -> None:
        self._data, self._index, self._metadata = files
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._tokens = 0

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        write_as(self._data, ids, self._dtype)
        write_as(self._index, self._tokens + np.cumsum(lengths), np.dtype("<u8"))
        self._tokens += len(ids)

    def finish(self) -> None:
        """Write the metadata."""
        self._metadata.write(self._description(self._tokens))

    def sizes(self, documents: int, tokens: int) -> list[int]:
        """Return the size that each file must have."""
        return [tokens * self._dtype.itemsize, documents * 8, len(self._description(tokens))]

    def abandon(self) -> None:
        """Do nothing: the files hold nothing that is not in place."""

    def _description(self, tokens: int) -> bytes:
        return f"bpe-tokenizer|{self._dtype.itemsize}\n{tokens}\n{tokens:,} T".encode()
