"""Memory of a run: it does not grow with the corpus, and a long document takes a few times its size."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer

# The corpus is a file that is read several times.
RUN = """
import sys
from bpe_tokenizer import BPETokenizer
from functools import partial
from bpe_tokenizer import corpus as corpora
tokenize_corpus = partial(corpora.tokenize_corpus, documents="line", append_eos=False)
place, times, kind, seed = sys.argv[1:]
parts = {"part": 0, "of": 1, "unit_bytes": "8MB"} if kind == "parts" else {}
options = {"shuffle": int(seed) if seed else None, "threads": 2, **parts}
tokenizer = BPETokenizer.load(place + "/tokenizer")
tokenize_corpus([place + "/c.txt"] * int(times), place + "/out", tokenizer, **options)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) // 1024)
"""
# As many bytes a token as usual.
LINE = b" ".join(b"lowest%d" % (number % 97) for number in range(12_000))

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a tokenizer."""
    BPETokenizer("gpt2").train(LINE.decode(), 300, verbose=False).save(tmp_path / "tokenizer")
    return tmp_path


def peak(place: Path, megabytes: int, kind: str, seed: str = "") -> int:
    """Return the peak memory of a run in MB. It leaves no large files: pytest keeps three runs."""
    corpus, out = place / "c.txt", place / "out"
    end = b"" if kind == "one" else b"\n"
    size = megabytes if kind == "one" else 50
    with corpus.open("wb") as file:
        for _ in range(size * 1_000_000 // len(LINE)):
            file.write(LINE + end)
    try:
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(place), str(megabytes // size), kind, seed],
            capture_output=True,
            check=True,
            text=True,
            env={**os.environ, "MALLOC_ARENA_MAX": "4"},
        )
    finally:
        corpus.unlink()
        shutil.rmtree(out, ignore_errors=True)
    return int(done.stdout)


@pytest.mark.sampled(0.33)
@pytest.mark.parametrize(("kind", "seed"), [("whole", ""), ("parts", ""), ("whole", "1")])
def test_memory_does_not_grow_with_the_corpus(kind: str, seed: str, place: Path) -> None:
    small, large = (peak(place, megabytes, kind, seed) for megabytes in (100, 300))
    # The allocator keeps some dozens of megabytes, and a shuffle holds a bucket.
    assert large < 1.1 * small + (100 if seed else 45)
    assert large < 350


@pytest.mark.slow
@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("kind", ["whole", "parts"])
def test_memory_of_a_large_corpus(kind: str, place: Path) -> None:
    small, large = (peak(place, megabytes, kind) for megabytes in (400, 4000))
    # Under load the run holds some blocks more; a copy of one byte in forty would be more than this.
    assert large < 1.1 * small + 80, (small, large)


def test_memory_of_one_document(place: Path) -> None:
    assert peak(place, 96, "one") < 400


# Blocks of two megabytes that are freed, each between smaller ones that are not.
BLOCKS = """
from bpe_tokenizer import _core
def resident():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmRSS"].split()[0]) // 1024
_core.give_back_large_blocks()
large = bytes(30 << 20)
del large
before = resident()
blocks = [(bytearray(b"x") * 2_000_000, bytearray(2_000)) for _ in range(100)]
kept = [small for _, small in blocks]
assert resident() > before + 150
del blocks
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator of glibc")
def test_freed_blocks_go_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", BLOCKS], capture_output=True, check=True, text=True)
    assert int(done.stdout) < 20
