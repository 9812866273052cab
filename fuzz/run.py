"""Run the fuzz targets, two at a time, and print what each executed: `make fuzz MINUTES=2`.

Corpora, logs and finds are in build/fuzz/. A find ends its target; the exit code is then 1.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "fuzz"
OUTPUT = ROOT / "build" / "fuzz"
# The instrumented build needs options that rustc has on every channel, but only offers on nightly.
BOOTSTRAP = {"RUSTC_BOOTSTRAP": "1"}
# Memory that an execution frees stays with the process: the next one needs as much.
MALLOC = {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1000000000:glibc.malloc.mmap_threshold=1000000000"}
# Many mutations in sequence change only the part of an input that follows its setup (fuzz/src/input.rs).
OPTIONS = ["-max_len=256", "-mutate_depth=20", "-timeout=25", "-rss_limit_mb=3000", "-print_final_stats=1"]
EXECUTIONS = re.compile(r"number_of_executed_units:\s+(\d+)|^Done (\d+) runs|^#(\d+)\s", re.MULTILINE)


@dataclass
class Result:
    """How the run of a target ended."""

    name: str
    executions: int
    seconds: float
    find: Path | None
    failed: bool
    log: Path


def rust_targets() -> list[str]:
    """The names of the targets in Rust."""
    return sorted(path.stem for path in (FUZZ / "fuzz_targets").glob("*.rs"))


def python_targets() -> list[str]:
    """The names of the targets in Python."""
    return sorted(path.stem for path in (FUZZ / "python").glob("fuzz_*.py"))


def build(sanitizer: str) -> Path:
    """Build the Rust targets; returns the directory of the programs."""
    target_dir = ROOT / "target" / f"fuzz-{sanitizer}"
    command = ["cargo", "fuzz", "build", "--fuzz-dir", str(FUZZ), "--target-dir", str(target_dir)]
    # Comparisons are not traced: the inputs are built from bytes, and tracing halves the executions.
    command += ["--sanitizer", sanitizer, "--no-trace-compares"]
    subprocess.run(command, cwd=ROOT, env=os.environ | BOOTSTRAP, check=True)
    (programs,) = target_dir.glob("*/release")
    return programs


def command_of(name: str, programs: Path | None) -> list[str]:
    """The command that runs a target."""
    if name.startswith("fuzz_"):
        return [sys.executable, str(FUZZ / "python" / f"{name}.py")]
    if programs is None:
        raise AssertionError("the Rust targets are built first")
    return [str(programs / name)]


def run(name: str, programs: Path | None, minutes: float, seed: int) -> Result:
    """Run a target until the time is over, or until it finds something."""
    corpus, finds, log = OUTPUT / "corpus" / name, OUTPUT / "finds", OUTPUT / f"{name}.log"
    for directory in (corpus, finds):
        directory.mkdir(parents=True, exist_ok=True)
    command = command_of(name, programs) + OPTIONS
    command += [
        f"-max_total_time={round(60 * minutes)}",
        f"-artifact_prefix={finds}/{name}-",
        f"-seed={seed}",
    ]
    dictionary, seeds = FUZZ / f"{name}.dict", FUZZ / "seeds" / name
    command += [f"-dict={dictionary}"] if dictionary.exists() else []
    command += [str(corpus)] + ([str(seeds)] if seeds.exists() else [])
    begin, begin_time = time.monotonic(), time.time()
    command = ["nice", "-n", "19", *command]
    with log.open("wb") as output:
        ended = subprocess.run(
            command, cwd=ROOT, env=os.environ | MALLOC, stdout=output, stderr=output, check=False
        )
    text = log.read_text(errors="replace")
    counts = [max(map(int, filter(None, match))) for match in EXECUTIONS.findall(text)]
    new = [path for path in finds.glob(f"{name}-*") if path.stat().st_mtime >= begin_time - 1]
    # An input that took long, but less than the time limit, is kept and is not an error.
    new = [path for path in new if not path.name.startswith(f"{name}-slow-unit")]
    seconds = time.monotonic() - begin
    return Result(name, max(counts, default=0), seconds, min(new, default=None), ended.returncode != 0, log)


def show(result: Result) -> None:
    """Print the line of a target."""
    rate = result.executions / max(result.seconds, 1e-9)
    state = "FIND" if result.find else "FAILED" if result.failed else "ok"
    print(f"{result.name:<24} {result.executions:>12,} executions {rate:>9,.0f}/s  {state}", flush=True)


def explain(result: Result, programs: Path | None) -> None:
    """Print the message of a find, how to repeat it, and what to do with it."""
    lines = result.log.read_text(errors="replace").splitlines()
    marks = ("panicked", "Traceback", "ERROR", "Uncaught", "assertion", "Error")
    message = next((i for i, line in enumerate(lines) if any(mark in line for mark in marks)), len(lines) - 1)
    print(f"\n{result.name}:")
    for line in lines[message : message + 12]:
        print(f"    {line[:1000]}")
    print(f"    log: {result.log}")
    if result.find:
        command = " ".join(command_of(result.name, programs))
        print(f"    repeat:   {command} {result.find}")
        print(f"    minimise: {command} -minimize_crash=1 -max_total_time=60 {result.find}")
        print("    Mend it, and add the input to an ordinary test: CONTRIBUTING.md, section Fuzzing.")


def main() -> int:
    """Run what the command line asks for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2, help="time of each target")
    parser.add_argument("--jobs", type=int, default=2, help="targets that run at the same time")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the random inputs; 0 is another one each time"
    )
    parser.add_argument("--sanitizer", choices=["none", "address"], default="none")
    parser.add_argument("targets", nargs="*", help="names of targets; all without")
    arguments = parser.parse_args()
    known = rust_targets() + python_targets()
    targets = arguments.targets or known
    unknown = sorted(set(targets) - set(known))
    if unknown:
        parser.error(f"unknown targets {', '.join(unknown)}; known are {', '.join(known)}")
    if any(name.startswith("fuzz_") for name in targets):
        targets = without_atheris(targets)
    programs = build(arguments.sanitizer) if set(targets) & set(rust_targets()) else None
    results = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(lambda name: run(name, programs, arguments.minutes, arguments.seed), targets):
            show(result)
            results.append(result)
    bad = [result for result in results if result.failed or result.find]
    print(f"{'all':<24} {sum(result.executions for result in results):>12,} executions, {len(bad)} finds")
    for result in bad:
        explain(result, programs)
    return 1 if bad else 0


def without_atheris(targets: list[str]) -> list[str]:
    """The targets without those in Python if atheris is not installed: it has no release for every Python."""
    if find_spec("atheris") is None:
        version = ".".join(map(str, sys.version_info[:2]))
        print(
            f"atheris has no release for Python {version} on this system: the targets in Python are skipped"
        )
        return [name for name in targets if not name.startswith("fuzz_")]
    return targets


if __name__ == "__main__":
    sys.exit(main())
