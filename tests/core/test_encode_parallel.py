"""Batches, long texts and files on several threads: the ids of one text at a time, in order and in bounds."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.arguments import thread_count
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, OptionError, SpecialTokenError

THREADS = (1, 2, 5, None)


@pytest.fixture(scope="session")
def long_text(stdlib_texts: list[str], mixed_text: str) -> str:
    """More than a megabyte, which is read in windows, with every kind of character and special tokens."""
    part = mixed_text.join(stdlib_texts) + "<|eos|>\n\n"
    return part * (1_100_000 // len(part) + 1)


def rows(ragged: tuple[Any, Any]) -> list[list[int]]:
    ids, offsets = ragged
    assert (ids.dtype, offsets.dtype) == (np.uint32, np.int64)
    assert offsets[0] == 0
    assert offsets[-1] == len(ids)
    return [ids[start:end].tolist() for start, end in pairwise(offsets)]


@pytest.mark.parametrize("threads", THREADS)
def test_threads_do_not_show(tokenizer: BPETokenizer, long_text: str, threads: int | None) -> None:
    for allowed in ("none", "all"):
        options: dict[str, Any] = {"add_special_tokens": True, "allowed_special": allowed}
        ids = tokenizer.encode(long_text, **options)
        options["threads"] = threads
        assert tokenizer.encode(long_text, **options) == ids
        assert tokenizer.encode_to_numpy(long_text, **options).tolist() == ids
        assert tokenizer.count_tokens(long_text, **options) == len(ids)
        assert tokenizer(long_text, **options) == ids
        assert rows(tokenizer.encode_ragged([long_text, "", "a"], **options))[0] == ids
        results = tokenizer.encode_batch(["a", long_text], **options)
        assert results[1].input_ids == ids
    data = long_text.encode() + b"\xff\xe2\x82" + long_text.encode("latin-1", "replace")
    assert tokenizer.encode_bytes(data, threads=threads) == tokenizer.encode_bytes(data)


def test_files_are_named_in_any_way(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    path = tmp_path / "ä b.txt"
    path.write_bytes("a\r\nb\n".encode("utf-8-sig"))
    expected = [tokenizer.encode("\ufeffa\r\nb\n")]
    for paths in (path, str(path), [path], (str(path),), iter([path])):
        assert rows(tokenizer.encode_files(paths)) == expected
    assert rows(tokenizer.encode_files([path, path])) == 2 * expected
    ends: dict[str, Any] = {"add_special_tokens": True, "allowed_special": "all"}
    assert rows(tokenizer.encode_files(path, **ends)) == [tokenizer.encode("\ufeffa\r\nb\n", **ends)]
    assert rows(tokenizer.encode_files([])) == []
    lines = [tokenizer.encode("\ufeffa\r"), tokenizer.encode("b")]
    assert rows(tokenizer.encode_files(path, separator="\n")) == lines
    for wrong in (3, None, b"x", [b"x"], [3]):
        with pytest.raises(ArgumentTypeError, match="encode_files expects paths"):
            tokenizer.encode_files(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="separator must be a str"):
        tokenizer.encode_files(path, separator=b"\n")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="the separator is empty"):
        tokenizer.encode_files(path, separator="")


def test_what_cannot_be_read_is_named(tokenizer: BPETokenizer, long_text: str, tmp_path: Path) -> None:
    good = tmp_path / "good.txt"
    good.write_bytes(long_text.encode())
    with pytest.raises(CorpusError, match=r"missing.txt: .*No such file"):
        tokenizer.encode_files([good, tmp_path / "missing.txt"])
    with pytest.raises(CorpusError, match=r"is a directory; give its files"):
        tokenizer.encode_files([tmp_path])
    for place in (0, 1_000_000, len(long_text.encode())):
        data = bytearray(long_text.encode())
        data[place : place + 1] = b"\xff"
        bad = tmp_path / "bad.txt"
        bad.write_bytes(data)
        with pytest.raises(UnicodeDecodeError) as error:
            data.decode()
        for separator in (None, "\n"):
            for threads in (1, 3):
                with pytest.raises(
                    CorpusError, match=f"bad.txt: byte {error.value.start} is not valid UTF-8"
                ):
                    tokenizer.encode_files([good, bad, good], separator, threads=threads)


def test_disallowed_tokens_in_files(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("é\nab<|pad|>")
    message = (
        r"text.txt holds the disallowed special token '<\|pad\|>' at byte 5\. .*allowed_special={'<\|pad"
    )
    with pytest.raises(SpecialTokenError, match=message):
        tokenizer.encode_files(path, "\n", disallowed_special="all")
    assert tokenizer.encode_files(path, disallowed_special={"<|bos|>"})[0].size > 5
    ids, _ = tokenizer.encode_files(path, allowed_special={"<|pad|>"}, disallowed_special="all")
    assert ids[-1] == tokenizer.pad_token_id
    assert tokenizer.encode_files(path, allowed_special="all", disallowed_special="all")[0][-1] == ids[-1]
    with pytest.raises(SpecialTokenError, match="nobody"):
        tokenizer.encode_files(path, disallowed_special={"nobody"})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes on this system")
def test_a_pipe_is_read(tokenizer: BPETokenizer, long_text: str, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(long_text.encode()))
    writer.start()
    ids, _ = tokenizer.encode_files(pipe)
    writer.join()
    assert ids.tolist() == tokenizer.encode(long_text)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_that_is_cut_off_meanwhile_is_noticed(
    tokenizer: BPETokenizer, long_text: str, tmp_path: Path, threads: int
) -> None:
    path, whole = tmp_path / "cut.txt", tmp_path / "whole.txt"
    path.touch()
    data = long_text.encode() * 3
    sizes = [0, 1, len(data) // 2, 100_000, len(data) - 1, len(data)]
    versions = [tokenizer.encode(data[:size].decode(errors="ignore")) for size in sizes]
    stop = threading.Event()

    def cut_off() -> None:
        ends = itertools.cycle(sizes)
        while not stop.wait(0.003):
            os.truncate(path, min(next(ends), path.stat().st_size))

    writer = threading.Thread(target=cut_off)
    writer.start()
    errors = 0
    try:
        for number in itertools.count():
            if number >= 60 and errors:
                break
            whole.write_bytes(data)
            whole.replace(path)  # so that its size is never that of a part
            with contextlib.suppress(CorpusError):
                ids = tokenizer.encode_files(path, threads=threads)[0].tolist()
                assert ids in versions  # never a mixture of two
                errors -= 1
            errors += 1
    finally:
        stop.set()
        writer.join()


def test_the_stack_of_a_thread_may_be_small() -> None:
    results: list[Any] = []

    def run() -> None:
        tokenizer = BPETokenizer().train("low lower", 258, special_tokens=["<a>"], verbose=False)
        results.append(tokenizer.decode(tokenizer.encode("low<a>" * 1000, allowed_special="all")))

    before = threading.stack_size(128 * 1024)  # that of musl
    thread = threading.Thread(target=run)
    thread.start()
    threading.stack_size(before)
    thread.join()
    assert results == ["low<a>" * 1000]


def default_threads(_: object = None) -> tuple[int, int]:
    """What threads=None and threads=3 mean here."""
    return thread_count(None), thread_count(3)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_worker_keeps_to_one_thread_unless_told(method: str) -> None:
    assert default_threads() == (0, 3)
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.map(default_threads, [None]) == [(1, 3)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_encodes_in_any_number_of_threads(tokenizer: BPETokenizer, long_text: str) -> None:
    expected = tokenizer.encode_to_numpy(long_text, threads=2)
    child = os.fork()
    if child == 0:
        try:
            same = all(
                np.array_equal(tokenizer.encode_ragged([long_text], threads=threads)[0], expected)
                for threads in THREADS
            )
            os._exit(0 if same and default_threads() == (1, 3) else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


# The first text of a normal form makes the form's table, while the thread that forks has the GIL.
FORKS_BESIDE_A_TABLE = """
import os, signal, threading, warnings
from bpe_tokenizer import BPETokenizer
warnings.simplefilter("ignore")
text = "e\u0301 日本 " * 2000
for form in ["NFC", "NFD", "NFKC", "NFKD"]:
    tokenizer = BPETokenizer("gpt2", form).train("low lower", 258, verbose=False)
    thread = threading.Thread(target=tokenizer.encode, args=(text,))
    thread.start()
    child = os.fork()
    if child == 0:
        signal.alarm(200)
        os._exit(not tokenizer.encode(text))
    assert os.waitpid(child, 0)[1] == 0, form
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_does_not_wait_for_a_table_that_a_thread_makes() -> None:
    for _ in range(2):
        subprocess.run([sys.executable, "-c", FORKS_BESIDE_A_TABLE], check=True)


