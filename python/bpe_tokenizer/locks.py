"""Locks between processes: one run, or one save of several files, in a directory at a time.

`filelock` locks a file in the directory. The kernel keeps the lock as long as its owner lives, also while it
is stopped, and releases it when the owner ends, also by `kill -9`. Where a file system has no such locks, the
existence of another file, whose name ends with `.soft`, is the lock.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bpe_tokenizer.errors import WriteError, shorten
from bpe_tokenizer.libraries import import_library

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["RUN_LOCK", "SAVE_LOCK", "DirectoryLock", "save_lock"]

RUN_LOCK = ".bpe_tokenizer.run.lock"
SAVE_LOCK = ".bpe_tokenizer.save.lock"

# How long a save waits for another one in the same directory.
_SAVE_SECONDS = 10.0
_MAX_RECORD = 4096
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


class DirectoryLock:
    """The lock of a directory: a locked file in it with a record of its owner.

    Args:
        directory: The directory.
        name: The name of the file, `RUN_LOCK` or `SAVE_LOCK`.
        wait: Seconds to wait for another owner.

    Raises:
        WriteError: Another owner has the lock, which the error names, or the lock file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory, DirectoryLock(Path(directory), RUN_LOCK):
    ...     DirectoryLock(Path(directory), RUN_LOCK)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bpe_tokenizer.errors.WriteError: ... is in use by process ...
    """

    def __init__(self, directory: Path, name: str, wait: float = 0.0) -> None:
        path = directory / name
        try:
            self._lock = _acquire(path, wait)
            self._path = Path(self._lock.lock_file)
            self._pid, self._file = os.getpid(), self._path.lstat()
        except TimeoutError:
            advice = "wait for it, end it, or write to another directory"
            if os.path.lexists(_soft(path)):
                advice += f"; if it has ended, remove {_soft(path).name} there"
            raise WriteError(
                f"{directory} is in use by {_owner(path)}: {advice}", errno.EBUSY, directory
            ) from None
        except OSError as error:
            raise WriteError.of(path if os.path.lexists(path) else directory, error) from error

    def __enter__(self) -> DirectoryLock:
        """Return the lock."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self.release()

    def check(self) -> None:
        """Check that the lock is still this one's. It is not in a forked child, or without the lock file.

        Raises:
            WriteError: The lock is lost.
        """
        if not self._is_own():
            taker = f" to {_owner(self._path)}" if os.path.lexists(self._path) else ""
            raise WriteError(
                f"{self._path.parent}: this run has lost its lock{taker}; it writes nothing more. Start it "
                "again to resume",
                errno.EBUSY,
                self._path.parent,
            )

    def release(self) -> None:
        """Remove the lock file and release the lock."""
        if self._is_own() and os.name != "nt":  # Windows removes no open file, and `filelock` does it there
            with contextlib.suppress(OSError):
                self._path.unlink()
        self._lock.release()

    def _is_own(self) -> bool:
        with contextlib.suppress(OSError):
            return (
                self._lock.is_locked
                and self._pid == os.getpid()
                and os.path.samestat(self._file, self._path.lstat())
            )
        return False


def save_lock(directory: Path) -> DirectoryLock:
    """Return the lock of a save, which moves several files into a directory; waits for another save.

    Raises:
        WriteError: Another process holds the lock for many seconds, or the lock file cannot be written.
    """
    return DirectoryLock(directory, SAVE_LOCK, _SAVE_SECONDS)


def _soft(path: Path) -> Path:
    return path.with_name(f"{path.name}.soft")


def _acquire(path: Path, wait: float) -> BaseFileLock:
    import_library("filelock", extra="")  # only what writes needs it
    from filelock import FileLock, SoftFileLock

    # A run may release the lock in another thread than the one that acquired it, and another user may be the
    # next to acquire it.
    lock = FileLock(path, wait, 0o666, thread_local=False, on_acquired=_write_record)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        with contextlib.suppress(OSError):
            path.unlink()  # which nobody can have locked
        lock = SoftFileLock(_soft(path), wait, thread_local=False)
        lock.acquire()
    return lock


def _write_record(descriptor: int) -> None:
    host = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    with contextlib.suppress(OSError):  # a full disk, on which the lock holds too
        os.ftruncate(descriptor, 0)
        os.write(descriptor, json.dumps({"host": host, "pid": os.getpid(), "began": began}).encode())


def _owner(path: Path) -> str:
    """Name the owner of a lock, as far as its record can be read."""
    try:
        with path.open("rb") as file:
            record = json.loads(file.read(_MAX_RECORD))
        pid, host, began = record["pid"], shorten(record["host"], 40), str(record["began"])[:30]
        return f"process {int(pid)} on {host}, since {began}"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "another process"
