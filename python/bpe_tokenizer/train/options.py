"""Options of training and counting, checked when they are made."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from bpe_tokenizer.arguments import check_flag, check_integer
from bpe_tokenizer.errors import ArgumentTypeError, OptionError
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.options import LearningOptions
from bpe_tokenizer.special_tokens import SpecialTokens, assign_ids

__all__ = [
    "TrainingOptions",
    "check_weight",
    "check_weights",
]


@dataclass(frozen=True)
class TrainingOptions(LearningOptions):
    """The options of a training run, as `BPETokenizer.train` documents them.

    `added_tokens` are the special tokens with their ids.

    Raises:
        ModelError: A special token is empty or a duplicate, or its id is taken, below 256 or too large.
        OptionError: Another option is out of its range.
    """

    vocab_size: int = 32000
    min_frequency: int = 2
    special_tokens: SpecialTokens | None = None
    verbose: bool = True
    added_tokens: tuple[AddedToken, ...] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("vocab_size", self.vocab_size, 257, "the 256 bytes are the first 256 ids")
        vocab_size = check_integer("vocab_size", self.vocab_size, 257, maximum=2**31 - 1)
        object.__setattr__(self, "vocab_size", vocab_size)
        # The core's numbers have 64 bits; a greater one does what the greatest does.
        frequency = check_integer("min_frequency", self.min_frequency, 0)
        object.__setattr__(self, "min_frequency", min(frequency, sys.maxsize))
        object.__setattr__(self, "verbose", check_flag("verbose", self.verbose))
        added = assign_ids(self.special_tokens, self.vocab_size)
        object.__setattr__(self, "added_tokens", tuple(added))

    def core_options(self) -> dict[str, Any]:
        """Return the arguments of the core's training that do not depend on the vocabulary."""
        return {**super().core_options(), "min_frequency": self.min_frequency}

    @property
    def wanted_merges(self) -> int:
        """The number of merges to learn: the ids below `vocab_size` that nothing else takes."""
        return self.vocab_size - 256 - sum(token.id < self.vocab_size for token in self.added_tokens)


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
        ArgumentTypeError: They have no order, or a weight is not an `int`.
        OptionError: The number of weights is not `sources`, or a weight is out of its range.
    """
    if weights is None:
        return [1] * sources
    if isinstance(weights, str | bytes | Set | Mapping) or not isinstance(weights, Iterable):
        raise ArgumentTypeError(
            f"weights must be a list of int, one for each file, not {type(weights).__name__}"
        )
    checked = [check_weight(weight) for weight in weights]
    if len(checked) != sources:
        raise OptionError(f"there are {len(checked)} weights for {sources} files: give one each")
    return checked
