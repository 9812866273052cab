"""Who may use a model now: one at a time, in the order of asking."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio

__all__ = ["Caller", "Turns"]


class Caller(NamedTuple):
    """Who calls.

    Args:
        thread: The thread's identifier.
        task: The task of asyncio that runs in the thread; None outside of its loop.
    """

    thread: int
    task: asyncio.Task[Any] | None

    @classmethod
    def current(cls) -> Caller:
        """Return who calls this."""
        import asyncio

        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        return cls(threading.get_ident(), task)


class Turns:
    """A lock that is given on in the order of asking, to threads and to tasks of asyncio alike.

    Attributes:
        holder: Who used the turn last; set by whoever has it.

    >>> turns = Turns()
    >>> first, second = turns.take(), turns.take()
    >>> first.done(), second.done()
    (True, False)
    >>> turns.leave(first)
    >>> second.done()
    True
    """

    def __init__(self) -> None:
        self.holder: Caller | None = None
        # Re-entrant: a garbage collection may give a turn back while its thread is in here.
        self._lock = threading.RLock()
        self._waiting: deque[Future[None]] = deque()
        # Weak: a turn that Ctrl-C took its holder from, before or after it came, is over.
        self._current: weakref.ref[Future[None]] | None = None

    def take(self) -> Future[None]:
        """Ask for a turn.

        Returns:
            Is done when the turn has come, which lasts as long as something refers to this. To cancel it
            before is to leave the queue.
        """
        turn: Future[None] = Future()
        with self._lock:
            self._waiting.append(turn)
            if self._current is None:
                self._give_to_next()
        return turn

    def leave(self, turn: Future[None]) -> None:
        """Leave the queue, or end the turn if it has come; more than once does no harm."""
        if turn.cancel():
            return
        with self._lock:
            if self._current is not None and self._current() is turn:
                self._give_to_next()

    def _give_to_next(self) -> None:
        self._current = self.holder = None
        while self._waiting and self._current is None:
            turn = self._waiting.popleft()
            if turn.set_running_or_notify_cancel():
                self._current = weakref.ref(turn, self._forget)
                turn.set_result(None)

    def _forget(self, turn: weakref.ref[Future[None]]) -> None:
        with self._lock:
            if self._current is turn:
                self._give_to_next()
