"""A process that the system gives no further thread: the work runs on those that there are."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the threads of a user")

PROGRAM = """
import os, resource, tempfile, threading
from pathlib import Path
import bpe_tokenizer
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.console import can_start_thread
from functools import partial
from bpe_tokenizer import corpus as corpora
tokenize_corpus = partial(corpora.tokenize_corpus, documents="line", append_eos=False)

text = "the quick brown fox jumps over the lazy dog " * 4000
directory = Path(tempfile.mkdtemp())
path = directory / "text.txt"
path.write_text(text * 3)
tokenizer = BPETokenizer().train([text], 300, verbose=False)
learned = tokenizer.merges
ids = tokenizer.encode(text, threads=1)

def work():
    assert tokenizer.encode(text, threads=4) == ids
    assert [row.input_ids for row in tokenizer.encode_batch([text] * 4, threads=4)] == [ids] * 4
    assert tokenizer.encode_ragged([text] * 4, threads=4)[0].tolist() == ids * 4
    assert tokenizer.encode_files([path], threads=4)[0].tolist() == tokenizer.encode(text * 3, threads=1)
    assert tokenizer.decode_batch([ids] * 4, threads=4) == [text] * 4
    assert tokenizer.count_tokens(text * 3, threads=4) == len(tokenizer.encode(text * 3, threads=1))
    assert BPETokenizer().train([text] * 3, 300, verbose=False, threads=4).merges == learned
    assert bpe_tokenizer.count([path], threads=4).pieces == bpe_tokenizer.count([text * 3], threads=1).pieces
    many = [" " + "".join(chr(ord("a") + int(digit)) for digit in str(n)) for n in range(60_000)]
    one, other = (bpe_tokenizer.count(texts, threads=4) for texts in (many[::2], many[1::2]))
    assert one.merge(other).distinct == len(many)
    with tempfile.TemporaryDirectory() as output:
        tokenize_corpus([path], output, tokenizer, verbose=False)

work()
assert can_start_thread()
if os.getuid() == 0:  # root has no limit
    os.chmod(directory, 0o777)
    os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
assert not can_start_thread()
work()
print("done")
"""


def test_the_work_runs_with_the_threads_that_there_are() -> None:
    process = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=os.sep)
    assert (process.stdout, process.stderr, process.returncode) == ("done\n", "", 0)
