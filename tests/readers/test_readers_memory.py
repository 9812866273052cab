"""The memory of reading does not grow with the corpus, and a long document is held about twice."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")

PROGRAM = """
import re, sys
from importlib import import_module
from bpe_tokenizer.readers import ReadOptions, find_inputs, read_batches
for name in ("numpy", "pyarrow.parquet", "backports.zstd"):
    try:
        import_module(name)
    except ImportError:
        pass
def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) >> 10
before = peak()
read = ReadOptions(documents="line")
size = sum(batch.data.nbytes for batch in read_batches(find_inputs(sys.argv[1]), read, threads=2))
print(size, peak() - before)
"""


def read(path: Path) -> tuple[int, int]:
    """Return the bytes of the documents, and by how many megabytes reading them raised the peak of memory."""
    found = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, check=True)
    size, grown = map(int, found.stdout.split())
    return size, grown


@pytest.mark.sampled(0.25, "long tests")
def test_reading_compressed_lines_takes_the_same_memory_for_any_number(tmp_path: Path) -> None:
    line = b'{"id": 1, "text": "%s"}\n' % (b"low lower lowest " * 60)
    grown = []
    for lines in (20_000, 100_000):
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(line * lines, 1))
        size, more = read(tmp_path / "a.jsonl.gz")
        assert size == lines * 17 * 60
        grown.append(more)
    assert grown[0] < 80
    assert grown[1] < grown[0] + 30


def test_a_long_line_is_held_about_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "' + b"low\\n" * (10 << 20) + b'"}\n')
    size, grown = read(path)
    assert size == 40 << 20
    assert grown < 140
    text = tmp_path / "a.txt"
    text.write_bytes(b"low " * (10 << 20) + b"\n")
    assert read(text)[1] < 140


@pytest.mark.sampled(0.25, "long tests")
def test_reading_tables_takes_the_same_memory_for_any_number_of_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = import_module("pyarrow.parquet")
    grown = []
    for rows in (64, 640):
        texts = [os.urandom(128 << 10).hex() for _ in range(rows)]
        parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet", row_group_size=16)
        size, more = read(tmp_path / "a.parquet")
        assert size == rows * (256 << 10)
        grown.append(more)
    assert grown[0] < 120
    assert grown[1] < grown[0] + 40
