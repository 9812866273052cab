"""A long call leaves the GIL to the other threads."""

from __future__ import annotations

import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer

# How long a thread keeps the GIL that another one waits for.
_INTERVAL = 0.1
# The texts are about so many jobs of 64 kB, and each job polls. New pieces take so long that the other
# thread wakes up.
_JOBS = 50
_PIECES = np.random.default_rng(1).integers(
    ord("a"), ord("z"), (_JOBS, 64_000), endpoint=True, dtype=np.uint8
)
_TEXTS = [" ".join(textwrap.wrap(bytes(row).decode(), 40)) for row in _PIECES]

_CALLS: dict[str, Callable[[BPETokenizer], object]] = {
    "ragged": lambda tokenizer: tokenizer.encode_ragged(_TEXTS, threads=1),
    "batch": lambda tokenizer: tokenizer.encode_batch(_TEXTS, threads=1),
}


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer().train("low lower lowest", 260, verbose=False)


@contextmanager
def rival() -> Iterator[None]:
    """Run a thread that always wants the GIL."""
    ended = threading.Event()

    def spin() -> None:
        while not ended.is_set():
            pass

    before = sys.getswitchinterval()
    thread = threading.Thread(target=spin)
    thread.start()
    try:
        sys.setswitchinterval(_INTERVAL)
        yield
    finally:
        sys.setswitchinterval(before)
        ended.set()
        thread.join()


@pytest.mark.parametrize("call", _CALLS)
def test_a_long_call_rarely_waits_for_the_gil(call: str, tokenizer: BPETokenizer) -> None:
    tokenizer.clear_cache()
    with rival():
        begin = time.perf_counter()
        _CALLS[call](tokenizer)
        waits = (time.perf_counter() - begin) / _INTERVAL
    assert waits < _JOBS / 2
