"""The index of the documents of a shard, in the columns of dolma, beside the files of any format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.document_ends import DocumentIndex, OlmoShard
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormat, ShardWriter

__all__ = ["INDEX_SUFFIX", "IndexedShard", "csv_field", "indexed_format"]

INDEX_SUFFIX = ".index.csv.gz"


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