PEAKS = """
import random
from bpe_tokenizer import BPETokenizer
random.seed(1)
letters = "etaoin shrdlu cmfwyp vbgkqj xz" + "ÄÖüß жизнь 日本語"
words = ["".join(random.choices(letters, k=random.randint(1, 9))) for _ in range(50_000)]
text = " ".join(random.choices(words, k=200_000))
tokenizer = BPETokenizer(normalization=None).train(text[:200_000], 2000, verbose=False)

def peak():
    with open("/proc/self/status") as status:
        return int(status.read().split("VmHWM:")[1].split()[0]) << 10

repeats = 60_000_000 // len(text.encode())
with open("text", "w", encoding="utf-8") as file:
    file.write(text * repeats)
for threads in (1, 2):
    for call, given in {
        "encode_files(given, None, threads=threads)": "text",
        "encode_files(given, ' ', threads=threads)": "text",
        "encode_to_numpy(given, threads=threads)": text * repeats,
        "encode_ragged(given, threads=threads)": [text[:400_000], text[400_000:]] * repeats,
    }.items():
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = peak()
        made = eval("tokenizer." + call)
        output = sum(array.nbytes for array in made) if isinstance(made, tuple) else made.nbytes
        print(peak() - before, output, threads, call)
        del made
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of CPU time")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("from_file", [True, False])
@pytest.mark.sampled(0.5)
def test_a_signal_ends_a_call(
    plain_tokenizer: BPETokenizer, tmp_path: Path, from_file: bool, threads: int
) -> None:
    """As Ctrl-C does, before the call ends. The times are CPU time of this process."""
    path, text = tmp_path / "text", " ".join(map(str, range(2_000_000)))
    path.write_bytes(text.encode())

    def call(timer: float = 0) -> float:
        begin = time.process_time()
        with contextlib.suppress(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_VIRTUAL, timer)
            if from_file:
                plain_tokenizer.encode_files(path, " ", threads=threads)
            else:
                plain_tokenizer.encode_to_numpy(text, threads=threads)
        return time.process_time() - begin

    whole = call()
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    try:
        assert call(whole / 10) < 0.7 * whole
    finally:
        signal.signal(signal.SIGVTALRM, before)


@pytest.mark.sampled(0.25, "long tests")
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak")
def test_memory_is_bounded(tmp_path: Path) -> None:
    """Beside what there was: output, 64 MB, and input: Python keeps UTF-8 of a `str`."""
    done = subprocess.run(
        [sys.executable, "-c", PEAKS], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        grown, output = map(int, line.split()[:2])
        assert output > 40_000_000
        assert grown < output + 60_000_000 + (64 << 20), line
