"""A process whose memory is limited: a call returns its result, or raises `MemoryError` and changes nothing.

A program builds a tokenizer, limits its address space to a little more than it uses, and makes one call on a
large input. With the largest margins, some calls have enough.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from sampling import sample

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it sets RLIMIT_AS")

MARGINS = (16, 24, 40, 80, 160)  # MB; with less, the process may end
PROGRAM = """
import pickle, resource, sys, warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import bpe_tokenizer
from bpe_tokenizer import BPETokenizer, StreamDecoder

warnings.simplefilter("ignore")  # a file of separators is read as a document
name, form, margin, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
SIZE = 12_000_000
UNITS = {
    "words": "The quick brown fox jumps over the lazy dog; it was naïve. ",
    "ascii": "The quick brown fox jumps over the lazy dog. ",
    "letters": "a",
    "spaces": " ",
    "characters": "日本語",
    "marks": "e\\u0301\\u0323",
    "tokens": "<|endoftext|>",
}
small = (UNITS["words"] + UNITS["tokens"] + UNITS["characters"] + UNITS["marks"]) * 40
text = UNITS[form] * (SIZE // len(UNITS[form].encode()))
tokenizer = BPETokenizer(normalization="NFC" if form == "marks" else None).train(
    [small], 400, min_frequency=1, special_tokens=["<|endoftext|>"], verbose=False
)
ids = tokenizer.encode(small, allowed_special="all")
many = ids * (SIZE // len(small.encode()))
array = np.array(many, dtype=np.uint32)
rows = np.broadcast_to(np.array(ids, dtype=np.uint32), (200_000, len(ids)))
documents = [text[at : at + 5000] for at in range(0, len(text), 5000)]
decoder = StreamDecoder(tokenizer)
numbers = range(150_000 if name in ("train_from_counts", "add", "merge", "items", "save") else 2000)
distinct = [" " + "".join(chr(ord("a") + int(digit)) for digit in str(number)) for number in numbers]
counts, others = (bpe_tokenizer.count(part) for part in (distinct[:1000], distinct[500:]))
before = dict(counts.items())
merges = [(bytes([left]), bytes([right])) for left in range(256) for right in range(256)]
if name not in ("vocab", "save_tokenizer", "export"):
    merges.clear()
vocab = dict(enumerate([*(bytes([byte]) for byte in range(256)), *map(b"".join, merges)]))
large = BPETokenizer.from_vocab(vocab, merges)
directory = TemporaryDirectory()
path = Path(directory.name, "text.txt")
path.write_text(text)
saved = Path(directory.name, "saved")


def check():
    assert tokenizer.encode(small, allowed_special="all") == ids
    assert tokenizer.encode_ragged([small], allowed_special="all")[0].tolist() == ids
    assert sum(tokenizer.encode_streaming([small], allowed_special="all"), []) == ids
    assert tokenizer.encode_files([path.with_name("small")], allowed_special="all")[0].tolist() == ids
    offsets = tokenizer.encode_with_offsets(small, allowed_special="all")
    assert len(tokenizer.encode_batch([small])) == 1
    assert tokenizer.count_tokens(small, allowed_special="all") == len(ids)
    assert tokenizer.decode_batch([ids, ids]) == [tokenizer.decode(ids)] * 2
    tokenizer.truncate(small, 10), tokenizer.tokenize(small), tokenizer.split_by_tokens(small, 20)
    assert decoder.step(ids) + decoder.flush() == tokenizer.decode(ids)
    return offsets


path.with_name("small").write_text(small)
expected = check()
CALLS = {
    "encode": lambda: tokenizer.encode(text, allowed_special="all", threads=threads),
    "encode_to_numpy": lambda: tokenizer.encode_to_numpy(text, threads=threads),
    "encode_bytes": lambda: tokenizer.encode_bytes(bytearray(text.encode())),
    "encode_batch": lambda: tokenizer.encode_batch(documents, threads=threads),
    "encode_ragged": lambda: tokenizer.encode_ragged(documents, threads=threads),
    "encode_with_offsets": lambda: tokenizer.encode_with_offsets(text, allowed_special="all"),
    "encode_files": lambda: tokenizer.encode_files([path], threads=threads),
    "encode_streaming": lambda: sum(1 for _ in tokenizer.encode_streaming(documents)),
    "encode_streaming_whole": lambda: sum(1 for _ in tokenizer.encode_streaming([text])),
    "tokenize": lambda: tokenizer.tokenize(text),
    "truncate": lambda: tokenizer.truncate(text, SIZE),
    "split_by_tokens": lambda: tokenizer.split_by_tokens(text, 500),
    "count_tokens": lambda: tokenizer.count_tokens(text, threads=threads),
    "decode": lambda: tokenizer.decode(many),
    "decode_bytes": lambda: tokenizer.decode_bytes(array),
    "decode_batch": lambda: tokenizer.decode_batch(rows, threads=threads),
    "step": lambda: decoder.step(array),
    "train": lambda: BPETokenizer().train([text], 400, verbose=False, threads=threads),
    "train_from_counts": lambda: bpe_tokenizer.train_from_counts(others, 20_000, verbose=False),
    "count": lambda: bpe_tokenizer.count([text], threads=threads),
    "count_files": lambda: bpe_tokenizer.count([path], threads=threads),
    "add": lambda: counts.add(distinct),
    "merge": lambda: counts.merge(others),
    "items": lambda: list(others.items()),
    "save": lambda: others.save(saved),
    "pickle": lambda: pickle.loads(pickle.dumps(tokenizer)),
    "vocab": lambda: len(large.vocab),
    "save_tokenizer": lambda: large.save(saved),
    "export": lambda: large.export(saved, "gpt2"),
}
unlimited = resource.getrlimit(resource.RLIMIT_AS)
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (margin << 20), unlimited[1]))
outcome = result = None
try:
    result = CALLS[name]()
    outcome = "result"
