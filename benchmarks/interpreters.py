"""The same work on several Pythons, in turn: ours, tiktoken and gigatoken.

    python -m benchmarks.interpreters "python3.11" "chroot /roots/sid /venv/bin/python" [--rounds 5]

Each argument is the command of a Python that has the package, and the other packages that are to be compared.
It runs this file as a module, so the repository must be its working directory. The time is that of the
processor in the calling thread, so that ours and others' are of one thread, and the best of a process counts:
what differs between Pythons is the work of one call.
"""

from __future__ import annotations

import argparse
import json
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.inputs import fixture, read_documents
from benchmarks.measure import seconds
from benchmarks.peers import OURS, Side, SkippedError, load
from benchmarks.records import DIRECTORY, Record
from benchmarks.vocabularies import prepare

# Bytes of the text.
SIZE = 4_000_000
SHORT = "Hello wor!"
PACKAGES = (OURS, "tiktoken", "gigatoken")


def main() -> None:
    """Measure each Python."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="*", help="commands; none measures this Python and prints JSON")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=Path, default=DIRECTORY, help="where the records are kept")
    options = parser.parse_args()
    if not options.pythons:
        print(json.dumps([platform.python_version(), dict(measure())]))
        return
    record = Record("interpreters", True, {"rounds": options.rounds}, options.records)
    found: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(options.rounds):
        for python in options.pythons:
            command = [*shlex.split(python), "-m", "benchmarks.interpreters"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise SystemExit(f"{shlex.join(command)} failed:\n{done.stderr}")
            version, speeds = json.loads(done.stdout.splitlines()[-1])
            for package, modes in speeds.items():
                for mode, value in modes.items():
                    found.setdefault((version, package, mode), []).append(value)
    for (version, package, mode), values in found.items():
        print(f"{version:8} {package:15} {mode:20} {statistics.median(values):8,.0f}")
        record.add(
            "python", python=version, package=package, mode=mode, speed=round(statistics.median(values))
        )
    record.end()


def measure() -> Iterator[tuple[str, dict[str, float]]]:
    """Yield each package that this Python has, with its speed in each mode."""
    text = "".join(read_documents(fixture("corpora", "books.txt.xz"), SIZE))
    with tempfile.TemporaryDirectory() as directory:
        vocabulary = prepare("cl100k", Path(directory))
        for package in PACKAGES:
            try:
                side = load(package, vocabulary)
            except SkippedError as error:
                print(error, file=sys.stderr)
                continue
            yield package, dict(modes(side, text))


def modes(side: Side, text: str) -> Iterator[tuple[str, float]]:
    """Yield the modes of a package: MB per second, and the nanoseconds of a short call."""
    size = len(text.encode()) / 1e6
    ids = side.to_list(text)
    yield "text to list", size / best(lambda: side.to_list(text))
    if side.to_numpy:
        array = side.to_numpy(text)
        to_numpy, to_bytes = side.to_numpy, side.to_bytes
        yield "text to array", size / best(lambda: to_numpy(text))
        if to_bytes:
            yield "array to bytes", size / best(lambda: to_bytes(array))
    if to_str := side.to_str:
        yield "list to text", size / best(lambda: to_str(ids))
    if offsets := side.ours_alone.get("offsets"):
        yield "text to offsets", size / best(lambda: offsets(text))
    calls = range(10_000)

    def short() -> None:
        for _ in calls:
            side.to_list(SHORT)

    yield "10 bytes to list, ns", best(short) / len(calls) * 1e9


def best(run: Callable[[], object]) -> float:
    """Return the least time of the processor that a run takes in this thread, in seconds."""
    return min(seconds(run, time.thread_time) for _ in range(5))


if __name__ == "__main__":
    main()
