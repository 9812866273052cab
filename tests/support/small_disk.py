"""A small file system, to be filled by tests."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["mounted_disk"]


@contextmanager
def mounted_disk(path: Path, size: int) -> Iterator[Path]:
    """Mount a file system of `size` bytes, kept in memory, in a directory until the end of the block."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the tests may not mount a file system")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)
