"""Builds what a release uploads, in `dist/`, and checks it as its users will meet it: `make release-check`.

    python tests/release.py [CHECK...] [--every-python]

- `build`: the source distribution, and the wheel of this system for this Python, or for every Python of
  pyproject.toml.
- `same`: the source distribution, unpacked elsewhere and built offline from vendored crates, gives the same
  wheel, bit by bit.
- `audit`: a wheel takes from the system only what its name says, carries the page, its licences and the list
  of its crates, has no path of this machine, and has at most 6 MB.
- `install`: where nothing else is installed, the library and the command line run, and with
  BPE_TOKENIZER_FIXTURES the commands of docs/first-hour.md.
- `musl`: the wheel for systems with musl, cross-built with zig, passes `audit`, and the short suite on the
  Python that MUSL_PYTHON names; Debian has none.
- `arm`: the same for ARM, with the Python of a root of Debian under QEMU; merges and patterns.

A check that cannot run here is skipped with the reason. The release workflow builds and tests the wheels of
all systems.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import debian
import pythons

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

import first_hour  # noqa: E402 (it is not on the path before)

DIST = ROOT / "dist"
WORK = ROOT / "build" / "release"
MAX_BYTES = 6_000_000
# What `install` permits: seconds, packages, and the time of the import as a multiple of that of NumPy.
MAX_SECONDS, MAX_PACKAGES, MAX_IMPORT = 10, 5, 1.2
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
# A release of Debian and its Python, for `musl` too.
DEBIAN, DEBIAN_PYTHON = "trixie", "3.13"
WHEELS = {
    "x86_64-unknown-linux-gnu": "manylinux_2_28",
    "x86_64-unknown-linux-musl": "musllinux_1_2",
    "aarch64-unknown-linux-gnu": "manylinux_2_28",
}
HOST, MUSL, ARM = WHEELS
# What a stranger tries first.
COMMANDS = ("--version", "doctor", "train --help", "demo")
# Seconds of the processor that a module needs, in a new process.
IMPORT = "import time; begin = time.process_time(); import {}; print(time.process_time() - begin)"


def run(*command: object, cwd: Path = ROOT, **variables: str) -> str:
    """Run a command, and return what it prints; its failure is that of the check."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words,
        cwd=cwd,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}\n{done.stdout[-6000:]}\nfailed with status {done.returncode}")
    return done.stdout


