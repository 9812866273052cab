"""Whether work grows with its input, in CPU time of this thread: no other work on the machine uses it."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["assert_linear"]


def assert_linear(work: Callable[[int], object], units: int) -> None:
    """Four times the input takes about four times the time; sixteen times if work is repeated."""

    def seconds(units: int) -> float:
        begin = time.thread_time()
        work(units)
        return time.thread_time() - begin

    work(units)
    small = large = float("inf")
    for _ in range(5):
        small, large = min(small, seconds(units)), min(large, seconds(4 * units))
        if large < 9 * max(small, 0.005):
            return
    raise AssertionError(f"{large:.3f} s for four times the input that takes {small:.3f} s")
