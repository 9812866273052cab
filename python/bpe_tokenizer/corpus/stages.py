"""Stages of a pipeline: threads that work on items while the next ones are read, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
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
    pending: deque[tuple[int, Callable[[], _Result], Future[_Result] | None]] = deque()
    held = 0
    has_thread = True
    pool = ThreadPoolExecutor(workers)

    def take() -> _Result:
        nonlocal held
        cost, result, _ = pending.popleft()
        held -= cost
        return result()

    failure: Exception | None = None
    items = iter(items)
    try:
        while True:
            try:
                item = next(items)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            cost = size(item)
            while pending and held + cost > limit:
                yield take()
            future: Future[_Result] | None = None
            if has_thread and not inline(item):
                try:
                    future = pool.submit(work, item)
                except RuntimeError:  # no thread can start
                    has_thread = False
            pending.append((cost, _call(work, item) if future is None else future.result, future))
            held += cost
            del item, future  # A large item is freed as early as possible.
            while pending and _is_ready(pending[0][2]):
                yield take()
        while pending:
            yield take()
        if failure is not None:
            raise failure
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _call(work: Callable[[_Item], _Result], item: _Item) -> Callable[[], _Result]:
    return lambda: work(item)


def _is_ready(future: Future[_Result] | None) -> bool:
    return future is None or future.done()


def in_threads(look: Callable[[_Item], _Result], items: Iterable[_Item]) -> Generator[_Result, None, None]:
    """Apply a function that waits for storage to many items, some at the same time, and yield the results.

    >>> list(in_threads(str, range(3)))
    ['0', '1', '2']
    """
    return ordered_map(look, items, workers=_LOOKS, size=lambda _: 1, limit=2 * _LOOKS)
