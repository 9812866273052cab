"""Chooses documents by a hash of their text: a sample, and those for validation."""

from __future__ import annotations

from itertools import pairwise
from typing import SupportsFloat
from zlib import crc32

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.documents import Counts, Flags
from bpe_tokenizer.errors import ArgumentTypeError, OptionError

__all__ = ["GOLDEN_GAMMA", "check_fraction", "is_sampled", "is_validation", "mixed"]

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


def is_validation(data: npt.NDArray[np.uint8], offsets: Counts, fraction: float) -> Flags:
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


def is_sampled(data: npt.NDArray[np.uint8], offsets: Counts, fraction: float) -> Flags:
    """Return which documents are in a sample. A hash of the text decides, another one than for validation.

    Arguments: as in `is_validation`.
    """
    return mixed(_text_hashes(data, offsets) + GOLDEN_GAMMA) < np.uint64(fraction * 2**64)


def _text_hashes(data: npt.NDArray[np.uint8], offsets: Counts) -> npt.NDArray[np.uint64]:
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
