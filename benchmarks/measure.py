"""Times two sides alternately, with the ratio of each round."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

__all__ = ["Spread", "in_turn", "seconds", "spread"]


class Spread(NamedTuple):
    """The median of some values, the smallest and the largest."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    """Return the median of values, the smallest and the largest."""
    numbers = list(values)
    return Spread(statistics.median(numbers), min(numbers), max(numbers))


def in_turn(mine: Callable[[], float], theirs: Callable[[], float], turns: int) -> list[tuple[float, float]]:
    """Time two sides alternately.

    Args:
        mine: Runs ours once and returns the seconds that it took.
        theirs: The same for the other side.
        turns: How often both run.

    Returns:
        The seconds of both, for each turn.
    """
    return [(mine(), theirs()) for _ in range(turns)]


def seconds(run: Callable[[], object]) -> float:
    """Time one run as `timeit` does, without the garbage collector; the result is freed after the timing."""
    gc.collect()
    gc.disable()
    try:
        begin = time.perf_counter()
        result = run()
        taken = time.perf_counter() - begin
    finally:
        gc.enable()
    del result
    return taken
