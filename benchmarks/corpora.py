"""Throughput and memory from files of documents to token files, compared with scripts and with `datasets`.

    python -m benchmarks.corpora [--only speed memory] [--bytes 300e6] [--turns 5]

The parts:

- `speed`: `tokenize_corpus` on `.jsonl.zst` and `.parquet` against `encode_ragged` on the same documents in
  memory, against two scripts with gigatoken, and against `datasets.map` with a fast tokenizer; `datasets.map`
  with our tokenizer against `encode_ragged`. The ids must be equal.
- `memory`: the peak of each command at several sizes of its input.
- `spill`: training with `max_memory` against training without a limit. The merges must be equal.
- `ray`, `spark`: counting on an engine that has started, against this process; only in the environments of
  the engines, with `--only`.

Every run is a new process. Corpora are written to `build/corpora` once, from the fixtures.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from benchmarks.measure import Spread, spread
from benchmarks.records import DIRECTORY, Record
from benchmarks.training import Run, run_training

__all__ = ["COMMANDS", "PARTS", "Comparison", "Process", "compare", "flatness"]

_FORMATS = ("jsonl.zst", "parquet")
# The packages of the sides that `records.versions` does not list.
_PACKAGES = ("datasets", "transformers", "zstandard", "pyarrow", "orjson", "awkward", "ray", "pyspark")


class Process(NamedTuple):
    """A process that has ended: its status, output, errors, seconds and peak resident bytes."""

    status: int
    output: str
    errors: str
    seconds: float
    peak: int


class Comparison(NamedTuple):
    """Two sides, and by how much the first one is to be faster.

    Args:
        ours: One of `SIDES`.
        theirs: Another.
        target: The least ratio of the speeds.
    """

    ours: str
    theirs: str
    target: float


# All on the same file.
_SPEED = (
    Comparison("tokenize_corpus", "encode_ragged", 0.8),
    Comparison("tokenize_corpus", "script", 1.3),
    Comparison("tokenize_corpus", "script of files", 1.3),
    Comparison("map, ours", "encode_ragged", 0.7),
)
# On a smaller one: the other side takes minutes.
_SLOW = (Comparison("tokenize_corpus", "map, fast tokenizer", 20),)
_ENGINES = {
    "ray": (Comparison("count on ray", "count", 0.5),),
    "spark": (Comparison("count on spark", "count", 0.5),),
}

# The commands whose memory is measured: corpus, tokenizer and output to arguments.
COMMANDS: Mapping[str, Callable[[str, str, str], list[str]]] = {
    "train": lambda corpus, _, output: ["--corpus", corpus, "-o", output, "--vocab-size", "8000", "-q"],
    "count": lambda corpus, _, output: ["--corpus", corpus, "-o", output, "-q"],
    "tokenize-corpus": lambda corpus, tokenizer, output: [
        *("-t", tokenizer, "--corpus", corpus, "-o", output, "-q", "--dtype", "uint32"),
        *(["--documents", "file"] if corpus.endswith(".txt") else []),
    ],
    "report": lambda corpus, tokenizer, _: ["-t", tokenizer, "--corpus", corpus],
    "compare": lambda corpus, tokenizer, _: [tokenizer, tokenizer, "--corpus", corpus],
}
# The kinds of corpora whose memory is measured, and their formats. A `.txt` is a single document.
_MEMORY = (
    ("small", "jsonl.zst"),
    ("small", "parquet"),
    ("large", "jsonl.zst"),
    ("large", "parquet"),
    ("single", "txt"),
    ("single", "jsonl.zst"),
    ("single", "parquet"),
)


def main() -> None:
    """Run the parts."""
    options = _options()
    parts = options.only or ["speed", "memory", "spill"]
    settings = {
        "turns": options.turns,
        "bytes": int(options.bytes),
        "slow_bytes": int(options.slow_bytes),
        "sizes": [int(size) for size in options.sizes],
        "single_bytes": int(options.single_bytes),
        "spill_bytes": int(options.spill_bytes),
        "max_memory": options.max_memory,
        "packages": _versions(),
    }
    options.work.mkdir(parents=True, exist_ok=True)
    record = Record("corpora", not options.only, settings, options.records)
    for part in parts:
        PARTS[part](options, record)
    record.end()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[], help="the parts to run")
    parser.add_argument("--turns", type=int, default=5, help="how often each side runs")
    parser.add_argument("--bytes", type=float, default=300e6, help="text of a corpus whose speed is measured")
    parser.add_argument("--slow-bytes", type=float, default=40e6, help="the same for `datasets.map`")
    parser.add_argument(
        "--sizes", type=float, nargs="+", default=[100e6, 800e6], help="bytes of text to measure memory with"
    )
    parser.add_argument("--single-bytes", type=float, default=96e6, help="the size of a single document")
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=[*COMMANDS])
    parser.add_argument("--spill-bytes", type=float, default=2.5e9, help="text to train in little memory on")
    parser.add_argument("--max-memory", default="1600MB")
    parser.add_argument("--work", type=Path, default=Path("build/corpora"), help="where corpora are written")
    parser.add_argument("--records", type=Path, default=DIRECTORY, help="where the records are kept")
    return parser.parse_args()


def _speed(options: argparse.Namespace, record: Record) -> None:
    for form in _FORMATS:
        corpus = _corpus(options.work, "small", options.bytes, form)
        compare(_SPEED, corpus, f"{options.bytes / 1e6:.0f} MB of {form}", options, record)
    for form in _FORMATS:
        corpus = _corpus(options.work, "small", options.slow_bytes, form)
        compare(_SLOW, corpus, f"{options.slow_bytes / 1e6:.0f} MB of {form}", options, record)


def _engine(name: str, options: argparse.Namespace, record: Record) -> None:
    corpus = _corpus(options.work, "small", options.bytes, "txt")
    compare(_ENGINES[name], corpus, f"{options.bytes / 1e6:.0f} MB of text", options, record)


def compare(
    comparisons: Sequence[Comparison],
    corpus: Path,
    name: str,
    options: argparse.Namespace,
    record: Record,
) -> None:
    """Run the sides of comparisons in turn, and record the ratio of each turn.

    Args:
        comparisons: All sides read the same corpus.
        corpus: The corpus.
        name: What it is, for people.
        options: The number of `turns` and the `work` directory.
        record: The record.

    Raises:
        SystemExit: Two sides give different results.
    """
    sides = list(dict.fromkeys(side for each in comparisons for side in (each.ours, each.theirs)))
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    for turn in range(options.turns):
        for side in sides[turn % 2 :] + sides[: turn % 2]:  # not always after the same one
            if len(runs[side]) == turn:
                result = _run_side(side, corpus, options.work)
                if result is None:
                    record.add("skipped", name=name, side=side)
                else:
                    runs[side].append(result)
    found = {side: each for side, each in runs.items() if each}
    digests = {result["digest"] for each in found.values() for result in each}
    if len(digests) > 1:
        shown = {side: (each[0]["size"], each[0]["digest"][:8]) for side, each in found.items()}
        raise SystemExit(f"{name}: the results differ: {shown}")
    for ours, theirs, target in comparisons:
        if ours not in found or theirs not in found:
            continue
        ratio = spread(
            slow["seconds"] / own["seconds"] for own, slow in zip(found[ours], found[theirs], strict=True)
        )
        mine, other = _said(found[ours]), _said(found[theirs])
        _show(f"{name}, {ours} against {theirs}", mine, other, ratio, f"target {target}")
        record.add(
            "compared",
            name=f"{name}, {ours} against {theirs}",
            ours=mine,
            theirs=other,
            ratio=ratio,
            target=target,
        )


def _said(results: Sequence[Mapping[str, Any]]) -> str:
    taken = spread(result["seconds"] for result in results)
    return f"{taken.median:.2f} s, {max(result['peak'] for result in results) / 1e6:,.0f} MB"


def _show(name: str, ours: str, theirs: str, ratio: Spread, note: str) -> None:
    print(
        f"{name}: {ours} against {theirs}: {ratio.median:.2f} times as fast "
        f"({ratio.low:.2f} to {ratio.high:.2f}; {note})",
        flush=True,
    )


def _run_side(side: str, corpus: Path, work: Path) -> dict[str, Any] | None:
    output = work / "output"
    vocabularies = str(_vocabulary(work, "gpt2"))
    process = _run(["benchmarks.corpora_sides", side, str(corpus), str(output), "--vocabulary", vocabularies])
    for path in work.glob("output*"):
        _remove(path)
    if process.status:
        print(f"{side} on {corpus.name} is left out: {_last_line(process.errors)}", file=sys.stderr)
        return None
    # Other packages print too.
    result: dict[str, Any] = json.loads(process.output.splitlines()[-1])
    return {**result, "peak": process.peak}


def _memory(options: argparse.Namespace, record: Record) -> None:
    tokenizer = str(_vocabulary(options.work, "cl100k") / "cl100k")
    for command in options.commands:
        for kind, form in _MEMORY:
            sizes = [options.single_bytes] if kind == "single" else options.sizes
            peaks = {}
            for size in sizes:
                corpus = _corpus(options.work, kind, size, form)
                output = options.work / "output"
                arguments = COMMANDS[command](str(corpus), tokenizer, str(output))
                process = _run(["bpe_tokenizer", command, *arguments])
                _remove(output)
                name = f"{command}, {kind} documents, {size / 1e6:,.0f} MB of {form}"
                if process.status:
                    said = _last_line(process.errors)
                    print(f"{name}: refused: {said}", flush=True)
                    record.add("refused", name=name, said=said)
                    continue
                peaks[size] = process.peak
                print(f"{name}: {process.peak / 1e6:,.0f} MB, {process.seconds:.1f} s", flush=True)
                record.add(
                    "peak",
                    command=command,
                    documents=kind,
                    format=form,
                    size=int(size),
                    peak=process.peak,
                    seconds=round(process.seconds, 2),
                )
            if len(peaks) > 1:
                name, flat = f"{command}, {kind} documents, {form}", flatness(peaks.values())
                print(f"{name}: the largest peak is {flat:.2f} times the smallest", flush=True)
                record.add("flat", name=name, ratio=round(flat, 3))


def flatness(peaks: Iterable[int]) -> float:
    """Return the largest peak as a multiple of the smallest.

    >>> flatness([100, 110, 105])
    1.1
    """
    values = [*peaks]
    return max(values) / min(values)


def _spill(options: argparse.Namespace, record: Record) -> None:
    corpus = _corpus(options.work, "words", options.spill_bytes, "txt")
    vocab_size, pattern = 32_000, "cl100k"
    runs: dict[str, list[Run]] = {"limited": [], "unlimited": []}
    for _ in range(options.turns):
        runs["limited"].append(
            run_training("bpe_tokenizer", pattern, vocab_size, [corpus], options.max_memory)
        )
        runs["unlimited"].append(run_training("bpe_tokenizer", pattern, vocab_size, [corpus]))
    name = f"{options.spill_bytes / 1e6:,.0f} MB with ever new words, max_memory={options.max_memory}"
    same = len({run.digest for each in runs.values() for run in each}) == 1
    ratio = spread(
        limited.seconds / unlimited.seconds
        for limited, unlimited in zip(runs["limited"], runs["unlimited"], strict=True)
    )
    said = {}
    for side, each in runs.items():
        taken, peak = spread(run.seconds for run in each), max(run.peak for run in each)
        said[side] = f"{taken.median:.2f} s, {peak / 1e6:,.0f} MB"
    verdict = "the same merges" if same else "OTHER MERGES"
    print(
        f"{name}: {said['limited']} against {said['unlimited']} without a limit: {ratio.median:.2f} times "
        f"its time ({ratio.low:.2f} to {ratio.high:.2f}), {verdict}; {runs['limited'][0].said}",
        flush=True,
    )
    record.add(
        "spill",
        name=name,
        limited=said["limited"],
        unlimited=said["unlimited"],
        times=ratio,
        same_merges=same,
        said=runs["limited"][0].said,
    )


def _corpus(work: Path, kind: str, size: float, form: str) -> Path:
    """Write a corpus unless it exists, in a process whose memory is not ours."""
    path = work / f"{kind}-{size / 1e6:.0f}MB.{form}"
    if not path.exists():
        process = _run(["benchmarks.corpora_inputs", kind, str(int(size)), str(path)])
        if process.status:
            raise SystemExit(f"{path} cannot be written: {process.errors}")
    return path


def _vocabulary(work: Path, name: str) -> Path:
    """Write a vocabulary unless it exists, in a process whose memory is not ours."""
    directory = work / "vocabularies"
    if not (directory / name / "tokenizer.json").exists():
        process = _run(["benchmarks.corpora_inputs", "vocabulary", name, str(directory)])
        if process.status:
            raise SystemExit(f"the vocabulary {name} cannot be written: {process.errors}")
    return directory


def _run(arguments: Sequence[str]) -> Process:
    """Run a module in a new process of this Python.

    Linux counts the memory of this process too, before the other program begins: so this one stays small.
    """
    with TemporaryFile() as output, TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        said = [_content(file) for file in (output, errors)]
    # Linux counts in KiB, macOS in bytes.
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Process(process.returncode, said[0], said[1], seconds, peak)


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else "no message"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


PARTS: dict[str, Callable[[argparse.Namespace, Record], None]] = {
    "speed": _speed,
    "memory": _memory,
    "spill": _spill,
    "ray": partial(_engine, "ray"),
    "spark": partial(_engine, "spark"),
}


if __name__ == "__main__":
    main()
