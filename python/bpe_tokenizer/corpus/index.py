"""Files beside those of a shard: the index of its documents, and which ids count for the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.contents import LOSS_BIT
from bpe_tokenizer.corpus.document_ends import DocumentIndex, OlmoShard
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormat, ShardWriter

__all__ = ["INDEX_SUFFIX", "MASK_SUFFIX", "IndexedShard", "MaskedShard", "csv_field", "indexed_format"]

INDEX_SUFFIX, MASK_SUFFIX = ".index.csv.gz", ".label_mask"


class IndexedShard:
    """Writes the documents to a shard, and a line for each to its index: `start,end,id,src,loc`.

    https://github.com/allenai/dolma, python/dolma/tokenizer/memmap_writer.py.

    Args:
        shard: Writes the documents.
        file: The file of the index.
    """

    def __init__(self, shard: ShardWriter, file: BinaryIO) -> None:
        self._shard = shard
        self._index = DocumentIndex(file)

    def write(
        self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64], origins: Sequence[str] = ()
    ) -> None:
        """Add documents.

        Args:
            ids: The ids of all documents, in sequence.
            lengths: The number of ids of each document.
            origins: The columns `id,src,loc` of each.
        """
        self._shard.write(ids, lengths)
        self._index.write(lengths, [f",{origin}" for origin in origins])

    def finish(self) -> None:
        """Write the end of the files."""
        self._shard.finish()
        self._index.finish()

    def abandon(self) -> None:
        """Give up the unfinished shard."""
        self._shard.abandon()


class MaskedShard:
    """Writes the documents to a shard, and to the last file a byte for each id: 1 if it counts for the loss.

    This is an array of OLMo-core's `label_mask_paths`, which has no header:
    https://github.com/allenai/OLMo-core, src/olmo_core/data/numpy_dataset.py (`NumpyFSLDataset`).

    Args:
        shard: Writes the documents.
        file: The file of the mask.
    """

    def __init__(self, shard: ShardWriter, file: BinaryIO) -> None:
        self._shard = shard
        self._file = file
        self.finish, self.abandon = shard.finish, shard.abandon

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64], *more: Any) -> None:
        """Add documents, whose ids have `LOSS_BIT` if they count."""
        self._file.write((ids >= LOSS_BIT).tobytes())
        self._shard.write(ids & ~LOSS_BIT, lengths, *more)


def indexed_format(shard_format: ShardFormat) -> ShardFormat:
    """Return the format of shards with an index. The list that OLMo reads is one already.

    >>> indexed_format(FORMATS["megatron"]).suffixes, indexed_format(FORMATS["olmo"]).suffixes
    (('.bin', '.idx', '.index.csv.gz'), ('.npy', '.csv.gz'))
    """
    if shard_format.open is OlmoShard:
        return FORMATS["nanogpt"]._replace(suffixes=(".npy",)).beside(".csv.gz", IndexedShard)
    return shard_format.beside(INDEX_SUFFIX, IndexedShard)


def csv_field(text: str) -> str:
    r"""Return a field of CSV.

    >>> csv_field("a.jsonl"), csv_field('a "b", c')
    ('a.jsonl', '"a ""b"", c"')
    """
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in ',"\r\n') else text
