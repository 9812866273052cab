"""Runs an exercise for a limited time in this process: for notebooks, whose names no other process has."""

from __future__ import annotations

import contextlib
import ctypes
import io
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from bpe_tokenizer.learn.exercise import Exercise
from bpe_tokenizer.learn.runner import Result, run_exercise, still_running

__all__ = ["SECONDS", "run_limited"]

# The time of one exercise.
SECONDS = 5.0

# Windows does not interrupt a long wait for Ctrl-C.
_WAIT = 0.1


class _TimeIsUp(BaseException):
    """Raised in the reader's code; `except Exception` does not catch it."""


def run_limited(exercise: Exercise, names: Mapping[str, Any], seconds: float = SECONDS) -> Result:
    """Run the check of an exercise in a thread, and stop it when its time is up.

    A signal would interrupt only the main thread, and Windows has no alarm. C code that never returns, such
    as a regular expression, cannot be stopped in this process: the kernel must be restarted.

    Args:
        exercise: The exercise.
        names: The reader's names.
        seconds: The time limit.

    Example:
        >>> def endless() -> None:
        ...     while True:
        ...         pass
        >>> exercise = Exercise("answer", lambda answer: endless(), "Count to 3.")
        >>> run_limited(exercise, {"answer": 3}, seconds=0.1).message
        'the code still runs after 0.1 seconds; does a loop never end?'
    """
    results: list[Result] = []

    def run() -> None:
        with contextlib.suppress(_TimeIsUp):
            results.append(run_exercise(exercise, names))

    thread = threading.Thread(target=run, daemon=True)
    noise = io.StringIO()
    with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
        try:
            thread.start()
        except RuntimeError:  # no threads here, as in a browser: no limit
            return run_exercise(exercise, names)
        end = time.monotonic() + seconds
        try:
            while thread.is_alive() and time.monotonic() < end:
                thread.join(_WAIT)
            number = _reader_line(thread, names)
        finally:
            _stop(thread)
    if results:
        return results[0]
    return Result(exercise.name, "wrong", still_running(seconds, number), exercise.hint)


def _reader_line(thread: threading.Thread, names: Mapping[str, Any]) -> int | None:
    """Return the line of the reader's code that a thread runs."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_globals is not names:
        frame = frame.f_back
    return None if frame is None else frame.f_lineno


def _stop(thread: threading.Thread) -> None:
    """Raise an exception in a thread that still runs."""
    if thread.is_alive() and thread.ident is not None:
        identifier = ctypes.c_ulong(thread.ident)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identifier, ctypes.py_object(_TimeIsUp))
        thread.join(_WAIT)
