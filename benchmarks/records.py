"""Dated records as JSON lines: one for the run, then one for each result."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import versions
from bpe_tokenizer import __version__

__all__ = ["DIRECTORY", "Record", "Run", "newest"]

DIRECTORY = Path(__file__).parent / "records"


class Record:
    """Appends a run to the day's file.

    Args:
        run: Which program ran.
        complete: Nothing is left out, so the page may show it once it has ended.
        options: How it ran, as people should read it.
        directory: Where the files are.
    """

    def __init__(
        self, run: str, complete: bool, options: Mapping[str, Any], directory: Path = DIRECTORY
    ) -> None:
        now = datetime.datetime.now(datetime.timezone.utc)
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / f"{now:%Y-%m-%d}.jsonl"
        self.add(
            "run",
            run=run,
            complete=complete,
            time=now.isoformat(timespec="seconds"),
            options=dict(options),
            machine=_machine(),
            version=__version__,
            commit=_commit(),
            peers=versions(),
        )

    def add(self, kind: str, **values: Any) -> None:
        """Append a line of a kind with values."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **values}) + "\n")

    def end(self) -> None:
        """Append that the run is complete."""
        self.add("end")


@dataclass
class Run:
    """A recorded run: its line, and the lines of its results."""

    about: dict[str, Any]
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the run is complete and includes all cases."""
        return bool(self.about["complete"] and self.of("end"))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the results of a kind."""
        return [result for result in self.results if result["kind"] == kind]


def newest(run: str, directory: Path = DIRECTORY) -> Run | None:
    """Return the newest complete run of a program, or the newest run if none is complete.

    Args:
        run: Which program.
        directory: Where the files are.

    Returns:
        The run, or None without records.
    """
    runs = [each for each in _runs(directory) if each.about["run"] == run]
    complete = [each for each in runs if each.complete]
    found = complete or runs
    return found[-1] if found else None


def _runs(directory: Path) -> list[Run]:
    runs: list[Run] = []
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["kind"] == "run":
                runs.append(Run(entry))
            else:
                runs[-1].results.append(entry)
    return runs


def _machine() -> dict[str, Any]:
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    name = next((value.strip() for key, value in facts.items() if key.startswith("model name")), "unknown")
    flags = next((value.split() for key, value in facts.items() if key.startswith("flags")), [])
    vectors = [flag for flag in ("avx2", "avx512f", "avx512vbmi") if flag in flags]
    return f"{name} ({', '.join(vectors)})" if vectors else name


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        result = subprocess.run(command, cwd=DIRECTORY.parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return result.stdout.strip()
