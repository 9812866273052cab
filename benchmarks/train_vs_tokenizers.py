"""Training time and memory against Hugging Face `tokenizers`': 50 MB of books, vocabulary 32,000.

    python -m benchmarks.train_vs_tokenizers [--corpus FILE] [--bytes 50000000] [--rounds 3]

Each training is a process of its own, from the file to the trained tokenizer, GPT-2's split pattern
on both sides; the two sides run in turn. Peak memory is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.inputs import chunks, fixture
from benchmarks.measure import spread
from benchmarks.records import Record

_BYTES, _VOCAB_SIZE = 50_000_000, 32_000
_SIDES = ("bpe_tokenizer", "tokenizers")


class Run(NamedTuple):
    """One training: seconds, peak resident bytes of the process, and the learned tokens."""

    seconds: float
    peak: int
    tokens: list[str]


def main() -> None:
    """Train with each side in turn, or, with `--side`, be one of the trainings."""
    options = _options()
    if options.side:
        _train(options.side, options.corpus, options.vocab_size)
        return
    with tempfile.TemporaryDirectory() as directory:
        corpus = Path(directory) / "corpus.txt"
        _repeat(options.corpus or fixture("corpora", "books.txt.xz"), corpus, options.bytes)
        rounds = [
            {side: _run(side, corpus, options.vocab_size) for side in _SIDES} for _ in range(options.rounds)
        ]
    _report(rounds, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, help="text, plain or .xz (default: books of the fixtures)")
    parser.add_argument("--bytes", type=int, default=_BYTES, help="repeat the corpus to this size")
    parser.add_argument("--vocab-size", type=int, default=_VOCAB_SIZE)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--side", choices=_SIDES, help=argparse.SUPPRESS)
    return parser.parse_args()


def _repeat(source: Path, target: Path, size: int) -> None:
    """Write the corpus again and again until the file has the size, at a character's end."""
    with target.open("wb") as file:
        while size > 0:
            for chunk in chunks(source):
                taken = chunk[:size]
                if len(taken) == size:
                    taken = taken.decode("utf-8", errors="ignore").encode("utf-8")
                file.write(taken)
                size -= min(len(chunk), size)
                if size == 0:
                    break


def _run(side: str, corpus: Path, vocab_size: int) -> Run:
    command = [sys.executable, "-m", "benchmarks.train_vs_tokenizers", "--side", side]
    command += ["--corpus", str(corpus), "--vocab-size", str(vocab_size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"training with {side} failed")
    result: dict[str, Any] = json.loads(output)
    # Linux counts in KiB, macOS in bytes.
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Run(result["seconds"], peak, result["tokens"])


def _train(side: str, corpus: Path, vocab_size: int) -> None:
    train = _train_ours if side == "bpe_tokenizer" else _train_theirs
    seconds, tokens = train(corpus, vocab_size)
    json.dump({"seconds": seconds, "tokens": tokens}, sys.stdout)


def _train_ours(corpus: Path, vocab_size: int) -> tuple[float, list[str]]:
    from bpe_tokenizer import BPETokenizer

    tokenizer = BPETokenizer(split_pattern="gpt2", normalization=None)
    begin = time.perf_counter()
    tokenizer.train(corpus, vocab_size=vocab_size, verbose=False, tie_break="huggingface")
    seconds = time.perf_counter() - begin
    return seconds, list(tokenizer.get_vocab())


def _train_theirs(corpus: Path, vocab_size: int) -> tuple[float, list[str]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    begin = time.perf_counter()
    tokenizer.train([str(corpus)], trainer)
    seconds = time.perf_counter() - begin
    return seconds, list(tokenizer.get_vocab())


def _report(rounds: list[dict[str, Run]], options: argparse.Namespace) -> None:
    said = {}
    for side in _SIDES:
        runs = [each[side] for each in rounds]
        taken = spread(run.seconds for run in runs)
        peak = max(run.peak for run in runs) / 1e6
        said[side] = f"{taken.median:.2f} s, {peak:,.0f} MB"
        print(
            f"{side:<14} {taken.median:7.2f} s ({taken.low:.2f} to {taken.high:.2f}), "
            f"peak memory {peak:,.0f} MB, {len(runs[0].tokens):,} tokens"
        )
    ratio = spread(each["tokenizers"].seconds / each["bpe_tokenizer"].seconds for each in rounds)
    print(
        f"ratio          {ratio.median:7.2f} times as fast "
        f"({ratio.low:.2f} to {ratio.high:.2f}, {len(rounds)} rounds)"
    )
    name = f"{options.bytes / 1e6:,.0f} MB, vocabulary {options.vocab_size:,}, against tokenizers"
    complete = options.corpus is None and (options.bytes, options.vocab_size) == (_BYTES, _VOCAB_SIZE)
    record = Record("training", complete, {"rounds": len(rounds)})
    record.add("compared", name=name, ours=said["bpe_tokenizer"], theirs=said["tokenizers"], ratio=ratio)
    record.end()
    # tokenizers reads a file line by line, so white space that spans lines is counted otherwise.
    common = set(rounds[0]["bpe_tokenizer"].tokens) & set(rounds[0]["tokenizers"].tokens)
    print(f"tokens in common: {len(common):,}")


if __name__ == "__main__":
    main()
