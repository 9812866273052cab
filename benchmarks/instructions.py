"""Counts instructions per byte under callgrind, and compares them with benchmarks/instructions.json.

    python -m benchmarks.instructions [--update]

A time depends on the machine and on what else runs there; a count depends only on the program. So a count
shows a regression of a few per cent in CI. The check fails when any work takes over 3 % more instructions
than the file says. `--update` writes the counts to the file. Those of another compiler never fail.
Needs nothing but the standard library, cargo and valgrind.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["compare", "count", "missing"]

_ROOT = Path(__file__).parents[1]
_EXPECTED = _ROOT / "benchmarks" / "instructions.json"
_PROGRAM = "instructions"
# The function of the program inside which instructions count.
_COUNTED = "instructions::measured"
# Changes below this are those of other code that the compiler laid out differently.
_TOLERANCE = 0.03
_UPDATE = "make instructions INSTRUCTIONS=--update"


def main() -> None:
    """Count, and compare or update."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", help="write the counts to the file")
    update = parser.parse_args().update
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return
    counted = {"tools": _tools(), "per_byte": count()}
    if update:
        _EXPECTED.write_text(json.dumps(counted, indent=2) + "\n", encoding="utf-8")
        print(f"wrote {_EXPECTED}")
        return
    expected = json.loads(_EXPECTED.read_text(encoding="utf-8"))
    lines, failed = compare(counted, expected)
    print("\n".join(lines))
    if failed:
        sys.exit(1)


def missing() -> str | None:
    """Return why instructions cannot be counted here, or None."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"the counts are those of Linux x86_64, not {platform.system()} {platform.machine()}"
    if "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8").split():
        return "the counts are those of AVX2, which this processor lacks"
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    return None


def count() -> dict[str, float]:
    """Build the program and count.

    Returns:
        The instructions per byte of text, for each kind of work.
    """
    cargo = os.environ.get("CARGO", "cargo")
    build = [cargo, "build", "--release", "--quiet", "--package", "bpe-tokenizer-core", "--example", _PROGRAM]
    subprocess.run(build, cwd=_ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", _ROOT / "target"))
    with tempfile.TemporaryDirectory() as directory:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/part"]
        command += [f"--toggle-collect={_COUNTED}", f"--dump-after={_COUNTED}"]
        command.append(str(target / "release" / "examples" / _PROGRAM))
        # valgrind 3.19 does not know AVX-512.
        environment = {**os.environ, "BPE_TOKENIZER_SIMD": "avx2"}
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{run.stderr}")
        counts = {}
        for number, line in enumerate(run.stdout.splitlines(), start=1):
            size, name = line.split(" ", 1)
            counts[name] = round(_total(Path(directory, f"part.{number}")) / int(size), 3)
        return counts


def compare(counted: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Compare counts with the expected ones.

    Args:
        counted: `tools` (their versions) and `per_byte` (instructions per byte of each kind of work).
        expected: The same, as the file has it.

    Returns:
        Lines to print, and whether the counts are too high.
    """
    mine, theirs = counted["per_byte"], expected["per_byte"]
    same_tools = counted["tools"] == expected["tools"]
    lines = [f"{'instructions per byte':24}{'now':>9}{'file':>9}{'change':>9}"]
    more, fewer = [], []
    for name in {**theirs, **mine}:
        now, before = mine.get(name), theirs.get(name)
        if now is None or before is None:
            lines.append(f"{name:24}{now or '':>9}{before or '':>9}")
            more.append(name)
            continue
        change = now / before - 1
        lines.append(f"{name:24}{now:9.2f}{before:9.2f}{change:+9.1%}")
        if change > _TOLERANCE:
            more.append(name)
        if change < -_TOLERANCE:
            fewer.append(name)
    if not same_tools:
        was, are = (", ".join(each["tools"].values()) for each in (expected, counted))
        lines.append(f"not compared: the file is of {was}, and here are {are}. Update: {_UPDATE}")
    elif more:
        lines.append(
            f"FAILED: more than {_TOLERANCE:.0%} above benchmarks/instructions.json, or not in both: "
            f"{', '.join(more)}. Find the cause; if the cost is worth it, update: {_UPDATE}"
        )
    elif fewer:
        lines.append(f"fewer instructions: {', '.join(fewer)}. Keep the gain: {_UPDATE}")
    return lines, bool(more) and same_tools


def _tools() -> dict[str, str]:
    def version(program: str) -> str:
        return subprocess.run(
            [program, "--version"], check=True, capture_output=True, text=True
        ).stdout.strip()

    return {"rustc": version(os.environ.get("RUSTC", "rustc")), "valgrind": version("valgrind")}


def _total(part: Path) -> int:
    found = re.search(r"^totals: (\d+)$", part.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{part} lacks the line of totals that callgrind writes")
    return int(found[1])


if __name__ == "__main__":
    main()
