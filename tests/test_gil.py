"""A long call leaves the GIL to the other threads."""

from __future__ import annotations

import _thread
import signal
import textwrap
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer

# The core looks for signals at most so often, in seconds.
_INTERVAL = 0.1
# The texts make about this number of jobs of 64 kB, and each job polls.
_JOBS = 50
_CALLS: dict[str, Callable[[BPETokenizer, list[str]], object]] = {
    "ragged": lambda tokenizer, texts: tokenizer.encode_ragged(texts, threads=1),
    "batch": lambda tokenizer, texts: tokenizer.encode_batch(texts, threads=1),
}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    letters = np.random.default_rng(1).integers(
        ord("a"), ord("z"), (_JOBS, 64_000), endpoint=True, dtype=np.uint8
    )
    return [" ".join(textwrap.wrap(bytes(row).decode(), 40)) for row in letters]


@pytest.mark.parametrize("call", _CALLS)
def test_a_long_call_rarely_takes_the_gil(call: str, texts: list[str]) -> None:
    """Another thread signals all the time, so each look for signals, which takes the GIL, is counted."""
    tokenizer = BPETokenizer().train("low lower lowest", 260, verbose=False)
    looks: list[int] = []
    begun, ended = threading.Event(), threading.Event()

    def rival() -> None:
        while not ended.is_set():
            _thread.interrupt_main(signal.SIGINT)
            begun.set()

    before = signal.signal(signal.SIGINT, lambda number, _: looks.append(number))
    thread = threading.Thread(target=rival)
    thread.start()
    try:
        begun.wait()
        looks.clear()
        begin = time.monotonic()
        _CALLS[call](tokenizer, texts)
        took, looked = time.monotonic() - begin, len(looks)
    finally:
        ended.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    # One look for each job would be 50. Where the machine is so slow that this is allowed, nothing is shown.
    assert looked <= took / _INTERVAL + 5
