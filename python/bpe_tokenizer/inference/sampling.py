"""Draws the next id from logits, for engines that expose them, so that options mean the same on all.

Top-p (nucleus) sampling as in Holtzman et al., https://arxiv.org/abs/1904.09751, applied after the
temperature as in `transformers` and vLLM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.options import GenerationOptions

__all__ = ["Sampler"]

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]


class Sampler:
    """Draws the ids of one generation.

    Args:
        options: Temperature, top-p and seed. Without a seed, the system's random source is used.

    >>> sampler = Sampler(GenerationOptions(temperature=0))
    >>> sampler.draw(np.array([0.5, 2.0, 1.0]))
    1
    """

    def __init__(self, options: GenerationOptions) -> None:
        self._options = options
        self._random = np.random.default_rng(options.seed)

    def draw(self, logits: Floats) -> int:
        """Draw an id.

        Args:
            logits: Shape (vocabulary,), any floating type. Not changed.

        Raises:
            GenerationError: The highest logit is NaN or infinite.
        """
        likeliest = int(np.argmax(logits))
        if not np.isfinite(logits[likeliest]):
            raise GenerationError(f"the model computes no numbers: the highest logit is {logits[likeliest]}")
        if self._options.is_greedy:
            return likeliest
        ids, weights = nucleus(logits, self._options.temperature, self._options.top_p)
        sums = np.cumsum(weights)
        at = np.searchsorted(sums, self._random.random() * sums[-1], side="right")
        return int(ids[min(at, len(ids) - 1)])


def nucleus(
    logits: Floats, temperature: float, top_p: float
) -> tuple[np.ndarray[Any, np.dtype[np.intp]], Floats]:
    """Return the likeliest ids whose probabilities sum to at least `top_p`, and their weights.

    Args:
        logits: Shape (vocabulary,).
        temperature: The divisor of the logits, more than 0.
        top_p: At most 1, which keeps every possible id.

    Returns:
        The ids, and their weights in the same order, proportional to their probabilities.

    >>> ids, weights = nucleus(np.log([0.1, 0.6, 0.3]), 1.0, 0.8)
    >>> ids.tolist(), (weights / weights.sum()).round(3).tolist()
    ([1, 2], [0.667, 0.333])
    """
    scaled = logits.astype(np.float64)
    # Subtract the maximum before the division, so that exp() cannot overflow.
    scaled -= scaled.max()
    scaled /= temperature
    weights = np.exp(scaled)
    if top_p >= 1:
        return np.arange(len(weights)), weights
    total = weights.sum()
    # All ids below this share have a sum below 1 - top_p, so the nucleus is among the others, which are few
    # and quickly sorted.
    likely = np.flatnonzero(weights >= total * (1 - top_p) / len(weights))
    likely = likely[np.argsort(-weights[likely], kind="stable")]
    sums = np.cumsum(weights[likely])
    kept = likely[: np.searchsorted(sums, top_p * total) + 1]
    return kept, weights[kept]
