"""Memory of a run: it does not grow with the corpus, and a long document takes a few times its size."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer

RUN = """
import sys
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import tokenize_corpus
tokenizer, corpus, out, kind, seed = sys.argv[1:]
parts = {"part": 0, "of": 1, "unit_bytes": "8MB"} if kind == "parts" else {}
options = {"shuffle": int(seed) if seed else None, "threads": 2, **parts}
tokenize_corpus(corpus, out, BPETokenizer.load(tokenizer), **options)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) // 1024)
"""

# As many bytes a token as usual.
LINE = b" ".join(b"lowest%d" % (number % 97) for number in range(12_000))

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")


def peak(place: Path, megabytes: int, kind: str, seed: str = "") -> int:
    """Return the peak memory of a run in MB."""
    corpus = place / f"{megabytes}.txt"
    if not corpus.exists():
        line = LINE + b"\n"
        end = b"" if kind == "one" else b"\n"
        with corpus.open("wb") as file:
            for _ in range(megabytes * 1_000_000 // len(line)):
                file.write(line[:-1] + end if kind == "one" else line)
    paths = [str(place / "tokenizer"), str(corpus), str(place / f"out-{megabytes}-{kind}-{seed}")]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *paths, kind, seed],
        capture_output=True,
        check=True,
        text=True,
        env={**os.environ, "MALLOC_ARENA_MAX": "4"},
    )
    return int(done.stdout)


@pytest.mark.parametrize(("kind", "seed"), [("whole", ""), ("parts", ""), ("whole", "1")])
def test_memory_does_not_grow_with_the_corpus(
    kind: str, seed: str, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    tokenizer.save(tmp_path / "tokenizer")
    small, large = (peak(tmp_path, megabytes, kind, seed) for megabytes in (100, 300))
    # The allocator keeps some dozens of megabytes, and a shuffle holds a bucket.
    assert large < 1.1 * small + (100 if seed else 45)
    assert large < 350


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["whole", "parts"])
def test_memory_of_a_large_corpus(kind: str, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    tokenizer.save(tmp_path / "tokenizer")
    small, large = (peak(tmp_path, megabytes, kind) for megabytes in (100, 1000))
    shutil.rmtree(tmp_path)  # gigabytes
    assert large < 1.1 * small


def test_memory_of_one_document(tmp_path: Path) -> None:
    tokenizer = BPETokenizer("gpt2").train(LINE.decode(), 300, verbose=False)
    tokenizer.save(tmp_path / "tokenizer")
    assert peak(tmp_path, 96, "one") < 400
