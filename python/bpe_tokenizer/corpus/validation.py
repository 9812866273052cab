"""Divides documents into those for training and those for validation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, pairwise
from typing import BinaryIO, SupportsFloat, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.shards import ShardFormat, ShardWriter, TokenType
from bpe_tokenizer.errors import ArgumentTypeError, OptionError

__all__ = [
    "GOLDEN_GAMMA",
    "SplitShard",
    "check_fraction",
    "is_sampled",
    "is_validation",
    "mixed",
    "select_documents",
    "split_format",
]

_Item = TypeVar("_Item", np.uint8, np.uint32)
# SplitMix64's increment, which is added before mixing.
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)


def check_fraction(name: str, value: object) -> float:
    """Return an argument that is a part of the documents.

    Args:
        name: The argument, for messages.
        value: Its value.

    Raises:
        ArgumentTypeError: It is not a number.
        OptionError: It is not between 0 and 1.

    >>> check_fraction("val_fraction", 0.0005)
    0.0005
    """
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise ArgumentTypeError(f"{name} must be a float, not {type(value).__name__}")
    fraction = float(value)
    if not 0 < fraction < 1:
        raise OptionError(f"{name} is {fraction}; it must be larger than 0 and smaller than 1")
    return fraction


def is_validation(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], fraction: float
) -> npt.NDArray[np.bool_]:
    """Return which documents are for validation.

    A hash of the text decides. So the choice depends on nothing else: not on the tokenizer, the order of the
    documents, or the number of threads and parts. Equal documents are on the same side, and a larger fraction
    keeps the documents of a smaller one.

    The hash is CRC-32 and the length, mixed by SplitMix64's finalizer. BLAKE2b takes five times as long for
    short documents. Documents with equal hashes do no harm: they are on the same side.

    Args:
        data: The UTF-8 of the documents.
        offsets: The start of each document in it, and the end of the last.
        fraction: The part of the documents that is for validation, on average.

    >>> data = np.frombuffer(b"low" b"lower" b"low", dtype=np.uint8)
    >>> is_validation(data, np.array([0, 3, 8, 11]), 0.5).tolist()
    [False, True, False]
    """
    return _text_hashes(data, offsets) < np.uint64(fraction * 2**64)


def is_sampled(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], fraction: float
) -> npt.NDArray[np.bool_]:
    """Return which documents are in a sample. A hash of the text decides, another one than for validation.

    Arguments: as in `is_validation`.
    """
    return mixed(_text_hashes(data, offsets) + GOLDEN_GAMMA) < np.uint64(fraction * 2**64)


def _text_hashes(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    view = np.ascontiguousarray(data).data
    checksums = [crc32(view[start:end]) for start, end in pairwise(offsets.tolist())]
    values = np.array(checksums, dtype=np.uint64) | np.diff(offsets).astype(np.uint64) << np.uint64(32)
    return mixed(values + GOLDEN_GAMMA)


def mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return distinct numbers as distinct ones without a pattern: SplitMix64's finalizer.

    Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def select_documents(
    ids: npt.NDArray[_Item], lengths: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[_Item], npt.NDArray[np.int64]]:
    """Return the ids, or the bytes, and the lengths of some documents.

    Args:
        ids: The ids of all documents, in sequence.
        lengths: The number of ids of each document.
        chosen: Which documents to return.

    >>> ids, lengths = select_documents(np.arange(6), np.array([1, 3, 2]), np.array([True, False, True]))
    >>> ids.tolist(), lengths.tolist()
    ([0, 4, 5], [1, 2])
    """
    return ids[np.repeat(chosen, lengths)], lengths[chosen]


class SplitShard:
    """Writes the documents for training and those for validation to two shards.

    Args:
        training: Writes the documents for training.
        validation: Writes the documents for validation.
    """

    def __init__(self, training: ShardWriter, validation: ShardWriter) -> None:
        self._writers = (training, validation)

    def write(
        self,
        ids: npt.NDArray[np.uint32],
        lengths: npt.NDArray[np.int64],
        validation: npt.NDArray[np.bool_] | None = None,
        *origins: Sequence[str],
    ) -> None:
        """Add documents.

        Args:
            ids: The ids of all documents, in sequence.
            lengths: The number of ids of each document.
            validation: Which of them are for validation; None for none.
            origins: What an index has of each document.
        """
        if validation is None or not validation.any():
            self._writers[0].write(ids, lengths, *origins)
            return
        for writer, chosen in zip(self._writers, (~validation, validation), strict=True):
            selected = (list(compress(each, chosen)) for each in origins)
            writer.write(*select_documents(ids, lengths, chosen), *selected)

    def finish(self) -> None:
        """Write the end of the files."""
        for writer in self._writers:
            writer.finish()

    def abandon(self) -> None:
        """Give up the unfinished shard."""
        for writer in self._writers:
            writer.abandon()


def split_format(shard_format: ShardFormat) -> ShardFormat:
    """Return the format of shards with files for training and files for validation.

    >>> from bpe_tokenizer.corpus.shards import FORMATS
    >>> split_format(FORMATS["megatron"]).suffixes
    ('.train.bin', '.train.idx', '.val.bin', '.val.idx')
    """
    suffixes = shard_format.suffixes

    def open_both(files: Sequence[BinaryIO], dtype: TokenType) -> SplitShard:
        training, validation = files[: len(suffixes)], files[len(suffixes) :]
        return SplitShard(shard_format.open(training, dtype), shard_format.open(validation, dtype))

    names = tuple(f".{side}{suffix}" for side in ("train", "val") for suffix in suffixes)
    return shard_format._replace(suffixes=names, open=open_both)
