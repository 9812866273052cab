"""Turns an engine that calls back with each id into an iterator. The engine runs in a thread of its model."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from bpe_tokenizer.errors import GenerationError
from bpe_tokenizer.inference.engine_model import Cancellation

__all__ = ["EngineThread"]

# Takes an id; returns whether to continue.
Callback = Callable[[int], bool]
# Seconds to wait for an engine's step at the exit of the program.
_EXIT_TIMEOUT = 10.0
# Seconds after which an engine that waits for its consumer looks again whether it is stopped.
_STOP_CHECK = 0.2
_T = TypeVar("_T")

_handovers: weakref.WeakSet[_Handover] = weakref.WeakSet()


class EngineThread:
    """The thread that an engine runs in. Each model has one, because engines keep state per thread.

    It ends with `close()`, or when the last reference to it is dropped.

    Raises:
        GenerationError: The system refuses a thread.

    >>> def engine(callback):
    ...     return all(callback(new_id) for new_id in range(1000))
    >>> thread = EngineThread()
    >>> ids = thread.iterate(engine, Cancellation())
    >>> next(ids), next(ids)
    (0, 1)
    >>> ids.close()
    >>> thread.call(threading.active_count) > 1
    True
    >>> thread.close()
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=_work, args=(self._jobs,), name="bpe-tokenizer-inference", daemon=True
        )
        try:
            self._thread.start()
        except RuntimeError as error:
            message = "the system refuses the thread that the engine runs in; end other threads or processes"
            raise GenerationError(message) from error
        weakref.finalize(self, self._jobs.put, None).atexit = False

    def call(self, function: Callable[[], _T]) -> _T:
        """Call a function in the thread, and return its result.

        Raises:
            Exception: The function raised it.
        """
        called: Future[_T] = Future()

        def job() -> None:
            try:
                called.set_result(function())
            except BaseException as error:
                called.set_exception(error)

        self._jobs.put(job)
        return called.result()

    def post(self, function: Callable[[], object]) -> None:
        """Call a function in the thread, after what it does now, without waiting for it."""

        def job() -> None:
            function()

        self._jobs.put(job)

    def iterate(self, run: Callable[[Callback], object], cancellation: Cancellation) -> Iterator[int]:
        """Yield the ids that an engine calls back with.

        The engine is at most one id ahead. Closing the iterator or cancelling the generation asks it to end.
        The iterator ends after the engine.

        Args:
            run: Runs the engine to its end, and calls its argument with each id.
            cancellation: The generation's cancellation.

        Raises:
            Exception: `run` raised it.
        """
        handover = _Handover(cancellation)

        def job() -> None:
            handover.work(run)

        is_queued = False
        try:
            self._jobs.put(job)
            is_queued = True
            yield from handover.take_all()
        finally:
            handover.stop()
            if not is_queued:
                # An interrupt came before or after the job was queued. A stopped job only tells its end.
                self._jobs.put(job)
            handover.wait()

    def close(self) -> None:
        """End the thread, and wait for it."""
        self._jobs.put(None)
        self._thread.join()


def _work(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        # While the thread waits for the next job, this name would keep the objects of the last one alive.
        del job


class _Handover:
    """A channel of one slot: one thread puts an id into it, and another takes it."""

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
                run(self._put)
        except BaseException as error:
            self._error = error
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def take_all(self) -> Iterator[int]:
        """Yield the ids to the end."""
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
        self._is_stopped = True
        with self._changed:
            self._changed.notify_all()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the engine has ended, or for `timeout` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_ended, timeout)

    def abandon(self) -> None:
        """Mark the engine as ended: a forked process does not have its thread."""
        self._changed = threading.Condition()
        self._has_ended = True

    def _put(self, new_id: int) -> bool:
        """Put an id after the previous one was taken. Returns whether the engine continues."""
        with self._changed:
            # A second interrupt may keep `stop` from notifying.
            while not self._changed.wait_for(lambda: self._id is None or self._is_stopped, _STOP_CHECK):
                pass
            if not self._is_stopped:
                self._id = new_id
                self._changed.notify_all()
        return not self._is_stopped and not self._cancellation.is_cancelled


@atexit.register
def _stop_all() -> None:
    """Stop the engines before the interpreter shuts down, because they call back into it."""
    for handover in list(_handovers):
        handover.stop()
        handover.wait(_EXIT_TIMEOUT)


def _abandon_all() -> None:
    for handover in list(_handovers):
        handover.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_abandon_all)
