"""Training time and memory compared with gigatoken and Hugging Face `tokenizers`.

    python -m benchmarks.training [--all] [--rounds 5] [--only gigatoken books]

Each training is a separate process, from the files to the trained tokenizer; peak memory is that of the
whole process. gigatoken's merges are those of `tie_break="huggingface"` and are compared; `tokenizers` reads
a file line by line, which counts other white space. `--all` trains on more text. Its last case has no other
side: two gigabytes in which new words keep coming, in 500 MB of memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.inputs import chunks, fixture
from benchmarks.measure import spread
from benchmarks.records import DIRECTORY, Record

__all__ = ["ALL_CASES", "CASES", "Case", "Run", "run_training"]

_OURS = "bpe_tokenizer"
_CORPORA = ("books", "code", "multi", "zh")
_BIG_BYTES, _BIG_MEMORY = 2_000_000_000, "500MB"


class Case(NamedTuple):
    """A compared training: corpora, pattern, vocabulary size, and the other side."""

    corpus: str
    copies: int
    pattern: str
    vocab_size: int
    peer: str
    # The other side's pattern, if it differs.
    peer_pattern: str | None = None
    # Bytes of the corpus.
    size: int | None = None

    def __str__(self) -> str:
        copies = f" x {self.copies}" if self.copies > 1 else ""
        copies = f" ({self.size // 10**6} MB)" if self.size else copies
        what = f"{self.corpus}{copies}, {self.pattern}, {self.vocab_size:,}"
        other = self.peer if self.peer_pattern is None else f"itself with {self.peer_pattern}"
        return f"{what}, against {other}"


CASES = [
    Case("books", 2, "gpt2", 32_000, "gigatoken"),
    Case("code", 1, "gpt2", 32_000, "gigatoken"),
    Case("multi", 1, "gpt2", 16_000, "gigatoken", size=5_000_000),
    Case("zh", 1, "gpt2", 16_000, "gigatoken", size=5_000_000),
    Case("books", 1, "cl100k", 32_000, "tokenizers", size=5_000_000),
    Case("code", 1, "cl100k", 32_000, "tokenizers", size=5_000_000),
    Case("multi", 1, "cl100k", 32_000, "tokenizers", size=5_000_000),
]
ALL_CASES = [
    Case("books", 12, "gpt2", 32_000, "gigatoken"),
    Case("code", 1, "gpt2", 32_000, "gigatoken"),
    Case("multi", 1, "gpt2", 64_000, "gigatoken"),
    Case("zh", 1, "gpt2", 32_000, "gigatoken"),
    Case("books", 2, "cl100k", 32_000, "tokenizers"),
    Case("code", 1, "cl100k", 32_000, "tokenizers"),
    Case("multi", 1, "cl100k", 64_000, "tokenizers"),
    Case("books", 2, "gpt2", 32_000, "tokenizers"),
    Case("books", 12, "cl100k", 32_000, _OURS, "gpt2"),
    Case("multi", 1, "cl100k", 64_000, _OURS, "gpt2"),
]


class Run(NamedTuple):
    """One training: seconds, peak resident bytes, number and digest of the merges."""

    seconds: float
    peak: int
    merges: int
    digest: str
    said: str


def main() -> None:
    """Train with the sides alternately; with `--side`, run one training in this process."""
    options = _options()
    if options.side:
        _train(options.side, options.pattern, options.vocab_size, options.memory, options.files)
        return
    cases = ALL_CASES if options.all else CASES
    wanted = [case for case in cases if all(word in str(case) for word in options.only)]
    settings = {"rounds": options.rounds, "all": options.all}
    record = Record("training", not options.only, settings, options.records)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for corpus in {case.corpus for case in wanted}:
            with (directory / corpus).open("wb") as file:
                file.writelines(chunks(fixture("corpora", f"{corpus}.txt.xz")))
        for case in wanted:
            _compare(case, _part(directory / case.corpus, case.size), options.rounds, record)
        if options.all and not options.only:
            _in_little_memory(directory, record)
    record.end()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="train on more text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=Path, default=DIRECTORY, help="where the records are kept")
    parser.add_argument("--only", nargs="+", default=[], help="words that a case's name must hold")
    for name in ("--side", "--pattern", "--memory"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--vocab-size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("files", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def _part(corpus: Path, size: int | None) -> Path:
    """Return a file with so many bytes of a corpus, or the corpus."""
    if size is None:
        return corpus
    part = corpus.with_name(f"{corpus.name}-{size}")
    if not part.exists():
        part.write_bytes(corpus.read_bytes()[:size].decode("utf-8", "ignore").encode("utf-8"))
    return part


def _compare(case: Case, corpus: Path, rounds: int, record: Record) -> None:
    files = [corpus] * case.copies
    sides = {"ours": (_OURS, case.pattern), "theirs": (case.peer, case.peer_pattern or case.pattern)}
    runs: Mapping[str, list[Run]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, (program, pattern) in sides.items():
            runs[side].append(run_training(program, pattern, case.vocab_size, files))
    if case.peer == "gigatoken" and runs["ours"][0].digest != runs["theirs"][0].digest:
        counts = [runs[side][0].merges for side in sides]
        raise SystemExit(f"{case}: the merges differ; their numbers are {counts}")
    said = {}
    for side, each in runs.items():
        taken = spread(run.seconds for run in each)
        said[side] = f"{taken.median:.2f} s, {max(run.peak for run in each) / 1e6:,.0f} MB"
    ratio = spread(
        theirs.seconds / ours.seconds for ours, theirs in zip(runs["ours"], runs["theirs"], strict=True)
    )
    print(
        f"{case}: {said['ours']} against {said['theirs']}: {ratio.median:.2f} times as fast "
        f"({ratio.low:.2f} to {ratio.high:.2f})",
        flush=True,
    )
    record.add("compared", name=str(case), ours=said["ours"], theirs=said["theirs"], ratio=ratio)


def _in_little_memory(directory: Path, record: Record) -> None:
    corpus = directory / "big"
    with corpus.open("wb") as file:
        written = 0
        for document in _documents():
            file.write(document)
            written += len(document)
            if written >= _BIG_BYTES:
                break
    run = run_training(_OURS, "gpt2", 32_000, [corpus], _BIG_MEMORY)
    name = f"{written / 1e9:.0f} GB with ever new words, gpt2, 32,000, max_memory={_BIG_MEMORY}"
    print(f"{name}: {run.seconds:.1f} s, {run.peak / 1e6:,.0f} MB; {run.said}")
    ours = f"{run.seconds:.1f} s, {run.peak / 1e6:,.0f} MB"
    record.add("alone", name=name, ours=ours, said=run.said)


def _documents() -> Iterator[bytes]:
    """Return parts of the corpora repeatedly, each after new words."""
    chance = random.Random(1)
    while True:
        for corpus in _CORPORA:
            for chunk in chunks(fixture("corpora", f"{corpus}.txt.xz")):
                for start in range(0, len(chunk), 4000):
                    words = (
                        "".join(chance.choices(string.ascii_lowercase, k=chance.randint(4, 12)))
                        for _ in range(8)
                    )
                    text = chunk[start : start + 4000].decode(errors="ignore")
                    yield f"{' '.join(words)}\n{text}\n".encode()


def run_training(
    side: str, pattern: str, vocab_size: int, files: Sequence[Path], memory: str | None = None
) -> Run:
    """Train in a new process.

    Args:
        side: Whose training: `"bpe_tokenizer"`, or one of the peers.
        pattern: The name of the split pattern.
        vocab_size: Number of ids.
        files: The corpus.
        memory: The limit of our memory; None for none.

    Returns:
        What it took, and a digest of its merges.

    Raises:
        SystemExit: The process failed.
    """
    command = [sys.executable, "-m", "benchmarks.training", "--side", side, "--pattern", pattern]
    command += ["--vocab-size", str(vocab_size), *(["--memory", memory] if memory else [])]
    command += map(str, files)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        output, errors = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"training with {side} failed: {errors.decode()}")
    # The other packages print too.
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    # Linux counts in KiB, macOS in bytes.
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    said = errors.decode().replace("\n", " ").strip() if memory else ""
    return Run(result["seconds"], peak, result["merges"], result["digest"], said)


def _train(side: str, pattern: str, vocab_size: int, memory: str | None, files: Sequence[str]) -> None:
    train = {_OURS: _train_ours, "gigatoken": _train_gigatoken, "tokenizers": _train_tokenizers}[side]
    seconds, merges = train(pattern, vocab_size, memory, files)
    digest = hashlib.sha256(json.dumps(merges).encode()).hexdigest()
    print(json.dumps({"seconds": seconds, "merges": len(merges), "digest": digest}))


_Merges = list[tuple[str, str]]


def _train_ours(
    pattern: str, vocab_size: int, memory: str | None, files: Sequence[str]
) -> tuple[float, _Merges]:
    from bpe_tokenizer import BPETokenizer

    tokenizer = BPETokenizer(split_pattern=pattern, normalization=None)
    begin = time.perf_counter()
    tokenizer.train(
        [Path(file) for file in files],
        vocab_size,
        verbose=memory is not None,
        tie_break="huggingface",
        max_memory=memory,
    )
    seconds = time.perf_counter() - begin
    return seconds, _shown(tokenizer.merges)


def _train_gigatoken(
    pattern: str, vocab_size: int, memory: str | None, files: Sequence[str]
) -> tuple[float, _Merges]:
    assert (pattern, memory) == ("gpt2", None)
    gigatoken = import_module("gigatoken")
    begin = time.perf_counter()
    _, merges = gigatoken.train_bpe(gigatoken.TextFileSource(list(files)), vocab_size, [])
    return time.perf_counter() - begin, _shown(merges)


def _train_tokenizers(
    pattern: str, vocab_size: int, memory: str | None, files: Sequence[str]
) -> tuple[float, _Merges]:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    from bpe_tokenizer import _core
    from bpe_tokenizer.patterns import NAMED_PATTERNS

    (regex,) = NAMED_PATTERNS[pattern].patterns
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_core.SplitPattern(regex).to_oniguruma()), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    if pattern == "gpt2":  # Built into the other packages.
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    begin = time.perf_counter()
    tokenizer.train(list(files), trainer)
    seconds = time.perf_counter() - begin
    return seconds, json.loads(tokenizer.to_str())["model"]["merges"]


def _shown(merges: Sequence[tuple[bytes, bytes]]) -> _Merges:
    return [(left.hex(), right.hex()) for left, right in merges]


if __name__ == "__main__":
    main()
