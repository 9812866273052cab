"""Options of training and counting, checked when they are made."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bpe_tokenizer.arguments import check_choice, check_flag, check_integer, check_path, thread_count
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, shorten
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.special_tokens import SpecialTokens, assign_ids

__all__ = [
    "CountLimits",
    "TieBreak",
    "TrainingOptions",
    "check_min_count",
    "check_weight",
    "check_weights",
    "memory_bytes",
    "sample_limit",
]

TieBreak: TypeAlias = Literal["largest", "huggingface"]

_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_MEMORY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b)?\s*", re.IGNORECASE)
# What a process takes besides the pieces: Python and the package 40 MB, pyarrow 70 MB, readers and two
# threads the rest; and the smallest limit that leaves memory for pieces.
_BASE_MEMORY = 164 * 10**6
_MIN_MEMORY = 200 * 10**6


@dataclass(frozen=True)
class TrainingOptions:
    """The options of a training run, as `BPETokenizer.train` documents them.

    `added_tokens` are the special tokens with their ids.

    Raises:
        ModelError: A special token is empty or a duplicate, or its id is taken, below 256 or too large.
        OptionError: Another option is out of its range.
    """

    vocab_size: int = 32000
    min_frequency: int = 2
    special_tokens: SpecialTokens | None = None
    tie_break: TieBreak = "largest"
    max_token_length: int | None = None
    threads: int | None = None
    verbose: bool = True
    added_tokens: tuple[AddedToken, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_integer("vocab_size", self.vocab_size, 257, "the 256 bytes are the first 256 ids")
        vocab_size = check_integer("vocab_size", self.vocab_size, 257, maximum=2**31 - 1)
        object.__setattr__(self, "vocab_size", vocab_size)
        # The core's numbers have 64 bits; a greater one does what the greatest does.
        frequency = check_integer("min_frequency", self.min_frequency, 0)
        object.__setattr__(self, "min_frequency", min(frequency, sys.maxsize))
        check_choice("tie_break", self.tie_break, ("largest", "huggingface"))
        if self.max_token_length is not None:
            length = check_integer("max_token_length", self.max_token_length, 1)
            object.__setattr__(self, "max_token_length", min(length, sys.maxsize))
        thread_count(self.threads)
        object.__setattr__(self, "verbose", check_flag("verbose", self.verbose))
        added = assign_ids(self.special_tokens, self.vocab_size)
        object.__setattr__(self, "added_tokens", tuple(added))


def memory_bytes(max_memory: int | str) -> int:
    """Return a memory limit in bytes.

    Args:
        max_memory: Bytes, or a text like `"500MB"` or `"2GiB"`.

    Raises:
        ArgumentTypeError: It is neither an `int` nor a `str`.
        OptionError: The text is not a size, or the limit is below 200 MB.

    >>> memory_bytes("1.5GB")
    1500000000
    """
    if isinstance(max_memory, bool) or not isinstance(max_memory, int | str):
        raise ArgumentTypeError(f"max_memory must be an int or a str, not {type(max_memory).__name__}")
    if isinstance(max_memory, str):
        match = _MEMORY.fullmatch(max_memory)
        if match is None:
            raise OptionError(f"max_memory is {shorten(max_memory)}; say it as '500MB', '2GB' or in bytes")
        size = float(match[1]) * _UNITS[(match[2] or "").lower()]
        max_memory = int(min(size, sys.maxsize))
    max_memory = min(int.__index__(max_memory), sys.maxsize)
    if max_memory < _MIN_MEMORY:
        raise OptionError(
            f"max_memory is {max_memory:,} bytes; give it at least 200MB, most of which Python, its "
            "libraries and the readers take"
        )
    return max_memory


@dataclass(frozen=True)
class CountLimits:
    """What counting may take and what it counts, as `PieceCounts` documents it.

    Raises:
        ArgumentTypeError: An option has another type.
        OptionError: An option is out of its range, or the directory does not exist.
    """

    max_memory: int | str | None = None
    spill_directory: str | os.PathLike[str] | None = None
    sample: float | str | None = None

    def __post_init__(self) -> None:
        self.core_options()

    def core_options(self) -> dict[str, Any]:
        """Return the arguments of the core's counter."""
        return {
            "max_memory": None if self.max_memory is None else memory_bytes(self.max_memory) - _BASE_MEMORY,
            "spill_directory": self._checked_directory(),
            "sample": None if self.sample is None else sample_limit(self.sample),
        }

    def _checked_directory(self) -> Path | None:
        if self.spill_directory is None:
            return None
        directory = check_path("spill_directory", self.spill_directory)
        if not directory.is_dir():
            raise OptionError(f"spill_directory is {shorten(str(directory), 150)}, which is no directory")
        return directory


def sample_limit(sample: float | str) -> int | None:
    """Return the number that the 64-bit hash of a document must be below to be in a sample.

    Args:
        sample: The rate, such as 0.1 or `"1/10"`.

    Returns:
        The rate times 2^64, rounded down; None if every document is in the sample.

    Raises:
        ArgumentTypeError: It is neither a number nor a text.
        OptionError: The text is not a number, or the rate is not in the range from 0 to 1.

    >>> sample_limit(0.1) == sample_limit("1/10") == 2**64 // 10
    True
    """
    if isinstance(sample, bool) or not isinstance(sample, int | float | str):
        raise ArgumentTypeError(f"sample must be a float or a str, not {type(sample).__name__}")
    try:
        # As a number is written, so that 0.1 is a tenth.
        rate = Fraction(sample if isinstance(sample, str) else repr(sample))
    except (ValueError, ZeroDivisionError):
        raise OptionError(f"sample is {shorten(sample)}; say it as 0.1 or '1/10'") from None
    if not 0 < rate <= 1:
        raise OptionError(f"sample is {shorten(sample)}; it must be more than 0 and at most 1")
    return None if rate == 1 else int(rate * 2**64)


def check_min_count(min_count: object) -> int:
    """Return the least count of a piece that is kept.

    Raises:
        ArgumentTypeError: It is not an `int`.
        OptionError: It is negative.
    """
    return 0 if min_count is None else min(check_integer("min_count", min_count, 0), sys.maxsize)


def check_weight(weight: object) -> int:
    """Return the weight of a source.

    Raises:
        ArgumentTypeError: It is not an `int`.
        OptionError: It is less than 1, or has more than 64 bits.
    """
    if isinstance(weight, bool) or not isinstance(weight, int):
        raise ArgumentTypeError(
            f"a weight must be an int, not {type(weight).__name__}, so that counts are exact; for 0.7 to 0.3 "
            "say 7 and 3"
        )
    return check_integer("a weight", weight, 1, maximum=2**64 - 1)


def check_weights(weights: Iterable[int] | None, sources: int) -> list[int]:
    """Return a weight for each source, 1 by default.

    Raises:
        ArgumentTypeError: A weight is not an `int`.
        OptionError: The number of weights is not `sources`, or a weight is out of its range.
    """
    if weights is None:
        return [1] * sources
    checked = [check_weight(weight) for weight in weights]
    if len(checked) != sources:
        raise OptionError(f"there are {len(checked)} weights for {sources} files: give one each")
    return checked
