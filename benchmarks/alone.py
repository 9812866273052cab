"""Measurements in a separate process: a cold run of either side, and peak memory.

    python -m benchmarks.alone PACKAGE MODE THREADS VOCABULARY DIRECTORY FILE [--memory | --digest]

Loads the vocabulary, encodes the file once, and prints what it took as JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.jobs import Inputs, Job, digest, job
from benchmarks.measure import on_processors, seconds
from benchmarks.peers import SkippedError, load
from benchmarks.vocabularies import prepare

__all__ = ["Cold", "Memory", "cold", "memory"]

_ROOT = Path(__file__).parents[1]


class Cold(NamedTuple):
    """A first run: its time, and a digest of the ids if requested."""

    seconds: float
    digest: str | None


class Memory(NamedTuple):
    """Bytes: the input in memory, the ids, and the peak beyond both and the initial state."""

    input: int
    output: int
    extra: int


def cold(
    package: str, mode: str, threads: int, vocabulary: str, directory: Path, file: Path, check: bool
) -> Cold:
    """Time the first run of a fresh process.

    Args:
        package: The package.
        mode: One of `MODES` that encodes.
        threads: Number of threads.
        vocabulary: One of `VOCABULARIES`, prepared in `directory`.
        directory: The directory.
        file: The corpus.
        check: Whether to encode again, untimed, for a digest of the ids.

    Raises:
        SkippedError: The process failed.
    """
    wish = ["--digest"] if check else []
    return Cold(**_run(package, mode, threads, vocabulary, directory, file, *wish))


def memory(package: str, mode: str, threads: int, vocabulary: str, directory: Path, file: Path) -> Memory:
    """Measure the peak memory of encoding in a fresh process; arguments as in `cold`."""
    return Memory(**_run(package, mode, threads, vocabulary, directory, file, "--memory"))


def _run(*arguments: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.alone", *map(str, arguments)]
    process = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE)
    if process.returncode:
        raise SkippedError(f"the process of {arguments[0]} ended with status {process.returncode}")
    result: dict[str, Any] = json.loads(process.stdout)
    return result


def main() -> None:
    """Run the measurement in this process."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("package", "mode", "threads", "vocabulary", "directory", "file"):
        parser.add_argument(name)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--digest", action="store_true")
    options = parser.parse_args()
    with on_processors(int(options.threads)):
        side = load(options.package, prepare(options.vocabulary, Path(options.directory)))
        inputs = Inputs(Path(options.file), side.to_list)
        task = job(side, options.mode, inputs, int(options.threads))
        if options.memory:
            json.dump(_measured(options.mode, inputs, task)._asdict(), sys.stdout)
            return
        taken = seconds(task.run)
        ids = digest(task.outcome()) if options.digest else None
    json.dump(Cold(taken, ids)._asdict(), sys.stdout)


def _measured(mode: str, inputs: Inputs, task: Job) -> Memory:
    # A text is in memory before the measurement; a file is not.
    if mode == "file":
        size = inputs.path.stat().st_size
        before = _resident()
    else:
        texts = [inputs.whole] if mode == "whole" else inputs.documents
        size = sum(map(sys.getsizeof, texts))
        before = _resident()
    _forget_peak()
    result = task.run()
    peak = _peak()
    del result
    output = task.outcome().nbytes
    return Memory(size, output, max(0, peak - before - output))


def _forget_peak() -> None:
    """Reset the peak, where the system allows it: reading a text needs more memory than the text."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _status(field: str) -> int | None:
    """Return a field of Linux's account of this process's memory, in bytes."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":")), None)


def _resident() -> int:
    return _status("VmRSS") or _peak()


def _peak() -> int:
    # ru_maxrss of a child includes the memory of its parent at the fork, so read /proc on Linux.
    peak = _status("VmHWM")
    if peak is None:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return peak


if __name__ == "__main__":
    main()
