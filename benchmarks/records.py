"""Dated records as JSON lines: one for the run, then one for each result."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers import versions
from bpe_tokenizer import __version__

__all__ = ["DIRECTORY", "Record", "Run", "newest", "newest_python", "runs"]

DIRECTORY = Path(__file__).parent / "records"
_ROOT = Path(__file__).parents[1]


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
        now = datetime.datetime.now(datetime.UTC)
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / f"{now:%Y-%m-%d}.jsonl"
        self._begin = time.monotonic()
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
        """Append that the run is complete, and how long it took."""
        self.add("end", seconds=round(time.monotonic() - self._begin))


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
    given = [each for each in runs(directory) if each.about["run"] == run]
    found = [each for each in given if each.complete] or given
    return found[-1] if found else None


def runs(directory: Path = DIRECTORY) -> list[Run]:
    """Return all runs, oldest first."""
    runs: list[Run] = []
    for path in sorted(directory.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["kind"] == "run":
                runs.append(Run(entry))
            else:
                runs[-1].results.append(entry)
    return runs


def newest_python() -> tuple[int, int]:
    """Return the newest Python that the package is tested on: that of pyproject.toml."""
    text = (_ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return 3, max(map(int, re.findall(r'Python :: 3\.(\d+)"', text)))


def _machine() -> dict[str, Any]:
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    """Return the processor's model and the vector instructions that the package uses."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    # The first processor's facts.
    facts = {
        key.strip(): value.strip() for key, _, value in reversed([line.partition(":") for line in lines])
    }
    name = facts.get("model name", "unknown")
    if "cpu family" in facts:
        name += f", family {facts['cpu family']} model {facts.get('model', '?')}"
    flags = facts.get("flags", "").split()
    found = [flag for flag in ("avx2", "avx512f", "avx512vbmi") if flag in flags]
    level = os.environ.get("BPE_TOKENIZER_SIMD")
    return f"{name} ({f'only {level} used' if level else ', '.join(found) or 'no AVX2'})"


def _commit() -> str:
    """Return the commit, and whether the sources differ from it, except for what a run writes."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        commit = git("rev-parse", "--short", "HEAD")
        changed = git(
            "status", "--porcelain", "-uno", "--", ".", ":!benchmarks/records", ":!docs", ":!README.md"
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit
