"""Engines that call back with each id, as iterators: they run in a thread, in step with who iterates."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from bpe_tokenizer.inference.loaded import Cancellation

__all__ = ["Worker"]

# Takes an id; returns whether to go on.
Callback = Callable[[int], bool]
# Seconds that the end of the program waits for an engine's step.
_PATIENCE = 10.0
_T = TypeVar("_T")

_handovers: weakref.WeakSet[_Handover] = weakref.WeakSet()


class Worker:
    """The thread that an engine works in; one for a model, because engines keep things for each thread.

    It ends when it is closed or nothing refers to it any more.

    >>> def engine(callback):
    ...     return all(callback(new_id) for new_id in range(1000))
    >>> worker = Worker()
    >>> ids = worker.iterate(engine, Cancellation())
    >>> next(ids), next(ids)
    (0, 1)
    >>> ids.close()
    >>> worker.call(threading.active_count) > 1
    True
    >>> worker.close()
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=_work, args=(self._jobs,), name="bpe-tokenizer-inference", daemon=True
        )
        self._thread.start()
        weakref.finalize(self, self._jobs.put, None).atexit = False

    def call(self, function: Callable[[], _T]) -> _T:
        """Return what a function returns, called in the thread.

        Raises:
            Exception: What the function raises.
        """
        called: Future[_T] = Future()

        def job() -> None:
            try:
                called.set_result(function())
            except BaseException as error:
                called.set_exception(error)

        self._jobs.put(job)
        return called.result()

    def iterate(self, run: Callable[[Callback], object], cancellation: Cancellation) -> Iterator[int]:
        """Yield the ids that an engine calls back with.

        The engine is at most one id ahead. It is asked to end when the iterator is closed or the generation
        cancelled, and has ended when the iterator has.

        Args:
            run: Runs the engine to its end; is given what to call with each id.
            cancellation: Of the generation.

        Raises:
            Exception: What `run` raises.
        """
        handover = _Handover(cancellation)
        self._jobs.put(lambda: handover.work(run))
        try:
            yield from handover.take_all()
        finally:
            handover.stop()
            handover.wait()

    def close(self) -> None:
        """End the thread, and wait for its end."""
        self._jobs.put(None)
        self._thread.join()


def _work(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        # Until the next comes it would hold what it refers to.
        del job


class _Handover:
    """Where one thread leaves an id and another takes it."""

    def __init__(self, cancellation: Cancellation) -> None:
        self._changed = threading.Condition()
        self._cancellation = cancellation
        self._id: int | None = None
        self._has_ended = False
        self._is_stopped = False
        self._error: BaseException | None = None
        _handovers.add(self)

    def work(self, run: Callable[[Callback], object]) -> None:
        """Run the engine."""
        try:
            if not self._is_stopped:
                run(self._leave)
        except BaseException as error:
            self._error = error
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def take_all(self) -> Iterator[int]:
        """Yield what is left, to the end."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._id is not None or self._has_ended)
                new_id, self._id = self._id, None
                self._changed.notify_all()
            if new_id is None:
                break
            yield new_id
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Ask the engine to end at its next id."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the engine has ended, at most so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended, timeout)

    def abandon(self) -> None:
        """Take the engine for ended, in a forked process, where its thread is not."""
        self._changed = threading.Condition()
        self._has_ended = True

    def _leave(self, new_id: int) -> bool:
        """Leave an id when the one before was taken; returns whether the engine goes on."""
        with self._changed:
            self._changed.wait_for(lambda: self._id is None or self._is_stopped)
            if not self._is_stopped:
                self._id = new_id
                self._changed.notify_all()
        return not self._is_stopped and not self._cancellation.is_cancelled


@atexit.register
def _stop_all() -> None:
    """Let no engine work while the interpreter goes away: it would call back into nothing."""
    for handover in list(_handovers):
        handover.stop()
        handover.wait(_PATIENCE)


def _abandon_all() -> None:
    for handover in list(_handovers):
        handover.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_abandon_all)
