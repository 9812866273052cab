"""Stages of the pipeline: order, bounds, errors, and a system without threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer.corpus.stages import ordered_map


def size(item: int) -> int:
    return item


@given(st.lists(st.integers(0, 9)), st.integers(1, 4), st.integers(0, 30))
def test_the_order_of_the_items(items: list[int], workers: int, limit: int) -> None:
    found = ordered_map(
        lambda item: item * 2, items, workers=workers, size=size, limit=limit, inline=lambda item: item == 3
    )
    assert list(found) == [item * 2 for item in items]


def test_the_bytes_in_work_are_bounded() -> None:
    lock = threading.Lock()
    taken = 0
    done = 0
    most = 0

    def items() -> Iterator[int]:
        nonlocal taken, most
        for _ in range(50):
            with lock:
                taken += 10
                most = max(most, taken - done)
            yield 10

    def work(item: int) -> int:
        time.sleep(0.001)
        return item

    for item in ordered_map(work, items(), workers=4, size=size, limit=40):
        with lock:
            done += item
    assert most <= 60  # Those in work, the one that waits for room, and the one that is consumed.


def test_what_comes_before_an_error() -> None:
    def items() -> Iterator[int]:
        yield from (1, 2, 3)
        raise ValueError("the fourth")

    found: list[int] = []
    inner = ordered_map(lambda item: item, items(), workers=2, size=size, limit=100)
    with pytest.raises(ValueError, match="the fourth"):
        found.extend(ordered_map(lambda item: item, inner, workers=1, size=size, limit=100))
    assert found == [1, 2, 3]


def test_an_error_of_the_work() -> None:
    def work(item: int) -> int:
        if item == 3:
            raise ValueError("the third")
        return item

    found: list[int] = []
    with pytest.raises(ValueError, match="the third"):
        found.extend(ordered_map(work, range(1, 100), workers=2, size=size, limit=10**6))
    assert found == [1, 2]
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_closing_ends_the_threads() -> None:
    found = ordered_map(lambda item: item, range(100), workers=3, size=size, limit=1000)
    assert next(found) == 0
    found.close()
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]
