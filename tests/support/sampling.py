"""A share of the long tests, chosen by the date, so that days in sequence cover all of them.

`BPE_TOKENIZER_SAMPLE=1` takes everything, as `make test-slow` does; another number replaces the share that
each test states. `BPE_TOKENIZER_SAMPLE_DAY=2026-11-22` repeats the sample of a day.
"""

from __future__ import annotations

import datetime
import math
import os
import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["DAY", "SHARE", "sample", "sample_size"]

T = TypeVar("T")

SHARE = "BPE_TOKENIZER_SAMPLE"
DAY = "BPE_TOKENIZER_SAMPLE_DAY"

# The workers of pytest-xdist inherit the day, also of a run that lasts beyond midnight.
os.environ.setdefault(DAY, datetime.date.today().isoformat())


def sample_size(whole: int, share: float) -> int:
    """How many of `whole` cases a run takes: at least one."""
    return max(1, math.ceil(whole * min(1.0, float(os.environ.get(SHARE, share)))))


def sample(cases: Sequence[T], share: float, seed: str) -> list[T]:
    """Take the cases of the day, in their order.

    The seed shuffles the cases once, and each day takes the next window of them.
    """
    count = min(sample_size(len(cases), share), len(cases))
    order = list(range(len(cases)))
    random.Random(seed).shuffle(order)
    start = datetime.date.fromisoformat(os.environ[DAY]).toordinal() * count
    chosen = sorted(order[(start + step) % len(cases)] for step in range(count))
    return [cases[index] for index in chosen]