def build_wheels(source: Path, output: Path, target: str, *versions: str, **variables: str) -> list[Path]:
    """Build the wheels of a tree for a system, so that no path of this machine is in the extension."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    # Vendored crates and those of the registry get one name. A later prefix wins.
    places = {source: "/bpe-tokenizer", source / "vendor": "/crates"}
    places |= dict.fromkeys(cargo.glob("registry/src/*"), "/crates")
    places[Path(run("rustc", "--print", "sysroot").strip())] = "/rust"
    variables["RUSTFLAGS"] = " ".join(f"--remap-path-prefix={path}={name}" for path, name in places.items())
    variables["CARGO_TARGET_DIR"] = str(WORK / "target" / output.name)
    options = ["--release", "--locked", "--zig", "--compatibility", WHEELS[target], "--target", target]
    command = ["maturin", "build", *options, "--out", output, "--interpreter", *versions]
    run(*command, cwd=source, SOURCE_DATE_EPOCH="315532800", **variables)
    return sorted(output.glob("*.whl"))


def wheel() -> Path:
    """Return the wheel of `dist/` for this Python."""
    [found] = DIST.glob(f"*-cp{VERSION.replace('.', '')}-*.whl")
    return found


def build(versions: Sequence[str]) -> str:
    """Build the source distribution and the wheels of this system."""
    shutil.rmtree(DIST, ignore_errors=True)
    run("maturin", "sdist", "--out", DIST)
    return f"{len(build_wheels(ROOT, DIST, HOST, *versions))} wheels of this system"


def members(built: Path, tree: Path) -> dict[str, bytes]:
    """Return the files of a wheel, but for the folder that the list of crates names, and hashes."""
    with zipfile.ZipFile(built) as packed:
        names = [name for name in packed.namelist() if not name.endswith("/RECORD")]
        return {name: packed.read(name).replace(str(tree).encode(), b"") for name in names}


def same() -> str:
    """Build a wheel from the source distribution, offline and elsewhere, and compare it."""
    tree = WORK / "sdist"
    for old in (tree, WORK / "target" / "again"):
        shutil.rmtree(old, ignore_errors=True)
    [archive] = DIST.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tree, filter="data")
    [source] = tree.iterdir()
    settings = run("cargo", "vendor", "--locked", "--versioned-dirs", "--quiet", "vendor", cwd=source)
    (source / ".cargo").mkdir()
    (source / ".cargo" / "config.toml").write_text(settings, encoding="utf-8")
    [again] = build_wheels(source, tree / "again", HOST, VERSION, CARGO_NET_OFFLINE="true")
    ours, theirs = members(wheel(), ROOT), members(again, source)
    differ = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if differ:
        raise SystemExit(f"{again} differs from {wheel()} in {differ}")
    return again.name


def audit_wheels(wheels: Sequence[Path]) -> str:
    """Check what each wheel needs of its system, what it contains, and its size."""
    for each in wheels:
        shown = run("auditwheel", "show", each)
        found = re.search(r'consistent\s+with\s+the\s+following\s+platform\s+tag:\s+"(\w+)"', shown)
        tag = found[1] if found else shown
        libraries = set(re.findall(r'"(lib[^"]+)": ', shown))
        # A wheel may need less than its name says. zig names musl as its loader does, auditwheel does not.
        libc, *version = re.findall("[a-z]+|[0-9]+", each.stem.rpartition("-")[2])[:3]
        needed = [*map(int, re.findall("[0-9]+", tag)[:2])]
        if libraries != {"libc.so"} and (not tag.startswith(libc) or needed > [*map(int, version)]):
            raise SystemExit(f"{each} has the wrong name: {tag}")
        with zipfile.ZipFile(each) as packed:
            names = packed.namelist()
            [extension] = (name for name in names if name.endswith(".so"))
            core = packed.read(extension)
        wanted = {"bpe_tokenizer/view/page.html", "bpe_tokenizer/py.typed"}
        described = [name.partition(".dist-info/")[2] for name in names if ".dist-info/" in name]
        wanted -= {*names}
        wanted |= {"licenses/LICENSE", "licenses/THIRD-PARTY-LICENSES.txt"} - {*described}
        if wanted or not any(name.startswith("sboms/") for name in described):
            raise SystemExit(f"{each} lacks {wanted} or the list of its crates")
        if strange := {name.split("/")[0] for name in names if ".dist-info/" not in name} - {"bpe_tokenizer"}:
            raise SystemExit(f"{each} would install {strange}")
        if str(Path.home()).encode() in core or str(ROOT).encode() in core:
            raise SystemExit(f"{each} has paths of this machine")
        if each.stat().st_size > MAX_BYTES:
            raise SystemExit(f"{each} has {each.stat().st_size:,} bytes, and {MAX_BYTES:,} are permitted")
    return f"{len(wheels)} of at most {max(each.stat().st_size for each in wheels):,} bytes"


def audit() -> str:
    """Check the wheels of this system."""
    return audit_wheels(sorted(DIST.glob("*.whl")))


def install() -> str:
    """Install the wheel where nothing else is, and run what a stranger tries first."""
    environment = WORK / "install"
    shutil.rmtree(environment, ignore_errors=True)
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    begin = time.monotonic()
    run(*pip, "install", "--quiet", wheel(), cwd=environment)
    seconds = time.monotonic() - begin
    packages = len(run(*pip, "freeze", cwd=environment).splitlines())
    times: dict[str, list[float]] = {"numpy": [], "bpe_tokenizer": []}
    for _ in range(15):
        for module, measured in times.items():
            measured.append(float(run(python, "-c", IMPORT.format(module), cwd=environment)))
    ratio = min(times["bpe_tokenizer"]) / min(times["numpy"])  # the other work of a machine only adds
    result = f"{packages} packages in {seconds:.1f} s, import in {ratio:.2f} times that of NumPy"
    if seconds > MAX_SECONDS or packages > MAX_PACKAGES or ratio > MAX_IMPORT:
        raise SystemExit(f"{result}: at most {MAX_PACKAGES}, {MAX_SECONDS} s and {MAX_IMPORT} are permitted")
    run(*pip, "install", "--quiet", f"{wheel()}[cli]", cwd=environment)
    for command in COMMANDS:
        run(environment / "bin" / "bpe-tokenizer", *command.split(), cwd=environment)
    if "BPE_TOKENIZER_FIXTURES" in os.environ:
        place = environment / "first-hour"
        place.mkdir()
        first_hour.run(place, Path(os.environ["BPE_TOKENIZER_FIXTURES"]).resolve(), environment / "bin")
    return result


def passes(target: str, enter: Sequence[str], python: str, tests: Sequence[str]) -> str:
    """Build the wheel of another system, quickly, audit it, and run tests on it with a Python."""
    output, packages = WORK / target, WORK / f"{target}-packages"
    for old in (output, packages):
        shutil.rmtree(old, ignore_errors=True)
    quick = {f"CARGO_PROFILE_RELEASE_{name}": value for name, value in pythons.QUICK.items()}
    [built] = build_wheels(ROOT, output, target, DEBIAN_PYTHON, **quick)
    result = audit_wheels([built])
    if not python:
        return f"{result}; not run: MUSL_PYTHON names no Python"
    # Outside, since pip would take ten minutes under QEMU.
    platform = {MUSL: "x86_64-unknown-linux-musl", ARM: "aarch64-manylinux_2_28"}[target]
    install = ["uv", "pip", "install", "--quiet", "--target", packages, "--only-binary", ":all:"]
    install += ["--python-platform", platform, "--python-version", DEBIAN_PYTHON]
    run(*install, "--constraints", "constraints.txt", f"{built}[cli]", "--group", "test")
    pytest = [python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    files = [ROOT / "tests" / each for each in tests]
    return run(*enter, "env", f"PYTHONPATH={packages}", *pytest, *files).splitlines()[-1]


def musl() -> str:
    """Check the wheel for musl."""
    return passes(MUSL, [], os.environ.get("MUSL_PYTHON", ""), pythons.SHORT)


def arm() -> str:
    """Check the wheel for ARM, in a root of Debian under QEMU."""
    python = f"python{DEBIAN_PYTHON}"
    enter = debian.enter("arm64", [python], suite=DEBIAN, architecture="arm64")
    # QEMU takes half a minute to start Python's libraries: one process, and few files.
    return passes(ARM, enter, python, ["core/test_merging.py", "core/test_patterns.py"])


CHECKS: dict[str, Callable[[], str]] = {check.__name__: check for check in (same, audit, install, musl, arm)}


def main() -> None:
    """Run the checks that are named, or all, and print the hashes of what was built."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(["build", *CHECKS]))
    parser.add_argument("--every-python", action="store_true")
    options = parser.parse_args()
    versions = [*pythons.versions(), "3.14t"] if options.every_python else [VERSION]
    checks = {"build": lambda: build(versions), **CHECKS}
    failed: list[str] = []
    for name in options.checks or checks:
        begin = time.monotonic()
        try:
            result = checks[name]()
        except debian.UnavailableError as error:
            result = f"skipped: {error}"
        except SystemExit as error:
            result = f"FAILED: {error}"
            failed.append(name)
        print(f"{name:7} {time.monotonic() - begin:4.0f} s  {result}", flush=True)
    for each in sorted(DIST.glob("*")):
        print(hashlib.sha256(each.read_bytes()).hexdigest(), f"{each.stat().st_size:10,}", each.name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
