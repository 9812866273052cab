"""Parts that are killed, run twice at once, or are stopped by Ctrl-C."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import small_batches
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests
from bpe_tokenizer.errors import WriteError
from line_documents import tokenize_corpus
from token_files import contents, visible

SUPPORT = str(Path(small_batches.__file__).parent)
# A part, or all of the work; in small batches and shards. It can stop itself after a shard, as SIGSTOP does.
RUN = """
import os, signal, sys
support, tokenizer, corpus, out, part, of, name, seed, stop_at = sys.argv[1:]
sys.path.insert(0, support)
from bpe_tokenizer import BPETokenizer
from line_documents import tokenize_corpus
from small_batches import patch_batches
patch_batches(7)
parts = {"part": int(part), "of": int(of), "unit_bytes": 5000} if int(of) else {}
shuffle = int(seed) if seed else None
index = {"index": True, "id_field": "id"}
shards = 0
def stop(event):
    global shards
    if event["event"] == "shard":
        shards += 1
        if shards == int(stop_at):
            os.kill(os.getpid(), signal.SIGSTOP)
options = {"shard_tokens": 900, "shuffle": shuffle, **index, "threads": 4, **parts}
tokenize_corpus(corpus + "/*", out, BPETokenizer.load(tokenizer), name, **options, on_event=stop)
"""
INDEX: dict[str, Any] = {"index": True, "id_field": "id"}
NAMES = ("nanogpt", "llm.c", "megatron", "npy", "parquet")

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing kills like SIGKILL here")


@pytest.fixture
def place(tmp_path: Path, tokenizer: BPETokenizer) -> Path:
    """A directory with a saved tokenizer, and a corpus of files that are divided and one that is not."""
    tokenizer.save(tmp_path / "tokenizer")
    chance = random.Random(5)
    texts = ["".join(chance.choices("abcde fgh\n", k=chance.randrange(200))) for _ in range(600)]
    (tmp_path / "corpus").mkdir()
    rows = [{"id": n if n % 2 else f"d{n}", "text": text} for n, text in enumerate(texts)]
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    (tmp_path / "corpus" / "a.jsonl").write_bytes(b"".join(lines[:300]))
    (tmp_path / "corpus" / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[300:])))
    return tmp_path


def start(
    place: Path,
    out: str,
    part: int = 0,
    of: int = 0,
    name: str = "megatron",
    seed: str = "",
    stop_at: int = 0,
) -> subprocess.Popen[bytes]:
    paths = [str(place / each) for each in ("tokenizer", "corpus", out)]
    arguments = [SUPPORT, *paths, str(part), str(of), name, seed, str(stop_at)]
    return subprocess.Popen([sys.executable, "-c", RUN, *arguments], stderr=subprocess.PIPE)


def wait_for_files(process: subprocess.Popen[bytes], directory: Path, more: int) -> None:
    """Wait until there are some shards more than there were, or the process ends."""
    wanted = len(list(directory.glob("tokens-*"))) + more
    while process.poll() is None and len(list(directory.glob("tokens-*"))) < wanted:
        time.sleep(0.001)


def whole(place: Path, name: Any, tokenizer: BPETokenizer, of: int, seed: str = "") -> dict[str, bytes]:
    """The files of a run that nothing happens to."""
    out, corpus = place / f"whole{of}", str(place / "corpus" / "*")
    options: dict[str, Any] = {"shard_tokens": 900, "shuffle": int(seed) if seed else None, **INDEX}
    for part in range(of):
        tokenize_corpus(corpus, out, tokenizer, name, part=part, of=of, unit_bytes=5000, **options)
    if of:
        merge_manifests(out)
    else:
        tokenize_corpus(corpus, out, tokenizer, name, **options)
    return contents(out)


@pytest.mark.parametrize(
    ("name", "of", "seed", "kills"),
    [
        *(
            pytest.param(*case, marks=pytest.mark.sampled(0.33))
            for case in (("megatron", 2, "", 5), ("nanogpt", 0, "", 3), ("npy", 0, "1", 2))
        ),
        *(
            pytest.param(name, of, seed, 40, marks=[pytest.mark.slow, pytest.mark.sampled(0.1)])
            for name in NAMES
            for of in (0, 3)
            for seed in ("", "1")
        ),
    ],
)
def test_kills_change_nothing(
    name: Any, of: int, seed: str, kills: int, place: Path, tokenizer: BPETokenizer
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    expected = whole(place, name, tokenizer, of, seed)
    out = place / "out"
    chance = random.Random(f"{name} {of} {seed}")
    killed = 0
    while not killed:  # a busy machine may kill too late each time: begin again
        shutil.rmtree(out, ignore_errors=True)
        for _ in range(kills):
            with start(place, "out", chance.randrange(max(of, 1)), of, name, seed) as process:
                wait_for_files(process, out, chance.randrange(6))
                time.sleep(chance.uniform(0, 0.03))
                process.kill()
                killed += process.wait() == -signal.SIGKILL
    for part in random.Random(name).sample(range(max(of, 1)), max(of, 1)):
        with start(place, "out", part, of, name, seed) as process:
            assert process.wait() == 0
    if of:
        merge_manifests(out, verify=True)
    assert contents(out) == expected


@pytest.mark.sampled(0.33)
@pytest.mark.parametrize("numbers", [[1, 1], [2, 2], [1, 2]], ids=str)
def test_several_attempts_of_the_parts_at_once(
    numbers: list[int], place: Path, tokenizer: BPETokenizer
) -> None:
    expected = whole(place, "megatron", tokenizer, 1)
    running = [start(place, "out", part, of) for of in numbers for part in range(of)]
    for process in running:
        _, error = process.communicate()
        assert (process.returncode, error) == (0, b"")
    merge_manifests(place / "out", verify=True)
    assert contents(place / "out") == expected


@pytest.mark.sampled(0.25, "long tests")
def test_a_stopped_attempt_ends_after_the_other(place: Path, tokenizer: BPETokenizer) -> None:
    expected = whole(place, "megatron", tokenizer, 1)
    out = place / "out"
    with start(place, "out", 0, 1, stop_at=3) as first:
        os.waitpid(first.pid, os.WUNTRACED)
        with start(place, "out", 0, 1) as second:
            assert second.wait() == 0
        merge_manifests(out, verify=True)
        assert visible(out) == expected
        first.send_signal(signal.SIGCONT)
        assert first.wait() == 0
    merge_manifests(out, verify=True)
    assert contents(out) == expected


def test_a_stopped_run_keeps_its_directory(place: Path, tokenizer: BPETokenizer) -> None:
    expected = whole(place, "nanogpt", tokenizer, 0)
    out, corpus = place / "out", str(place / "corpus" / "*")
    with start(place, "out", name="nanogpt", stop_at=3) as first:
        os.waitpid(first.pid, os.WUNTRACED)
        left = contents(out)
        assert "tokens-00001.bin" in left
        for overwrite in (False, True):
            with pytest.raises(WriteError, match=f"out is in use by process {first.pid} on"):
                tokenize_corpus(corpus, out, tokenizer, shard_tokens=900, overwrite=overwrite)
        assert contents(out) == left
        first.kill()
        first.wait()
    assert tokenize_corpus(corpus, out, tokenizer, shard_tokens=900, **INDEX).kept >= 1
    assert contents(out) == expected


@pytest.mark.sampled(0.25, "long tests")
def test_two_whole_runs_at_once(place: Path, tokenizer: BPETokenizer) -> None:
    expected = whole(place, "nanogpt", tokenizer, 0)
    running = [start(place, "out", name="nanogpt") for _ in range(2)]
    ends = [(process.communicate()[1], process.returncode) for process in running]
    assert 0 in [code for _, code in ends]
    assert all(code == 0 or b"is in use by process" in error for error, code in ends)
    assert contents(place / "out") == expected


@pytest.mark.sampled(0.5)
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("of", [0, 1])
def test_ctrl_c_leaves_nothing_unfinished(of: int, place: Path, tokenizer: BPETokenizer) -> None:
    expected = whole(place, "nanogpt", tokenizer, of)
    out = place / "out"
    with start(place, "out", 0, of, "nanogpt") as process:
        wait_for_files(process, out, 4)
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert not list(out.glob(".*"))
    with start(place, "out", 0, of, "nanogpt") as process:
        assert process.wait() == 0
    if of:
        merge_manifests(out)
    assert contents(out) == expected
