"""Engines that call back, as iterators."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import time
from typing import Any

import pytest

from bpe_tokenizer.inference import (
    Cancellation,
)
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


def test_a_forgotten_thread_ends() -> None:
    thread = EngineThread()
    system_thread = thread._thread
    list(thread.iterate(lambda callback: callback(1), Cancellation()))
    del thread
    gc.collect()
    system_thread.join(5)
    assert not system_thread.is_alive()


def test_a_program_can_end_midway() -> None:
    code = (
        "from bpe_tokenizer.inference.engine_thread import EngineThread\n"
        "from bpe_tokenizer.inference import Cancellation\n"
        "def engine(callback):\n    while callback(1): pass\n    print('ended')\n"
        "ids = EngineThread().iterate(engine, Cancellation()); next(ids); print('leaving')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert (run.stdout, run.stderr) == ("leaving\nended\n", "")
