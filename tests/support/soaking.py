"""A worker of the soak test: threads that work on shared tokenizers, forked children, and signals.

Each operation has one right result, which a single thread computes first. The worker prints a line of JSON a
second: the number of operations, and its memory. It ends with exit code 1 at the first wrong result.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy

from bpe_tokenizer import BPETokenizer, StreamDecoder
from bpe_tokenizer.tokenizer import Normalization

TEXT = "The quick brown fox jumps over the dog, don't it? Ünï 日本 🙂\n\n  x = y[12345];\t<|end|>e\u0301 "
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|end|>"]
TALK = [{"role": "user", "content": "the lazy<|im_end|>dog"}, {"role": "assistant", "content": "brown fox"}]
THREADS = 4

Operation = Callable[[], object]


def tokenizers() -> list[BPETokenizer]:
    """Three tokenizers: with NFC, without normalisation, and one whose pattern needs the regex engine."""
    corpus = [TEXT * 20]
    options: list[tuple[str, Normalization | None]] = [
        ("cl100k", "NFC"),
        ("gpt2", None),
        (r"(\w)\1|\w+|\s+|[^\w\s]+", "NFKC"),
    ]
    return [
        BPETokenizer(pattern, form).train(corpus, 400, special_tokens=SPECIAL, verbose=False)
        for pattern, form in options
    ]


def operations(tokenizer: BPETokenizer, directory: Path) -> list[Operation]:
    """What a thread does: each call returns a value that can be compared."""
    rng = random.Random(7)
    texts = [TEXT[rng.randrange(len(TEXT)) :] * rng.randrange(1, 40) for _ in range(60)]
    long = TEXT * 3000
    ids = tokenizer.encode(TEXT)
    file = directory / "text.txt"
    file.write_text("\n".join(texts), encoding="utf-8")

    def save_and_load() -> object:
        with tempfile.TemporaryDirectory(dir=directory) as place:
            path = Path(place) / "tokenizer.json"
            tokenizer.export(path, "base64-json")
            return BPETokenizer.load(path).encode(TEXT)

    return [
        lambda: tokenizer.encode(long),
        lambda: tokenizer.encode(long, threads=3),
        lambda: [row.input_ids for row in tokenizer.encode_batch(texts, threads=2)],
        lambda: [part.tobytes() for part in tokenizer.encode_ragged(texts)],
        lambda: [part.tobytes() for part in tokenizer.encode_files(file, separator="\n", threads=2)],
        lambda: tokenizer.encode_with_offsets(TEXT * 20),
        lambda: list(tokenizer.encode_streaming(texts)),
        lambda: tokenizer.decode(numpy.array(ids * 500, dtype=numpy.uint32)),
        lambda: tokenizer.decode_batch([ids] * 100),
        lambda: "".join(StreamDecoder(tokenizer).decode(ids)),
        lambda: tokenizer.truncate(long, 1000),
        lambda: tokenizer.count_tokens(long),
        lambda: tokenizer.encode(long, allowed_special="all"),
        lambda: tokenizer.apply_chat_template(TALK, "chatml"),
        lambda: tokenizer.encode_bytes(b"\xff\xfe" + TEXT.encode() * 100),
        lambda: pickle.loads(pickle.dumps(tokenizer)).encode(TEXT),
        lambda: BPETokenizer().train([TEXT * 5], 300, verbose=False).merges,
        lambda: tokenizer.clear_cache(),
        save_and_load,
    ]


class Worker:
    """The threads of a process, what they did, and the first failure."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.jobs = [each for one in tokenizers() for each in operations(one, directory)]
        self.expected = [job() for job in self.jobs]
        self.done = 0
        self.forks = 0
        self.signals = 0
        self.interrupted = 0
        self.takes_interrupts = False
        self.failure = ""
        self.ends = False

    def run_one(self, rng: random.Random) -> None:
        index = rng.randrange(len(self.jobs))
        if self.jobs[index]() != self.expected[index]:
            raise AssertionError(f"operation {index} has another result")
        self.done += 1

    def thread(self, seed: int) -> None:
        rng = random.Random(seed)
        try:
            while not self.ends:
                self.run_one(rng)
        except BaseException:
            self.failure = traceback.format_exc()

    def fork(self, rng: random.Random) -> None:
        """A child works with what its parent's threads were using; it must end by itself."""
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                faulthandler.dump_traceback_later(60, exit=True)
                for _ in range(3):
                    self.run_one(rng)
                code = 0
            os._exit(code)
        limit = time.monotonic() + 90
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    if status != 0:
                        raise AssertionError(f"a forked child ended with status {status}")
                    self.forks += 1
                    return
                if time.monotonic() > limit:
                    os.kill(child, signal.SIGKILL)
                    raise AssertionError("a forked child hangs")
                time.sleep(0.01)

    def main(self) -> None:
        """The main thread: takes Ctrl-C in the middle of its calls, and forks."""

        def count(_signal: int, _frame: FrameType | None) -> None:
            self.signals += 1

        def interrupt(_signal: int, _frame: FrameType | None) -> None:
            if self.takes_interrupts:
                self.takes_interrupts = False
                raise KeyboardInterrupt

        signal.signal(signal.SIGUSR1, count)
        # Python takes signals at the head of the loop too, outside the `try`.
        signal.signal(signal.SIGINT, interrupt)
        threads = [threading.Thread(target=self.thread, args=(seed,)) for seed in range(THREADS)]
        for each in threads:
            each.start()
        rng = random.Random(os.getpid())
        told = time.monotonic()
        while not self.failure and os.getppid() != 1:
            try:
                self.takes_interrupts = True
                self.run_one(rng)
                if rng.random() < 0.02:
                    self.fork(rng)
                if time.monotonic() > told + 1:
                    told = time.monotonic()
                    self.tell()
                self.takes_interrupts = False
            except KeyboardInterrupt:
                self.interrupted += 1
            except BaseException:
                self.takes_interrupts = False
                self.failure = traceback.format_exc()
        self.ends = True
        print(self.failure, file=sys.stderr, flush=True)
        os._exit(1)

    def tell(self) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        counts = {name: getattr(self, name) for name in ("done", "forks", "signals", "interrupted")}
        line = json.dumps(counts | {"bytes": pages * resource.getpagesize()}) + "\n"
        os.write(1, line.encode())  # at once: Ctrl-C can come in the middle of a print


if __name__ == "__main__":
    Worker(Path(sys.argv[1])).main()
