"""A fair lock for threads and asyncio tasks: first come, first served.

Source of the algorithm: the ticket lock of Mellor-Crummey and Scott, https://doi.org/10.1145/103727.103729.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio

__all__ = ["Caller", "FairLock"]


class Caller(NamedTuple):
    """The thread and the task that run the current code.

    Args:
        thread: The thread's identifier.
        task: The asyncio task that runs in the thread; None outside of an event loop.
    """

    thread: int
    task: asyncio.Task[Any] | None

    @classmethod
    def current(cls) -> Caller:
        """Return the current thread and task."""
        import asyncio

        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        return cls(threading.get_ident(), task)


class FairLock:
    """A lock that passes to the waiting threads and tasks in the order of their requests.

    Attributes:
        holder: The last user of the lock. The holder of the lock sets it.

    >>> lock = FairLock()
    >>> first, second = lock.acquire(), lock.acquire()
    >>> first.done(), second.done()
    (True, False)
    >>> lock.release(first)
    >>> second.done()
    True
    """

    def __init__(self) -> None:
        self.holder: Caller | None = None
        # Re-entrant, because a garbage collection inside these methods can release a ticket.
        self._lock = threading.RLock()
        self._waiting: deque[Future[None]] = deque()
        # Weak, so that a ticket whose owner was lost to Ctrl-C releases the lock.
        self._current: weakref.ref[Future[None]] | None = None

    def acquire(self) -> Future[None]:
        """Request the lock.

        Returns:
            A ticket, which is done when the lock is acquired. The lock is held while anything refers to the
            ticket. Cancelling the ticket earlier leaves the queue.
        """
        ticket: Future[None] = Future()
        with self._lock:
            self._waiting.append(ticket)
            if self._current is None:
                self._pass_on()
        return ticket

    def release(self, ticket: Future[None]) -> None:
        """Release the lock, or leave the queue. Can be called more than once."""
        if ticket.cancel():
            return
        with self._lock:
            if self._current is not None and self._current() is ticket:
                self._pass_on()

    def _pass_on(self) -> None:
        self._current = self.holder = None
        while self._waiting and self._current is None:
            ticket = self._waiting.popleft()
            if ticket.set_running_or_notify_cancel():
                self._current = weakref.ref(ticket, self._forget)
                ticket.set_result(None)

    def _forget(self, ticket: weakref.ref[Future[None]]) -> None:
        with self._lock:
            if self._current is ticket:
                self._pass_on()
