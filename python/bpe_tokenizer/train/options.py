"""Options of training and counting, checked when they are made."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from bpe_tokenizer.arguments import check_choice, check_flag, check_integer, thread_count
from bpe_tokenizer.errors import ArgumentTypeError, OptionError
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.special_tokens import SpecialTokens, assign_ids

__all__ = [
    "TieBreak",
    "TrainingOptions",
    "check_min_count",
    "check_weight",
    "check_weights",
]

TieBreak: TypeAlias = Literal["largest", "huggingface"]


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
