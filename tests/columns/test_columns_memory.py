"""A column needs memory for its result, and of its texts as docs/columns.md says; Ctrl-C ends a long call."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
linux = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")

PROGRAM = """
import json, sys
from pathlib import Path
import pyarrow as pa
from bpe_tokenizer import BPETokenizer, PieceCounts

kind, megabytes, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sentence = "international communication requires understanding everywhere "
tokenizer = BPETokenizer().train([sentence * 9], 350, verbose=False)
words = sentence * 40
row = words.encode()
rows = megabytes * 1_000_000 // len(row)
# Made without a Python object a row, in memory that is not freed.
texts = pa.repeat(words, rows).cast(kind if kind in ("string_view", "binary") else "string")
if kind == "nulls":
    texts = pa.array([words if number % 10 else None for number in range(rows)])
elif kind == "dictionary":  # each text once
    numbers = pa.array(range(rows)).cast("string")
    texts = pa.DictionaryArray.from_arrays(
        pa.array(range(rows), pa.int32()),
        pa.compute.binary_join_element_wise(numbers, pa.repeat(words, rows), ""),
    )
ids = tokenizer.encode_arrow(texts[:3])
tokenizer.decode_arrow(ids)
counted = texts.drop_null() if texts.null_count else texts
PieceCounts().add_column(counted[:3])


def peak(call):
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    result = call()
    return result, status("VmHWM") - before


def status(name):
    return int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0]) << 10


ids, encoding = peak(lambda: tokenizer.encode_arrow(texts, threads=threads))
_, counting = peak(lambda: PieceCounts(threads=threads).add_column(counted))
size = texts.nbytes
del texts, counted
decoded, decoding = peak(lambda: tokenizer.decode_arrow(ids, threads=threads))
print(json.dumps([size, ids.nbytes, encoding, counting, decoded.nbytes, decoding]))
"""


@pytest.mark.sampled(0.2)
@linux
@pytest.mark.parametrize(
    ("kind", "threads"),
    [("string", 1), ("string", 2), ("string_view", 2), ("binary", 2), ("nulls", 2), ("dictionary", 2)],
)
def test_memory_grows_by_the_result(kind: str, threads: int) -> None:
    grown = []
    for megabytes in (20, 60):
        command = [sys.executable, "-c", PROGRAM, kind, str(megabytes), str(threads)]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        grown.append(json.loads(done.stdout))
    texts, ids, encoding, counting, decoded, decoding = (
        large - small for small, large in zip(*grown, strict=True)
    )
    assert ids < 0.6 * texts
    # Views are copied; the texts of a dictionary, which occur once here, are encoded before their rows.
    more = {"string_view": texts, "dictionary": ids}.get(kind, 0)
    assert encoding < 1.2 * ids + more + 4e6
    assert counting < 16e6
    # Up to 64 parts of some hundred kilobytes wait for an earlier one, if the processors are busy.
    assert decoding < 1.2 * decoded + 24e6


INTERRUPTED = """
import faulthandler
import numpy as np
import pyarrow as pa
from bpe_tokenizer import BPETokenizer, PieceCounts, _core
faulthandler.dump_traceback_later(100, exit=True)
tokenizer = BPETokenizer("gpt2").train("low lower", 258, verbose=False)
words, word = "low lower 日本 e\\u0301\\n" * 20, "low" * 1_000_000
texts = pa.repeat(words, 20_000)
views, long = texts.cast("string_view"), pa.array([word] * 2)
named = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000_000), pa.array([words]))
ids = tokenizer.encode_arrow(texts)
encoder = _core.Encoder(tokenizer.model.core)
data = np.frombuffer((words * 20_000).encode(), np.uint8)
offsets = np.arange(0, len(data) + 1, len(words.encode()))


def interrupted(call):
    try:
        print("begun", flush=True)
        while True:
            call()
    except KeyboardInterrupt:
        print("interrupted", flush=True)


for call in (
    lambda: tokenizer.encode_arrow(texts),
    lambda: tokenizer.encode_arrow(views, threads=1),
    lambda: tokenizer.encode_arrow(named),
    lambda: tokenizer.encode_arrow(long),
    lambda: tokenizer.encode_arrow(pa.chunked_array([texts, texts])),
    lambda: tokenizer.decode_arrow(ids),
    lambda: tokenizer.decode_arrow(ids, threads=1),
    lambda: encoder.encode_rows(data, offsets),
    lambda: PieceCounts("gpt2").add_column(views),
):
    interrupted(call)
assert tokenizer.encode_arrow(texts[:2]).to_pylist() == [tokenizer.encode(words)] * 2
assert tokenizer.decode_arrow(ids)[:2].to_pylist() == [tokenizer.decode(tokenizer.encode(words))] * 2
print("right")
"""


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process, which does not depend on what else the machine does."""
    if sys.platform != "linux":
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform == "win32", reason="it sends SIGINT")
@pytest.mark.usefixtures("ctrl_c")
def test_calls_can_be_interrupted() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    generator = random.Random(0)
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(9):
            assert process.stdout.readline() == "begun\n"
            time.sleep(generator.uniform(0, 0.3))
            process.send_signal(signal.SIGINT)
            before = processor_seconds(process.pid)
            assert process.stdout.readline() == "interrupted\n"
            assert processor_seconds(process.pid) - before < 5
        assert process.stdout.read() == "right\n"
    assert process.returncode == 0
