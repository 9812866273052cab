"""Run the tests for each change of the core, from one build: a part of `mutants/run.py`.

cargo-mutants lists the changes, and builds the core anew for each. Here, the body of a function becomes a
`match` on the number of a change in the environment, with the changed bodies as its arms, in a box where the
function returns `impl`. What cannot be written so is left to cargo-mutants: constants and `const fn`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from threading import Timer
from typing import Any

PACKAGE = "bpe-tokenizer-core"
JOBS = os.cpu_count() or 1
# Seconds that a change may add before it counts as noticed: it may make a loop endless.
MORE_SECONDS = 5
# A failure is only counted: nothing is shrunk or kept.
SETTINGS = {"PROPTEST_MAX_SHRINK_ITERS": "0", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
# The times of tests are an option that only nightly offers.
SETTINGS["RUSTC_BOOTSTRAP"] = "1"
_TIME = re.compile(r"^test (\S+) \.\.\. ok <([\d.]+)s>$", re.MULTILINE)
# What the compiler can tell to fail, such as a division by zero, is noticed when it runs.
LINTS = {"RUSTFLAGS": "--cap-lints=warn"}
CHOICE = """
/// The change that the environment chooses; 0 for none.
pub mod chosen_change {
    static CHOSEN: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
        std::env::var("CHOSEN_CHANGE").ok().and_then(|number| number.parse().ok()).unwrap_or(0)
    });
    #[inline(always)]
    pub fn number() -> u32 {
        *CHOSEN
    }
}
"""
# Comments, strings and characters, in which a brace is none, and braces.
_TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])'|[()\[\]{}]""", re.DOTALL
)


_CONST = re.compile(r"\bconst\s+(unsafe\s+)?fn\b")
_IMPL = re.compile(r"->.*\bimpl\b", re.DOTALL)
# A function that returns one trait, perhaps with a lifetime.
ELIDED = "'_"
_RETURNED = re.compile(r"->\s*impl\s+([^+]+?)(?:\s*\+\s*('\w+))?\s*\{\s*$")


@dataclass
class Change:
    """A change: a range of a file, and what it becomes."""

    number: int
    name: str
    start: int
    end: int
    replacement: str


@dataclass
class Function:
    """A function with its changes: the range of its body without the braces, and what its `impl` returns."""

    start: int
    end: int
    returned: str | None = None
    changes: list[Change] = field(default_factory=list)


Functions = dict[str, list[Function]]
# By file: the first line of each arm, with its change. 0 is the unchanged body, -1 is what follows the arms.
Arms = dict[str, list[tuple[int, int]]]


def list_changes(root: Path, pattern: str) -> tuple[list[Change], Functions, list[str]]:
    """Ask cargo-mutants for the changes of some files.

    Returns:
        The changes that one build can hold, their functions by file, and the names of the other changes.
    """
    command = ["cargo", "mutants", "--list", "--json", "--package", PACKAGE, "--file", pattern]
    listed = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout
    changes: list[Change] = []
    others: list[str] = []
    functions: defaultdict[str, list[Function]] = defaultdict(list)
    for each in json.loads(listed):
        text = (root / each["file"]).read_text(encoding="utf-8")
        function = each["function"] and _function(text, each["function"]["span"], functions[each["file"]])
        if not function:
            others.append(each["name"])
            continue
        start, end = _range(text, each["span"])
        change = Change(len(changes) + 1, each["name"], start, end, each["replacement"])
        function.changes.append(change)
        changes.append(change)
    for known in functions.values():
        known.sort(key=lambda function: function.start)
    return changes, functions, others


def _function(text: str, span: dict[str, Any], known: list[Function]) -> Function | None:
    """The outermost function at a place; None if a `match` cannot be its body."""
    start, end = _range(text, span)
    body = _body(text, start, end)
    for function in known:
        if function.start == body or (function.start <= start and end - 1 <= function.end):
            return function
    head = text[start : body or start]
    returned = _RETURNED.search(head)
    if body is None or _CONST.search(head) or (returned is None and _IMPL.search(head)):
        return None
    trait = returned and f"dyn {returned[1]} + {returned[2] or ELIDED}"
    known.append(Function(body, end - 1, trait))
    return known[-1]


def _range(text: str, span: dict[str, Any]) -> tuple[int, int]:
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    start, end = (starts[place["line"] - 1] + place["column"] - 1 for place in (span["start"], span["end"]))
    return start, end


def _body(text: str, start: int, end: int) -> int | None:
    """Return the index after the opening brace of a function."""
    depth = 0
    for token in _TOKEN.finditer(text, start, end):
        if token[0] in ("(", "["):
            depth += 1
        elif token[0] in (")", "]"):
            depth -= 1
        elif token[0] == "{" and depth == 0:
            return token.end()
    return None


def build(root: Path, place: Path, functions: Functions) -> tuple[list[Path], set[int]]:
    """Build the tests with all changes that compile.

    Returns:
        The programs of the tests, those of the library first, and the changes that the compiler refuses.
    """
    for name in ("crates", "tests/vectors"):
        shutil.rmtree(place / name, ignore_errors=True)
        shutil.copytree(root / name, place / name)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(root / name, place / name)
    with (place / "crates" / "core" / "src" / "lib.rs").open("a", encoding="utf-8") as library:
        library.write(CHOICE)
    refused: set[int] = set()
    while errors := set(_refused(place, _write(root, place, functions, refused), functions)):
        refused |= errors
    messages = _cargo(place, "test", "--no-run")
    if not messages or not messages[-1].get("success"):
        raise RuntimeError("the tests do not compile")
    programs = [message for message in messages if message.get("executable")]
    programs.sort(key=lambda message: "lib" not in message["target"]["kind"])
    return [Path(message["executable"]) for message in programs], refused


