"""Build the extension and run the tests on every Python that pyproject.toml names: `make test-pythons`.

A Python comes from pyenv, from PATH or, where root has `debootstrap`, from Debian sid in
`build/debian/pythons`. One that is not to be had is skipped with the reason. Environments are in
`build/pythons/`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import debian

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "build" / "pythons"
# What `--short` runs: the doors of the core.
SHORT = ["core", "test_tokenizer.py", "test_streaming.py", "formats/test_round_trips.py"]
# Quick to link; no time is measured.
QUICK = {"LTO": "off", "CODEGEN_UNITS": "16", "DEBUG": "0"}


def versions() -> list[str]:
    """Return the Pythons that pyproject.toml names, oldest first."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return [f"3.{minor}" for minor in sorted(map(int, re.findall(r'Python :: 3\.(\d+)"', text)))]


def on_this_machine(version: str) -> list[str]:
    """Return the command of a Python of pyenv or PATH, or nothing."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [str(each / "bin" / "python") for each in sorted(pyenv.glob(f"{version}.*"), reverse=True)]
    for python in [*candidates, shutil.which(f"python{version}")]:
        # The command of a pyenv version that is not selected fails, and Debian may lack the package for venv.
        if python and not subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode:
            return [python]
    return []


def in_debian(version: str, wanted: Sequence[str]) -> list[str]:
    """Return the command of a Python in the root of Debian sid that has those wanted."""
    packages = [f"python{each}{part}" for each in wanted for part in ("-venv", "-dev")]
    return [*debian.enter("pythons", packages), f"python{version}"]


def commands(python: Sequence[str], version: str, tests: Sequence[str]) -> Iterator[list[str]]:
    """Yield the commands that install the package for a Python and test it."""
    *enter, interpreter = python
    environment = OUTPUT / version
    of_environment = [*enter, str(environment / "bin" / "python"), "-m"]
    install = [*of_environment, "pip", "--disable-pip-version-check", "install", "-qq"]
    yield [*enter, interpreter, "-m", "venv", str(environment)]
    yield [*install, "pip>=25.1"]
    yield [*install, "--editable", ".[cli]", "--group", "test"]
    # Python 3.15 counts references in another way, which Hypothesis 6.170 takes for a fault now and then.
    warning = ["-W", "ignore:It looks like `register_random`"]
    yield [*of_environment, "pytest", "-n", "2", "--dist", "worksteal", *warning, "-m", "not slow", *tests]


def passes(python: Sequence[str], version: str, tests: Sequence[str]) -> bool:
    """Install the package for a Python and test it."""
    environment = OUTPUT / version / "bin"
    variables = os.environ | {f"CARGO_PROFILE_RELEASE_{name}": value for name, value in QUICK.items()}
    variables["PATH"] = f"{environment}{os.pathsep}{variables['PATH']}"
    variables["PYO3_PYTHON"] = str(environment / "python")
    # A program that is compiled in the root may need its C library, which is newer.
    variables["CARGO_TARGET_DIR"] = str(ROOT / "target" / ("pythons-debian" if python[1:] else "pythons"))
    return not any(
        subprocess.run(command, cwd=ROOT, env=variables).returncode
        for command in commands(python, version, tests)
    )


def main() -> None:
    """Test every Python, and print how each ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--newest", action="store_true", help="only the newest Python")
    parser.add_argument("--short", action="store_true", help="only the tests of the core's doors")
    options, tests = parser.parse_known_args()
    tests = [*tests, *(f"tests/{each}" for each in SHORT)] if options.short else tests
    named = versions()
    found = {version: on_this_machine(version) for version in named}
    missing = [version for version in named if not found[version]]
    results: dict[str, str] = {}
    for version in named[-1:] if options.newest else named:
        print(f"=== Python {version}", flush=True)
        try:
            python = found[version] or in_debian(version, missing)
            results[version] = "passed" if passes(python, version, tests) else "FAILED"
        except debian.UnavailableError as error:
            results[version] = f"skipped: {error}"
    for version, result in results.items():
        print(f"Python {version}: {result}")
    sys.exit("FAILED" in results.values())


if __name__ == "__main__":
    main()
