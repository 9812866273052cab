"""Writes THIRD-PARTY-LICENSES.txt: the licences of the Rust packages that a wheel contains (`make licences`).

The packages are those that Cargo.lock lists for the extension and for the page's core: what is compiled into
them on any system, and what builds them. The texts are in the sources that Cargo downloads. Those of Rust's
standard library are in the notices of the toolchain.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "THIRD-PARTY-LICENSES.txt"
# The crates that a wheel contains.
CRATES = ("python", "wasm")
# The crates that Rust's standard library contains on our systems; dlmalloc is for WebAssembly.
STD_CRATES = ("cfg-if", "dlmalloc", "foldhash", "gimli", "hashbrown", "libc", "rustc-demangle")
_HEAD = """\
The wheels of bpe-tokenizer contain, in compiled form, parts of these Rust packages and of Rust's standard
library. Where a package has a choice, its MIT licence is chosen.
`make licences` writes this file.
"""


def contained() -> list[tuple[str, str]]:
    """Return name and version of each package, from Cargo.lock."""
    listed = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    locked = {package["name"]: package for package in listed}
    waiting = [f"bpe-tokenizer-{crate}" for crate in CRATES]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _dependencies(name, locked[name])
    return sorted((name, locked[name]["version"]) for name in seen if "source" in locked[name])


def _dependencies(name: str, package: dict[str, list[str]]) -> list[str]:
    """Return the dependencies of a package; of our own crates without those of their tests."""
    own = ROOT / "crates" / name.removeprefix("bpe-tokenizer-") / "Cargo.toml"
    if not own.exists():
        return [dependency.split()[0] for dependency in package.get("dependencies", ())]
    manifest = tomllib.loads(own.read_text(encoding="utf-8"))
    tables = [manifest, *manifest.get("target", {}).values()]
    return [dependency for table in tables for dependency in table.get("dependencies", {})]


def texts(folder: Path) -> Iterator[str]:
    """Yield the licence texts of a package: that of MIT if it has a choice, and what holds with it."""
    files = [path for path in sorted(folder.iterdir()) if path.name.upper().startswith(("LICEN", "NOTICE"))]
    chosen = [path for path in files if "MIT" in path.name]
    for path in files:
        if path in chosen or not chosen or "UNICODE" in path.name or path.name.startswith("NOTICE"):
            yield path.read_text(encoding="utf-8").replace("\r\n", "\n").strip()


def standard_library() -> Iterator[tuple[str, str]]:
    """Yield the parts of Rust's standard library and their licence texts: notices of the toolchain."""
    command = [os.environ.get("RUSTC", "rustc"), "--print", "sysroot"]
    sysroot = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    folder = Path(sysroot, "share", "doc", "rust")
    licences = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("licenses/*.txt")}
    own, *crates = (folder / "COPYRIGHT-library.html").read_text(encoding="utf-8").split("<h3>")
    holders = sorted({*re.findall(r"<b>Copyright:</b> ([^<]+?)\s*<", own)})
    copyrights = "\n".join(f"Copyright (c) {holder}" for holder in holders)
    mit = re.sub("Copyright.+holders>", copyrights, licences["MIT"])
    yield "all but the following (MIT OR Apache-2.0)", mit.strip()
    yield "tables of Unicode (Unicode-3.0)", licences["Unicode-3.0"].strip()
    for crate in crates:
        name, version = re.findall(r"([\w-]+?)-(\d[^<]*)</h3>", crate)[0]
        if name in STD_CRATES:
            licence = re.findall(r"License:</b> ([^<]+)</p>", crate)[0]
            text = re.findall(r"<code>LICENSE(?:-MIT)?</code></summary>\s*<pre>([^<]+)", crate)[0]
            yield f"{name} {version} ({licence})", unescape(text).strip()


def document() -> str:
    """Return the file: each text once, after the packages that have it."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version=1", "--locked"]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)["packages"]
    packages = {(each["name"], each["version"]): each for each in found}
    owners: dict[str, list[str]] = defaultdict(list)
    for key in contained():
        package = packages[key]
        own = list(texts(Path(package["manifest_path"]).parent))
        if not own:
            raise SystemExit(
                f"{package['name']} {package['version']} has no licence file: add its text by hand"
            )
        for text in own:
            owners[text].append(f"{package['name']} {package['version']} ({package['license']})")
    for part, text in standard_library():
        owners[text].append(f"Rust's standard library: {part}")
    parts = ["\n".join(names) + "\n\n" + text for text, names in owners.items()]
    return f"\n\n{'=' * 80}\n\n".join([_HEAD.strip(), *parts]) + "\n"


if __name__ == "__main__":
    PLACE.write_text(document(), encoding="utf-8")