except MemoryError:
    outcome = "MemoryError"
finally:
    resource.setrlimit(resource.RLIMIT_AS, unlimited)
if outcome == "MemoryError":
    assert dict(counts.items()) == before
    assert name != "step" or decoder.flush() == ""
    assert not saved.exists() or not list(saved.iterdir())
elif name == "encode":
    assert result == tokenizer.encode(text, allowed_special="all", threads=1)
elif name in ("add", "merge"):
    assert counts.distinct == len(distinct)
elif name == "step":
    assert result + decoder.flush() == tokenizer.decode(many)
del result
assert check() == expected
print(outcome)
"""
FORMS = ("words", "ascii", "letters", "spaces", "characters", "marks", "tokens")
OF_TEXT = """
    encode encode_to_numpy encode_bytes encode_batch encode_ragged encode_with_offsets encode_files
    encode_streaming encode_streaming_whole tokenize truncate split_by_tokens count_tokens train count
    count_files
""".split()  # noqa: SIM905
OTHERS = """
    decode decode_bytes decode_batch step train_from_counts add merge items save pickle vocab
    save_tokenizer export
""".split()  # noqa: SIM905
CASES = [
    (name, form, margin, threads)
    for name in OF_TEXT + OTHERS
    for form in (FORMS if name in OF_TEXT else FORMS[:1])
    for margin in MARGINS
    for threads in (1, 3)
    if margin > MARGINS[0] or threads == 1  # small allocations of other threads would end the process
]


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize(("name", "form", "margin", "threads"), sample(CASES, 0.0016, "memory"))
def test_a_call_has_a_result_or_raises_memory_error(name: str, form: str, margin: int, threads: int) -> None:
    process = run([name, form, str(margin), str(threads)])
    assert process.stdout in ("result\n", "MemoryError\n"), process.stderr[-2000:]
    assert (process.stderr, process.returncode) == ("", 0)


@pytest.mark.parametrize("name", ["encode", "decode"])
def test_what_needs_memory_fails(name: str) -> None:
    process = run([name, "ascii", "16", "1"])
    assert (process.stdout, process.stderr, process.returncode) == ("MemoryError\n", "", 0)
