"""Which id comes next, from logits: for engines that hand these out, so that options mean the same on all.

Top-p (nucleus) sampling is that of Holtzman et al., https://arxiv.org/abs/1904.09751, after the temperature,
as in `transformers` and vLLM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.options import GenerationOptions

__all__ = ["Sampler"]

Floats = np.ndarray[Any, np.dtype[np.floating[Any]]]


class Sampler:
    """Draws one id after the other; made anew for each generation.

    Args:
        options: Temperature, top-p and seed. Without a seed the system's randomness is taken.

    >>> sampler = Sampler(GenerationOptions(temperature=0))
    >>> sampler.draw(np.array([0.5, 2.0, 1.0]))
    1
    """

    def __init__(self, options: GenerationOptions) -> None:
        self._options = options
        self._random = np.random.default_rng(options.seed)

    def draw(self, logits: Floats) -> int:
        """Return an id.

        Args:
            logits: One for each id, in any floating type; one dimension. Not changed.

        Raises:
            GenerationError: The highest logit is not a number, or infinite.
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
    """Return the likeliest ids whose probabilities sum up to at least `top_p`, and their weights.

    Args:
        logits: One for each id.
        temperature: What they are divided by; more than 0.
        top_p: At most 1, which keeps every id that is possible.

    Returns:
        The ids, and in the same order weights that are proportional to their probabilities.

    >>> ids, weights = nucleus(np.log([0.1, 0.6, 0.3]), 1.0, 0.8)
    >>> ids.tolist(), (weights / weights.sum()).round(3).tolist()
    ([1, 2], [0.667, 0.333])
    """
    scaled = logits.astype(np.float64)
    # The highest becomes 0 before the division, so that no power is too large.
    scaled -= scaled.max()
    scaled /= temperature
    weights = np.exp(scaled)
    if top_p >= 1:
        return np.arange(len(weights)), weights
    total = weights.sum()
    # Ids below this share sum up to less than 1 - top_p all together: the nucleus is among the others, which
    # are few and quickly sorted.
    likely = np.flatnonzero(weights >= total * (1 - top_p) / len(weights))
    likely = likely[np.argsort(-weights[likely], kind="stable")]
    sums = np.cumsum(weights[likely])
    kept = likely[: np.searchsorted(sums, top_p * total) + 1]
    return kept, weights[kept]
