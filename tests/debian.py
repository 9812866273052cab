"""Runs a command in a root of Debian sid, which has what this machine lacks: new Pythons, the sources of std.

`python tests/debian.py NAME PACKAGES COMMAND...` makes the root `build/debian/NAME` when it is not there.
It needs Linux, root rights and `debootstrap`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOTS = ROOT / "build" / "debian"
MIRROR = "http://deb.debian.org/debian"
# Runs a command in the root $1, with the directories $3 of this system. The mounts end with the command.
ENTER = """set -e; root=$1; here=$2; shared=$3; shift 3
for path in /proc /dev $shared; do mkdir -p "$root$path"; mount --rbind "$path" "$root$path"; done
mount --bind /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
exec chroot "$root" env -C "$here" "$@"
"""


class UnavailableError(Exception):
    """The root is not to be had here."""


def enter(
    name: str, packages: Sequence[str], *, suite: str = "sid", architecture: str | None = None
) -> list[str]:
    """Return the words before a command that run it in a root, which the first call makes.

    A root of another architecture needs QEMU (Debian's qemu-user-static), registered with the kernel.
    """
    tools = [tool for tool in ("debootstrap", "unshare", "chroot") if not shutil.which(tool)]
    if tools or os.geteuid():
        raise UnavailableError(f"not here, and a root of Debian needs {' and '.join(tools) or 'root rights'}")
    if architecture and not list(Path("/proc/sys/fs/binfmt_misc").glob("qemu-*")):
        raise UnavailableError(f"the kernel does not run programs for {architecture} with QEMU")
    root = ROOTS / name
    if not (root / "made").exists():
        shutil.rmtree(root, ignore_errors=True)
        include = ",".join(["ca-certificates", "gcc", "libc6-dev", *packages])
        command = ["debootstrap", "--variant=minbase", f"--include={include}", suite, str(root), MIRROR]
        command[1:1] = [f"--arch={architecture}"] if architecture else []
        ROOTS.mkdir(parents=True, exist_ok=True)
        with (ROOTS / f"{name}.log").open("w") as log:
            # If the mirror stops answering, the tests are skipped and do not fail.
            if subprocess.run(["timeout", "1200", *command], stdout=log, stderr=log).returncode:
                raise UnavailableError(f"debootstrap failed, see {log.name}")
        (root / "made").touch()
    homes = [os.environ.get(f"{tool.upper()}_HOME", Path.home() / f".{tool}") for tool in ("cargo", "rustup")]
    shared = [ROOT, *homes, os.environ.get("BPE_TOKENIZER_FIXTURES")]
    paths = " ".join(str(path) for path in shared if path and Path(path).exists())
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh"]
    return [*words, str(root), str(ROOT), paths]


def main(name: str, packages: str, *command: str) -> int:
    """Run a command in a root."""
    try:
        return subprocess.run([*enter(name, packages.split()), *command]).returncode
    except UnavailableError as error:
        print(f"skipped: {error}")
        return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
