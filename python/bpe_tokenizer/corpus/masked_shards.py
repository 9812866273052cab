"""Shards of conversations that are not packed, with a file that tells which ids count for the loss."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.contents import LOSS_BIT
from bpe_tokenizer.corpus.shards import ShardWriter

__all__ = ["MASK_SUFFIX", "MaskedShard"]

MASK_SUFFIX = ".label_mask"


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
