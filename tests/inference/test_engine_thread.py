"""Engines that call back, as iterators."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

from bpe_tokenizer.inference import Cancellation, engine_thread
from bpe_tokenizer.inference.engine_thread import EngineThread


def test_an_engine_that_calls_back_keeps_in_step() -> None:
    made: list[int] = []

    def engine(callback: Any) -> None:
        for new_id in range(100):
            made.append(new_id)
            if not callback(new_id):
                break

    thread = EngineThread()
    ids = thread.iterate(engine, Cancellation())
    assert list(itertools.islice(ids, 5)) == [0, 1, 2, 3, 4]
    time.sleep(0.05)
    assert len(made) <= 7
    ids.close()  # type: ignore[attr-defined]
    assert len(made) <= 7
    assert list(thread.iterate(engine, Cancellation())) == list(range(100))
    thread.close()


def test_an_engine_that_fails_in_its_thread() -> None:
    def engine(callback: Any) -> None:
        callback(1)
        raise ZeroDivisionError

    thread = EngineThread()
    ids = thread.iterate(engine, Cancellation())
    assert next(ids) == 1
    with pytest.raises(ZeroDivisionError):
        next(ids)
    with pytest.raises(ZeroDivisionError):
        thread.call(lambda: 1 // 0)
    assert thread.call(lambda: 7) == 7
    thread.close()


def endless(callback: Callable[[int], bool]) -> bool:
    return all(map(callback, itertools.count()))


@pytest.mark.parametrize("is_queued", [False, True])
def test_an_interrupt_while_an_engine_is_started_ends_it(
    is_queued: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(SimpleQueue[Any]):
        """Its first call is interrupted."""

        left = 1

        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            self.left -= 1
            if self.left or is_queued:
                super().put(item)
            if not self.left:
                raise KeyboardInterrupt

    monkeypatch.setattr(engine_thread, "SimpleQueue", Interrupted)
    thread = EngineThread()
    with pytest.raises(KeyboardInterrupt):
        next(thread.iterate(endless, Cancellation()))
    thread.close()


def test_an_engine_ends_if_a_second_interrupt_keeps_it_from_being_notified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(threading.Condition):
        comes = False

        def notify_all(self) -> None:
            if Interrupted.comes:
                Interrupted.comes = False
                raise KeyboardInterrupt
            super().notify_all()

    def engine(callback: Callable[[int], bool]) -> None:
        while callback(len(made)):
            made.append(len(made))

    made: list[int] = []
    thread = EngineThread()
    monkeypatch.setattr(threading, "Condition", Interrupted)
    ids = thread.iterate(engine, Cancellation())
    assert next(ids) == 0
    while len(made) < 2:  # the engine notifies of its second id, and then waits
        time.sleep(0.001)
    time.sleep(0.05)
    Interrupted.comes = True
    with pytest.raises(KeyboardInterrupt):
        ids.close()  # type: ignore[attr-defined]
    thread.close()


def test_a_forgotten_thread_ends() -> None:
    before = {*threading.enumerate()}
    thread = EngineThread()
    (system_thread,) = {*threading.enumerate()} - before
    list(thread.iterate(lambda callback: callback(1), Cancellation()))
    del thread
    gc.collect()
    system_thread.join(60)
    assert not system_thread.is_alive()


def test_a_program_can_end_midway() -> None:
    code = (
        "from bpe_tokenizer.inference.engine_thread import EngineThread\n"
        "from bpe_tokenizer.inference import Cancellation\n"
        "def engine(callback):\n    while callback(1): pass\n    print('ended')\n"
        "ids = EngineThread().iterate(engine, Cancellation()); next(ids); print('leaving')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True
    )
    assert (run.stdout, run.stderr) == ("leaving\nended\n", "")
