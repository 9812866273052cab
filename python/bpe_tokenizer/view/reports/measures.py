"""Measures for papers: entropy, Rényi efficiency, Gini's coefficient, and how far the corpus is a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "MIN_UNITS",
    "ORDER",
    "Units",
    "gini",
    "information",
    "interval",
    "ratio_interval",
    "renyi_entropy",
    "resampled_sums",
]

# The order with which the efficiency predicted the quality of translations best.
# Source: Zouhar et al. (2023), "Tokenization and the Noiseless Channel", https://arxiv.org/abs/2306.16842
ORDER = 2.5
# An interval of fewer units would be a guess.
MIN_UNITS = 30
_MAX_UNITS = 8192
_RESAMPLES, _AT_ONCE = 1000, 100
# The ends of an interval of 95 %.
_ENDS = (0.025, 0.975)


def renyi_entropy(counts: npt.NDArray[np.int64], order: float) -> float | None:
    """Return the entropy of the distribution of tokens in bits; None without tokens.

    Args:
        counts: How often each token occurs.
        order: 1 is Shannon's entropy; above 1, frequent tokens weigh more.

    Example:
        >>> counts = np.array([2, 1, 1, 0])
        >>> renyi_entropy(counts, 1), round(renyi_entropy(counts, 2.5), 4)
        (1.5, 1.3755)
    """
    shares = counts[counts > 0] / max(counts.sum(), 1)
    if not len(shares):
        return None
    if order == 1:
        return float(-(shares * np.log2(shares)).sum()) + 0.0
    return float(np.log2((shares**order).sum()) / (1 - order)) + 0.0


def information(counts: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return entropies of tokens in bits, and the efficiency: entropy by its maximum for the used tokens.

    Also the average rank of a token by frequency, and the type-token ratio: used tokens by all tokens.

    The values are those of the package `tokenization-scorer` of the paper's authors.

    Args:
        counts: How often each id occurs.

    Example:
        >>> information(np.array([2, 1, 1, 0]))["renyi_efficiency"]
        0.8678
    """
    shannon, renyi = renyi_entropy(counts, 1), renyi_entropy(counts, ORDER)
    ranked = np.sort(counts[counts > 0])[::-1]
    used, tokens = len(ranked), int(ranked.sum())
    places = int(ranked @ np.arange(1, used + 1))
    return {
        "entropy": None if shannon is None else round(shannon, 4),
        "renyi_order": ORDER,
        "renyi_entropy": None if renyi is None else round(renyi, 4),
        "renyi_efficiency": None if renyi is None or used < 2 else round(renyi / float(np.log2(used)), 4),
        "average_rank": round(places / tokens, 2) if tokens else None,
        "type_token_ratio": round(used / tokens, 6) if tokens else None,
    }


def gini(costs: Sequence[float]) -> float | None:
    """Return how unequal the costs of languages are: 0 for equal ones; None for fewer than two.

    Source: Gini's coefficient, as TokEval's "tokenizer fairness Gini",
    https://github.com/cimeister/tokenizer-analysis-suite

    Args:
        costs: Tokens for the same text, or for a character, of each language.

    Example:
        >>> gini([1.0, 1.0]), gini([1.0, 3.0])
        (0.0, 0.25)
    """
    count = len(costs)
    if count < 2 or not sum(costs):
        return None
    weights = range(1 - count, count, 2)
    weighted = sum(weight * cost for weight, cost in zip(weights, sorted(costs), strict=True))
    return round(weighted / (count * sum(costs)), 4)


class Units:
    """The sizes of the parts of a corpus that a bootstrap draws: documents, or parts of long texts.

    At most 8,192 are kept: then each two neighbours become one. Neighbours are alike, so fewer and larger
    units do not make an interval too small.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._each = 1
        self._size = self._tokens = self._held = 0

    def add(self, size: int, tokens: int) -> None:
        """Add a part of the corpus, with its bytes and its tokens."""
        self._size += size
        self._tokens += tokens
        self._held += 1
        if self._held < self._each:
            return
        self._rows.append((self._size, self._tokens))
        self._size = self._tokens = self._held = 0
        if len(self._rows) == _MAX_UNITS:
            rows = np.array(self._rows)
            self._rows = [(size, tokens) for size, tokens in (rows[::2] + rows[1::2]).tolist()]
            self._each *= 2

    def columns(self) -> npt.NDArray[np.int64]:
        """Return the bytes and the tokens of each unit, of shape (2, units)."""
        return np.array(self._rows, dtype=np.int64).reshape(-1, 2).T

    def to_dict(self) -> dict[str, Any]:
        """Return the interval of the bytes per token, and the bytes for an interval of ±1 %."""
        sizes, tokens = self.columns()
        found = ratio_interval(sizes, tokens)
        needed = None
        if found is not None:
            width = (found[1] - found[0]) / 2 / (sizes.sum() / tokens.sum())
            needed = round(int(sizes.sum()) * (width / 0.01) ** 2)
        return {"units": len(sizes), "bytes_per_token": found, "bytes_for_one_percent": needed}


def ratio_interval(parts: npt.NDArray[np.int64], wholes: npt.NDArray[np.int64]) -> tuple[float, float] | None:
    """Return the 95 % interval of a ratio of sums, by the percentile bootstrap; None for too few units.

    Source: Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapter 13.

    Args:
        parts: The numerator of each unit.
        wholes: The denominator of each unit. A unit without any is left out.

    Example:
        >>> ratio_interval(np.array([4, 5] * 50), np.array([1] * 100))
        (4.4, 4.6)
    """
    columns = np.array([parts, wholes])[:, wholes > 0]
    sums = resampled_sums(columns)
    return None if sums is None else interval(sums[0], sums[1])


def resampled_sums(columns: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return the sums of what a bootstrap draws, of shape (rows, samples); None for too few units.

    Args:
        columns: The sizes of each unit, of shape (rows, units). All rows are sums of the same units.
    """
    count = columns.shape[1]
    if count < MIN_UNITS:
        return None
    generator = np.random.default_rng(0)  # the same corpus has the same interval
    shares = np.full(count, 1 / count)
    times = (generator.multinomial(count, shares, size=_AT_ONCE) for _ in range(0, _RESAMPLES, _AT_ONCE))
    return np.concatenate([columns @ each.T for each in times], axis=1)


def interval(parts: npt.NDArray[Any], wholes: npt.NDArray[Any]) -> tuple[float, float]:
    """Return the 95 % interval of the ratio of sums.

    Args:
        parts: The numerator in each sample.
        wholes: The denominator in each sample.
    """
    low, high = np.quantile(parts / wholes, _ENDS)
    return round(float(low), 4), round(float(high), 4)
