"""Change the code in one place at a time, and list the changes that no test notices: `make mutants`.

    python mutants/run.py rust merge special          # rooms or files of the core, with cargo-mutants
    python mutants/run.py python formats/minbpe.py    # files or folders of the package, with mutmut
    python mutants/run.py python formats --again      # with the tests of now, what was not noticed

A change that no test notices means that a test is missing, or that the change makes no difference. Those that
make no difference are in `mutants/explained.txt`, each with its reason. The rest is printed, and the exit
code is then 1.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import rust_changes

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "build" / "mutants"
CORE = ROOT / "crates" / "core" / "src"
PACKAGE = ROOT / "python" / "bpe_tokenizer"
EACH_CHANGE = ROOT / "mutants" / "python_changes.py"
EXPLAINED = ROOT / "mutants" / "explained.txt"
# Seconds for the tests of one change: a change may make a loop endless.
TIMEOUT = "90"
CARGO = ["cargo", "mutants", "--package", "bpe-tokenizer-core", "--profile", "mutants", "--no-shuffle"]
CARGO += ["--baseline", "skip", "--timeout", TIMEOUT, "--build-timeout", "900", "--colors", "never"]
MUTMUT = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = {}
also_copy = ["tests"]
"""
# mutmut's changes of a protocol's methods would be further methods, which no class has.
PROTOCOL = re.compile(r"^class \w+\(Protocol\):$", re.MULTILINE)
UNCHANGED = "  # pragma: no mutate block"


def rust(names: list[str], seconds: float) -> Iterator[str]:
    """Yield the unnoticed changes of the core's rooms: first with the room's own tests, then with all."""
    for name in names:
        path = CORE / name
        pattern = f"{path.relative_to(ROOT)}/**/*.rs" if path.is_dir() else f"{path.relative_to(ROOT)}.rs"
        changes, functions, others = rust_changes.list_changes(ROOT, pattern)
        place = OUTPUT / "rust" / name.replace("/", "-")
        programs, refused = rust_changes.build(ROOT, place, functions)
        names_of = {change.number: change.name for change in changes if change.number not in refused}
        print(f"{name}: {len(names_of)} changes in one build, {len(others)} one by one", flush=True)
        own_tests = f"{name.partition('/')[0]}::"
        for number in rust_changes.unnoticed(programs, names_of, place, own_tests, seconds):
            yield _with_source(names_of[number])
        if others:
            yield from map(_with_source, _one_by_one(others, pattern, place))


def _one_by_one(names: list[str], pattern: str, place: Path) -> list[str]:
    """Yield the unnoticed of some changes, with a build for each."""
    expressions = [option for name in names for option in ("--re", f"^{re.escape(name)}$")]
    command = [*CARGO, "--output", str(place), "--file", pattern, *expressions]
    subprocess.run(command, cwd=ROOT, env=os.environ | rust_changes.SETTINGS, check=False)
    # A change that makes a loop endless is noticed.
    return (place / "mutants.out" / "missed.txt").read_text(encoding="utf-8").splitlines()


def _with_source(line: str) -> str:
    """A change with the line of code in the place of its numbers, which change with every edit."""
    file, number, _, change = line.split(":", 3)
    source = (ROOT / file).read_text(encoding="utf-8").splitlines()[int(number) - 1].strip()
    return f"{Path(file).relative_to('crates/core/src')}:{change} | {source}"


def python(names: list[str], tests: list[str], options: list[str]) -> Iterator[str]:
    """Yield the unnoticed changes of files and folders of the package."""
    place = OUTPUT / "python" / "-".join(name.replace("/", "-") for name in names)
    shutil.rmtree(place / "mutants", ignore_errors=True)
    for source, copy in ((PACKAGE, place / "src" / "bpe_tokenizer"), (ROOT / "tests", place / "tests")):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (place / "src").rglob("*.py"):
        path.write_text(
            PROTOCOL.sub(rf"\g<0>{UNCHANGED}", path.read_text(encoding="utf-8")), encoding="utf-8"
        )
    files = [f"src/bpe_tokenizer/{name}{'*' if (PACKAGE / name).is_dir() else ''}" for name in names]
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    settings = settings.replace('pythonpath = ["tests', 'pythonpath = ["src", "tests')
    (place / "pyproject.toml").write_text(settings + MUTMUT.format(json.dumps(files)), encoding="utf-8")
    tests = tests or sorted({_tests(name) for name in names})
    environment = {"BPE_TOKENIZER_SAMPLE": "0.05"} | os.environ | {"PYTHONPATH": ""}
    subprocess.run([sys.executable, EACH_CHANGE, *tests, *options], cwd=place, env=environment, check=True)
    for change in json.loads((place / "report.json").read_text(encoding="utf-8")):
        module, _, function = change["name"].rpartition(".")
        changed = [line for line in change["diff"].splitlines() if re.match(r"[-+](?!-- |\+\+ )", line)]
        yield f"{module}: {function.partition('__mutmut')[0]}: {' '.join(' '.join(changed).split())}"


def _tests(name: str) -> str:
    """The tests of a room, or of a file outside the rooms."""
    room = name.partition("/")[0]
    return f"tests/{room}" if (ROOT / "tests" / room).is_dir() else f"tests/test_{room}"


def unexplained(changes: Iterable[str]) -> list[str]:
    """The changes that no entry of `explained.txt` explains."""
    _, *entries = EXPLAINED.read_text(encoding="utf-8").split("\n\n")
    patterns = [re.compile(entry.partition("\n")[0]) for entry in entries]
    return [change for change in changes if not any(pattern.search(change) for pattern in patterns)]


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("language", choices=["rust", "python"])
    parser.add_argument(
        "names", nargs="+", help="rooms or files, below crates/core/src or python/bpe_tokenizer"
    )
    parser.add_argument("--seconds", default="10", help="time of the tests of one change")
    parser.add_argument("--tests", nargs="+", default=[], help="of the package: in the place of the room's")
    parser.add_argument("--again", action="store_true", help="of the package: only what was not noticed last")
    arguments = parser.parse_args()
    if arguments.language == "rust":
        found = rust(arguments.names, float(arguments.seconds))
    else:
        options = ["--seconds", arguments.seconds, *["--again"] * arguments.again]
        found = python(arguments.names, arguments.tests, options)
    changes = list(found)
    rest = unexplained(changes)
    print(f"\n{len(changes)} changes unnoticed, {len(changes) - len(rest)} of them explained")
    for change in rest:
        print(f"  {change}")
    return 1 if rest else 0


if __name__ == "__main__":
    sys.exit(main())
