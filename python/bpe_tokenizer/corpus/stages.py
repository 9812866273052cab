"""Stages of a pipeline: threads that work on items while the next ones are read, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_threads", "ordered_map"]

# Files that are looked at, at the same time: each takes some milliseconds of a store or a network.
_LOOKS = 16
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def ordered_map(
    work: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    workers: int,
    size: Callable[[_Item], int],
    limit: int,
    inline: Callable[[_Item], bool] = lambda item: False,
) -> Generator[_Result, None, None]:
    """Apply a function to items in threads, and yield the results in the order of the items.

    The items are taken in the thread of the consumer. If the system gives no thread, the work runs there too.
    If the next item is an error, the results of the items before it come first. Closing the generator ends
    the threads after the items that they work on.

    Args:
        work: The function. It releases the GIL where it takes long.
        items: The items.
        workers: Maximum number of threads.
        size: The bytes of an item.
        limit: Maximum number of bytes of the items in work; a larger item is alone.
        inline: Whether the function runs in the consumer's thread for an item, which Ctrl-C interrupts.

    >>> list(ordered_map(str, [1, 2, 3], workers=2, size=lambda item: 1, limit=2))
    ['1', '2', '3']
    """
    # The size and the result of each item in work.
    pending: deque[tuple[int, Future[_Result]]] = deque()
    held = 0
    has_thread = True
    failures: list[Exception] = []
    pool = ThreadPoolExecutor(workers)

    def start(item: _Item) -> Future[_Result]:
        nonlocal has_thread
        if has_thread and not inline(item):
            try:
                return pool.submit(work, item)
            except RuntimeError:  # no thread can start
                has_thread = False
        done: Future[_Result] = Future()
        try:
            done.set_result(work(item))
        except Exception as error:
            done.set_exception(error)
        return done

    def take() -> _Result:
        nonlocal held
        cost, future = pending.popleft()
        held -= cost
        return future.result()

    try:
        for item in _until_error(items, failures):
            cost = size(item)
            while pending and held + cost > limit:
                yield take()
            pending.append((cost, start(item)))
            held += cost
            del item  # A large item is freed as early as possible.
            while pending and pending[0][1].done():
                yield take()
        while pending:
            yield take()
        if failures:
            raise failures[0]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _until_error(items: Iterable[_Item], failures: list[Exception]) -> Iterator[_Item]:
    try:
        yield from items
    except Exception as error:
        failures.append(error)


def in_threads(look: Callable[[_Item], _Result], items: Iterable[_Item]) -> Generator[_Result, None, None]:
    """Apply a function that waits for storage to many items, some at the same time, and yield the results.

    >>> list(in_threads(str, range(3)))
    ['0', '1', '2']
    """
    return ordered_map(look, items, workers=_LOOKS, size=lambda _: 1, limit=2 * _LOOKS)
