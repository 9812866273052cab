"""Atomic writes: a crash leaves the old file or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

__all__ = ["unfinished", "write_atomically"]


def write_atomically(files: Mapping[Path, bytes]) -> None:
    """Write files of one directory, each completely or not at all.

    All files are written to temporary files next to them and flushed to the disk before the first is moved.
    So after a crash between two moves, the remaining new files exist completely, and `unfinished` finds them.

    Args:
        files: The content of each file, in the order of the moves.

    Raises:
        OSError: A file cannot be written. The files before it may be replaced, all others are unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_atomically({Path(directory) / "a": b"1", Path(directory) / "b": b"2"})
    ...     sorted(path.name for path in Path(directory).iterdir())
    ['a', 'b']
    """
    written: list[Path] = []
    try:
        for path, data in files.items():
            written.append(_temporary(path))
            _write(written[-1], data)
            if path.exists():
                shutil.copymode(path, written[-1])
        _flush_directories(files)
    except BaseException:
        for temporary in written:
            temporary.unlink(missing_ok=True)
        raise
    for temporary, path in zip(written, files, strict=True):
        temporary.replace(path)
    _flush_directories(files)


def unfinished(path: Path) -> list[Path]:
    """Return the temporary files that a crash left for this path; they may be incomplete.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     unfinished(Path(directory) / "tokenizer_config.json")
    []
    """
    prefix = f".{path.name}."
    with contextlib.suppress(OSError):
        return sorted(
            other
            for other in path.parent.iterdir()
            if other.name.startswith(prefix) and other.suffix == ".tmp"
        )
    return []


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")


def _write(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_directories(files: Mapping[Path, bytes]) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows cannot flush directories
    for directory in {path.parent for path in files}:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
