"""Runs an iterator in a thread, some bytes ahead of its consumer."""

from __future__ import annotations

import _thread
import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

from bpe_tokenizer.errors import OptionError

__all__ = ["Prefetcher"]

_Item = TypeVar("_Item")
# How long the consumer waits before it looks whether the thread runs, and how long `close` waits for it.
_WAIT = 0.2
_CLOSE = 0.5


class Prefetcher(Generic[_Item]):
    """The items of a generator that a thread runs.

    At most `limit` bytes of items wait for the consumer, or one item. An exception of the generator arrives
    after the items before it. If no thread starts, the consumer runs the generator.

    Args:
        items: The generator. It is closed in the thread that runs it.
        size: The bytes of an item.
        limit: The bytes that may wait.

    >>> with Prefetcher((number for number in range(3)), lambda number: 1, limit=2) as prefetcher:
    ...     list(prefetcher)
    [0, 1, 2]
    """

    def __init__(self, items: Generator[_Item, None, None], size: Callable[[_Item], int], limit: int) -> None:
        self._items = items
        self._size = size
        self._limit = limit
        self._waiting: deque[_Item] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._stopped = self._ended = False
        self._error: BaseException | None = None
        self._process = os.getpid()
        # The thread runs the generator, or the consumer, whoever acquires this first.
        self._claim = threading.Lock()
        self._is_inline = False
        _running.add(self)
        try:
            # `Thread.start()` would wait for ever for a thread that finds no memory.
            _thread.start_new_thread(self._run, ())
        except (RuntimeError, MemoryError):  # no thread can start
            self._is_inline = self._claim.acquire()

    def __enter__(self) -> Prefetcher[_Item]:
        """Return the items."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread."""
        self.close()

    def __iter__(self) -> Iterator[_Item]:
        return self

    def __next__(self) -> _Item:
        if self._is_inline:
            return next(self._items)
        self._check_process()
        with self._changed:
            while not self._waiting:
                if self._error is not None:
                    error, self._error = self._error, None
                    raise error
                if self._ended:
                    raise StopIteration
                if not self._changed.wait(_WAIT) and self._claim.acquire(blocking=False):
                    self._is_inline = True
                    return next(self._items)
            item = self._waiting.popleft()
            self._bytes -= self._size(item)
            self._changed.notify_all()
        return item

    def close(self) -> None:
        """Stop the thread after its current step, and drop what waits."""
        if os.getpid() != self._process:
            return  # a forked child has no thread
        _running.discard(self)
        if self._is_inline or self._claim.acquire(blocking=False):
            self._is_inline = True
            self._items.close()
            return
        with self._changed:
            self._stopped = True
            self._waiting.clear()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._ended, _CLOSE)

    def _check_process(self) -> None:
        # Before the lock, which the thread may have held at the fork.
        if os.getpid() != self._process:
            raise OptionError(
                "these documents are being read by another process, from which this one was forked: start to "
                "read them in the process that uses them"
            )

    def _run(self) -> None:
        if not self._claim.acquire(blocking=False):
            return
        try:
            try:
                for item in self._items:
                    if not self._put(item):
                        break
                    del item
            finally:
                self._items.close()
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _put(self, item: _Item) -> bool:
        """Let an item wait for the consumer. Returns False if there is none any more."""
        size = self._size(item)
        with self._changed:
            while self._waiting and self._bytes + size > self._limit and not self._stopped:
                self._changed.wait()
            if self._stopped:
                return False
            self._waiting.append(item)
            self._bytes += size
            self._changed.notify_all()
        return True


_running: weakref.WeakSet[Prefetcher[Any]] = weakref.WeakSet()


def _stop_all() -> None:
    """Stop all threads before the interpreter ends: it cannot end one that is in native code."""
    for each in list(_running):
        each.close()


atexit.register(_stop_all)
