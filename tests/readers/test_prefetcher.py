"""Reading in threads: order, errors, bounds, and the end of the threads."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from types import FrameType

import pytest

from bpe_tokenizer import CorpusError, OptionError
from bpe_tokenizer.readers import ReadOptions, find_inputs, read_batches
from bpe_tokenizer.readers.prefetcher import Prefetcher
from token_files import as_jsonl


def readers() -> int:
    """Return the number of threads that read."""
    count = 0
    for frame in sys._current_frames().values():
        outermost: FrameType | None = frame
        while outermost is not None and outermost.f_code is not Prefetcher._run.__code__:
            outermost = outermost.f_back
        count += outermost is not None
    return count


def no_readers() -> bool:
    """Return whether no thread reads; one that has reported its end may take a moment more."""
    deadline = time.monotonic() + 60
    while readers() and time.monotonic() < deadline:
        time.sleep(0.001)
    return not readers()


def test_at_most_so_many_bytes_wait() -> None:
    made = 0

    def items() -> Generator[int, None, None]:
        nonlocal made
        for size in (4, 4, 4, 100, 4):
            made += 1
            yield size

    with Prefetcher(items(), lambda size: size, 8) as prefetcher:
        while made < 3:
            time.sleep(0.001)
        time.sleep(0.1)
        assert made == 3  # two wait, and the third is in the hand of the thread
        assert next(prefetcher) == 4
        while made < 4:
            time.sleep(0.001)
        time.sleep(0.1)
        assert made == 4
        assert list(prefetcher) == [4, 4, 100, 4]


def refuse(*_: object) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("start", [refuse, lambda *_: 1], ids=["refused", "the thread never runs"])
def test_without_threads_the_consumer_does_the_work(
    start: Callable[..., object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_thread, "start_new_thread", start)
    paths = [tmp_path / f"{number}.jsonl" for number in range(3)]
    for path in paths:
        path.write_bytes(as_jsonl([path.name] * 3))
    batches = read_batches(find_inputs(paths), ReadOptions(documents="line"))
    assert [text for batch in batches for text in batch.texts()] == [p.name for p in paths for _ in range(3)]
    assert no_readers()


def files(tmp_path: Path, count: int = 20, more: str = "") -> list[Path]:
    paths = [tmp_path / f"{number:03d}.jsonl" for number in range(count)]
    for path in paths:
        path.write_bytes(as_jsonl([f"{path.name} {row}{more}" for row in range(2000)]))
    return paths


def test_several_files_are_read_ahead_and_stay_in_order(tmp_path: Path) -> None:
    paths = files(tmp_path)
    expected = [f"{path.name} {row}" for path in paths for row in range(2000)]
    for threads in (1, 2, 7):
        batches = list(read_batches(find_inputs(paths), ReadOptions(documents="line"), threads=threads))
        assert [text for batch in batches for text in batch.texts()] == expected
        assert [batch.input for batch in batches] == sorted(batch.input for batch in batches)
        sizes = [batch.bytes_read for batch in batches]
        assert sizes == sorted(sizes)
        assert sizes[-1] == sum(path.stat().st_size for path in paths)
    assert no_readers()


def test_an_error_comes_after_all_documents_before_it(tmp_path: Path) -> None:
    paths = files(tmp_path)
    paths[7].write_bytes(b'{"text": "a"}\n{}\n')
    paths[9].write_bytes(b"%PDF-1.7\n\x01")
    batches = read_batches(find_inputs(paths), ReadOptions(documents="line"), threads=8)
    found = [text for _ in range(8) for text in next(batches).texts()]
    assert found == [f"{path.name} {row}" for path in paths[:7] for row in range(2000)] + ["a"]
    with pytest.raises(CorpusError, match=r"007\.jsonl, row 2 has no field"):
        next(batches)
    assert no_readers()


def test_closing_in_the_middle_ends_all_threads(tmp_path: Path) -> None:
    paths = files(tmp_path, more="." * 700)  # more than is read ahead
    for _ in range(5):
        batches = read_batches(find_inputs(paths), ReadOptions(documents="line"), threads=8)
        next(batches)
        while not readers():  # they may not have begun
            time.sleep(0.001)
        batches.close()
        assert no_readers()
    batches = read_batches(find_inputs(paths), ReadOptions(documents="line"), threads=8)
    next(batches)
    del batches
    gc.collect()
    assert no_readers()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_threads_that_it_lacks(tmp_path: Path) -> None:
    batches = read_batches(find_inputs(files(tmp_path)), ReadOptions(documents="line"), threads=4)
    next(batches)
    child = os.fork()
    if child == 0:
        try:
            for _ in range(20):
                next(batches)
        except OptionError:
            batches.close()
            os._exit(0)
        os._exit(1)
    deadline = time.monotonic() + 60
    while (status := os.waitpid(child, os.WNOHANG))[0] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert status[1] == 0
    assert sum(len(batch.rows) for batch in batches) == 19 * 2000


PROGRAM = """
import sys, time
from bpe_tokenizer.readers import *
batches = read_batches(find_inputs(sys.argv[1:]), ReadOptions(documents="line"), threads=8)
next(batches)
print("reading", flush=True)
if len(sys.argv) > 30:
    # A signal that arrives just before a sleep ends it only afterwards.
    for _ in range(600):
        time.sleep(0.1)
"""


def test_a_program_ends_while_threads_read(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, *map(str, files(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "reading\n", "")


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_a_program_that_reads(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, *map(str, files(tmp_path, 40))]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()
    assert error.rstrip().endswith("KeyboardInterrupt")