def _write(root: Path, place: Path, functions: Functions, refused: set[int]) -> Arms:
    """Write the files with all changes but the refused ones."""
    arms: Arms = {}
    for file, known in functions.items():
        text = (root / file).read_text(encoding="utf-8")
        written, at = "", 0
        arms[file] = []
        for function in known:
            changes = [change for change in function.changes if change.number not in refused]
            if not changes:
                continue
            bodies = [(change.number, _changed(text, function, change)) for change in changes]
            bodies.append((0, text[function.start : function.end]))
            begin, end, before, after = "", "", "", ""
            if function.returned is not None:
                begin, end = f"let chosen: Box<{function.returned}> = ", ";\nchosen\n"
                before, after = "Box::new({", "})"
            written += f"{text[at : function.start]}\n{begin}match crate::chosen_change::number() {{\n"
            for number, body in bodies:
                arms[file].append((written.count("\n") + 1, number))
                written += f"{number or '_'} => {{{before}{body}\n{after}}}\n"
            arms[file].append((written.count("\n") + 1, -1))
            written += f"}}{end}\n"
            at = function.end
        # Inlined, the changed bodies of callers would hold all changed bodies of what they call.
        written = (written + text[at:]).replace("#[inline(always)]", "")
        (place / file).write_text(written, encoding="utf-8")
    return arms


def _changed(text: str, function: Function, change: Change) -> str:
    return text[function.start : change.start] + change.replacement + text[change.end : function.end]


def _refused(place: Path, arms: Arms, functions: Functions) -> Iterator[int]:
    """The changes that the compiler refuses; all of a function where it refuses the unchanged body."""
    errors = [
        (span["file_name"], span["line_start"])
        for message in _cargo(place, "check", "--lib")
        if message["reason"] == "compiler-message" and message["message"]["level"] == "error"
        for span in message["message"]["spans"]
        if span["is_primary"]
    ]
    for file, line in errors:
        before = [number for first, number in arms.get(file, []) if first <= line]
        if before[-1:] == [0]:
            own = next(
                one for one in functions[file] if any(each.number == before[-2] for each in one.changes)
            )
            yield from (change.number for change in own.changes)
        elif before and before[-1] > 0:
            yield before[-1]
        else:
            raise RuntimeError(f"{file}:{line} does not compile without a change")


def _cargo(place: Path, *arguments: str) -> list[dict[str, Any]]:
    """The messages of a cargo command."""
    command = ["cargo", *arguments, "--message-format=json", "--profile", "mutants", "--package", PACKAGE]
    command += ["--target-dir", str(place.parent / "target")]
    environment = os.environ | LINTS
    output = subprocess.run(
        command, cwd=place, env=environment, stdout=subprocess.PIPE, text=True, check=False
    )
    return [json.loads(line) for line in output.stdout.splitlines()]


def unnoticed(
    programs: list[Path], numbers: Iterable[int], place: Path, own_tests: str, seconds: float
) -> list[int]:
    """The changes with which the tests pass: first those of the room, then the quickest of all."""
    times = {program: _times(program, place) for program in programs}
    own = {name: time for name, time in times[programs[0]].items() if name.startswith(own_tests)}
    left = _left({programs[0]: own}, list(numbers), place)
    print(f"{len(left)} left after the tests of the room", flush=True)
    by_time = sorted(
        (time, name, program) for program, tests in times.items() for name, time in tests.items()
    )
    quickest: dict[Path, dict[str, float]] = {program: {} for program in programs}
    for time, name, program in by_time:
        seconds -= time
        if seconds > 0:
            quickest[program][name] = time
    return _left(quickest, left, place)


def _times(program: Path, place: Path) -> dict[str, float]:
    """The seconds of each test of a program without a change."""
    options = ["-Zunstable-options", "--report-time"]
    with _started(program, options, 0, place) as process:
        lines = process.stdout.read() if process.stdout else ""
    if process.returncode != 0:
        raise RuntimeError(f"{program.name} fails without a change")
    return {name: float(time) for name, time in _TIME.findall(lines)}


def _left(tests: dict[Path, dict[str, float]], numbers: list[int], place: Path) -> list[int]:
    """The changes with which these tests pass."""

    def passes(number: int) -> bool:
        return all(_passes(program, times, number, place) for program, times in tests.items() if times)

    with ThreadPoolExecutor(JOBS) as pool:
        return [number for number, passed in zip(numbers, pool.map(passes, numbers), strict=True) if passed]


def _passes(program: Path, tests: dict[str, float], number: int, place: Path) -> bool:
    """Whether these tests of a program pass with a change. The first failure ends it."""
    with _started(program, ["--exact", *tests], number, place) as process:
        timer = Timer(3 * sum(tests.values()) + MORE_SECONDS, process.kill)
        timer.start()
        for line in process.stdout or ():
            if line.endswith("FAILED\n"):
                process.kill()
        timer.cancel()
    return process.returncode == 0


def _started(program: Path, options: list[str], number: int, place: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(program), "--test-threads=1", *options],
        cwd=place / "crates" / "core",  # as with cargo
        env=os.environ | SETTINGS | {"CHOSEN_CHANGE": str(number)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
