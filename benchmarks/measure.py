"""Times two sides alternately, with the ratio of each round."""

from __future__ import annotations

import contextlib
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["Spread", "in_turn", "on_processors", "seconds", "spread"]


class Spread(NamedTuple):
    """The median of some values, the smallest and the largest."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    """Return the median of values, the smallest and the largest."""
    numbers = list(values)
    return Spread(statistics.median(numbers), min(numbers), max(numbers))


@contextlib.contextmanager
def on_processors(count: int) -> Iterator[None]:
    """Limit all threads of this process to `count` processors, on Linux.

    Some packages start another thread although one is asked for: fastokens does for a long text. The limit
    gives both sides of a comparison equally many processors. They may be two threads of one core.
    """
    if sys.platform != "linux":
        yield
        return
    allowed = os.sched_getaffinity(0)

    def restrict(processors: Iterable[int]) -> None:
        for thread in Path("/proc/self/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(int(thread.name), processors)

    restrict(sorted(allowed)[:count])
    try:
        yield
    finally:
        restrict(allowed)


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


def seconds(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Time one run as `timeit` does, without the garbage collector; the result is freed after the timing."""
    gc.collect()
    gc.disable()
    try:
        begin = clock()
        result = run()
        taken = clock() - begin
    finally:
        gc.enable()
    del result
    return taken
