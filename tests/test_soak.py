"""Threads, processes, forks and signals at once, for minutes: right results, flat memory, no hang."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SOAKING = Path(__file__).parent / "support" / "soaking.py"
# `make test-slow` takes ten minutes; a share of it takes that share of the time.
SECONDS = 600 * float(os.environ.get("BPE_TOKENIZER_SAMPLE", "1"))
WORKERS = 2
# A worker that says nothing for so long hangs. It is stopped for a second at times.
SILENCE = 120.0
GROWTH = 48 << 20


class Process:
    """A worker, and the lines that it prints."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.printed, self.errors = directory / "printed", directory / "errors"
        with self.printed.open("w") as printed, self.errors.open("w") as errors:
            command = [sys.executable, "-X", "faulthandler", str(SOAKING), str(directory)]
            self.process = subprocess.Popen(command, stdout=printed, stderr=errors)

    @property
    def lines(self) -> list[dict[str, Any]]:
        whole, _, _ = self.printed.read_text(encoding="utf-8").rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def check(self) -> None:
        if self.process.poll() is not None:
            pytest.fail(self.error() or f"a worker ended: {self.process.returncode}")
        if time.time() > self.printed.stat().st_mtime + SILENCE:
            self.process.send_signal(signal.SIGABRT)  # prints the stacks of its threads
            self.process.wait(30)
            pytest.fail(f"a worker hangs\n{self.error()}")

    def error(self) -> str:
        return self.errors.read_text(encoding="utf-8")[-6000:]

    def end(self) -> None:
        self.process.kill()
        self.process.wait(30)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 300)
@pytest.mark.skipif(sys.platform != "linux", reason="reads memory from /proc and sends signals")
def test_threads_processes_forks_and_signals(tmp_path: Path) -> None:
    rng = random.Random(os.environ.get("BPE_TOKENIZER_SAMPLE_DAY"))
    started = 0
    running: list[Process] = []
    finished: list[Process] = []
    end = time.monotonic() + SECONDS
    next_kill = time.monotonic() + SECONDS / 3

    def seen(name: str) -> int:
        return sum(worker.lines[-1][name] for worker in finished + running if worker.lines)

    try:
        # A busy machine needs longer for some of each.
        while time.monotonic() < end or not all(map(seen, ("done", "forks", "signals", "interrupted"))):
            while len(running) < WORKERS:
                running.append(Process(tmp_path / str(started)))
                started += 1
            time.sleep(rng.uniform(0.0, 0.5))
            worker = rng.choice(running)
            worker.check()
            if not worker.lines:
                continue  # it is preparing
            kind = rng.choice([signal.SIGINT, signal.SIGUSR1, signal.SIGUSR1, signal.SIGSTOP])
            worker.process.send_signal(kind)
            if kind == signal.SIGSTOP:
                time.sleep(rng.uniform(0.0, 1.0))
                worker.process.send_signal(signal.SIGCONT)
            if time.monotonic() > next_kill:
                next_kill += SECONDS / 3
                worker.end()
                running.remove(worker)
                finished.append(worker)
        for worker in running:
            worker.check()
    finally:
        for worker in running:
            worker.end()
    summary = [
        worker.lines[-1] | {"first": worker.lines[0]["bytes"]}
        for worker in finished + running
        if worker.lines
    ]
    print(json.dumps(summary))
    for worker in running:
        memory = [line["bytes"] for line in worker.lines]
        quarter = len(memory) // 4
        if quarter >= 10:
            begin, last = memory[quarter : 2 * quarter], memory[-quarter:]
            assert max(last) <= max(begin) + GROWTH, memory
