"""Writing files so that a crash leaves the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

__all__ = ["unfinished", "write_atomically"]


def write_atomically(files: Mapping[Path, bytes]) -> None:
    """Write files of one directory, each as a whole.

    All of them are written beside their places and flushed to the disk before the first is moved to its
    place. So whatever a crash leaves between two moves, the rest of the new files is there too, complete,
    and `unfinished` finds it.

    Args:
        files: What each file is to hold, in the order in which they are moved.

    Raises:
        OSError: A file cannot be written; none was changed, or those before it were replaced as a whole.

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
    """Return the files that a crash kept from being moved to this place; the crash may have cut them off.

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
        return  # Windows has no such thing
    for directory in {path.parent for path in files}:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
