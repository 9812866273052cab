"""Locks between processes: one run in a directory at a time, and which temporary files have a live owner.

The kernel keeps the lock of a file (`flock`) as long as its owner lives, also while it is stopped, and
releases it when the owner ends, also by `kill -9`. Where a file system has no such locks, the record in the
lock file decides: its process still runs, has ended, or belongs to another machine and cannot be checked.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import WriteError, shorten

if sys.platform != "win32":
    import fcntl  # now: without memory, loading it later is an ImportError

__all__ = [
    "RUN_LOCK",
    "SAVE_LOCK",
    "DirectoryLock",
    "forget",
    "is_at",
    "keep_from_forks",
    "remove_unlocked",
    "save_lock",
    "try_lock",
]

RUN_LOCK = ".bpe_tokenizer.run.lock"
SAVE_LOCK = ".bpe_tokenizer.save.lock"

# How long a save waits for another one in the same directory, and how often it looks.
_SAVE_SECONDS = 10.0
_LOOK_SECONDS = 0.05
# Where files cannot be locked, the lock of a save is this old at most.
_MAX_SAVE_SECONDS = 60.0
# Where files cannot be locked, an old temporary file is one that a killed process left.
_OLD_SECONDS = 24 * 3600
_MAX_RECORD = 4096
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.EBADF)
# msvcrt locks bytes, and nobody may read a locked one: this one is after every record.
_WINDOWS_BYTE = 1 << 30

# Descriptors of locked files. A forked child shares their locks and their positions.
_descriptors: set[int] = set()


def _leave_in_child() -> None:
    """Replace the descriptors of a forked child, which must neither keep a lock nor write a file."""
    if _descriptors:
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in _descriptors:
            os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)
        _descriptors.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_in_child)


def keep_from_forks(descriptor: int) -> None:
    """Make an open file the null device in forked children, until `forget` is called."""
    _descriptors.add(descriptor)


def forget(descriptor: int) -> None:
    """Undo `keep_from_forks`; call it before the file is closed, as its number may be used again."""
    _descriptors.discard(descriptor)


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file without waiting; closing it releases the lock.

    Returns:
        Whether it is locked now; False if another owner has the lock, None if the file system has no locks.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _WINDOWS_BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        if error.errno in (errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def remove_unlocked(path: Path) -> None:
    """Remove a temporary file unless its owner lives, or may live where files cannot be locked."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
        try:
            locked = try_lock(descriptor)
            is_dead = locked or (
                locked is None and time.time() - os.fstat(descriptor).st_mtime > _OLD_SECONDS
            )
            if is_dead and sys.platform != "win32":
                path.unlink()
        finally:
            os.close(descriptor)
        if is_dead and sys.platform == "win32":
            path.unlink()


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
        self._path = directory / name
        self._record = _own_record()
        self._descriptor = -1
        deadline = time.monotonic() + wait
        try:
            while not self._acquire():
                if time.monotonic() >= deadline:
                    raise _in_use(self._path, _read_record(self._path))
                time.sleep(_LOOK_SECONDS)
            self._remove_leftovers()
        except WriteError:
            raise
        except OSError as error:
            self.release()
            raise WriteError.of(self._path if os.path.lexists(self._path) else directory, error) from error
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> DirectoryLock:
        """Return the lock."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self.release()

    def check(self) -> None:
        """Check that the lock is still this one's.

        It is not after a fork, and after someone removed the lock file or took the lock over on a file
        system without locks.

        Raises:
            WriteError: The lock is lost.
        """
        if not self._is_own():
            record = _read_record(self._path)
            raise WriteError(
                f"{self._path.parent}: this run has lost its lock"
                + (f" to {_owner(record)}" if record else "")
                + "; it writes nothing more. Start it again to resume",
                errno.EBUSY,
                self._path.parent,
            )

    def release(self) -> None:
        """Remove the lock file and release the lock."""
        if self._descriptor < 0:
            return
        is_own, descriptor, self._descriptor = self._is_own(), self._descriptor, -1
        with contextlib.suppress(OSError):
            # Windows removes closed files only.
            if is_own and sys.platform != "win32":
                self._path.unlink()
        forget(descriptor)
        os.close(descriptor)
        with contextlib.suppress(OSError):
            if is_own and sys.platform == "win32":
                self._path.unlink()

    def _acquire(self) -> bool:
        while True:
            try:
                descriptor, is_own_file = self._open()
            except FileNotFoundError:
                if self._create():
                    return True
                continue
            locked = try_lock(descriptor)
            if locked and is_own_file and is_at(descriptor, self._path):
                self._keep(descriptor)
                os.ftruncate(descriptor, 0)
                os.write(descriptor, self._data())
                return True
            if locked and not is_own_file and is_at(descriptor, self._path):
                self._path.unlink()
            os.close(descriptor)
            if locked is False or (locked is None and not self._remove_dead()):
                return False
            # The file is gone, or its owner removed it between our opening and locking it.

    def _open(self) -> tuple[int, bool]:
        """Open the lock file; False if it is the file of another user, whose lock can only be tried."""
        try:
            return os.open(self._path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)), True
        except PermissionError:
            return os.open(self._path, os.O_RDONLY), False

    def _create(self) -> bool:
        """Create the lock file with its record and locked, in one step; False if it exists by now."""
        if sys.platform == "win32":
            return self._create_in_place()
        temporary = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}.tmp")
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        self._keep(descriptor)
        try:
            os.write(descriptor, self._data())
            locked = try_lock(descriptor)
            if locked is False:  # another process is removing it as a leftover
                self._drop()
                return False
            try:
                os.link(temporary, self._path)
            except (FileExistsError, FileNotFoundError):
                self._drop()
                return False
            except OSError:
                # The file system has no hard links. Renaming replaces a file that was created just now.
                if os.path.lexists(self._path):
                    self._drop()
                    return False
                temporary.rename(self._path)
            if locked is None and self._path.name == RUN_LOCK:
                warnings.warn(
                    f"{self._path.parent}: its file system has no file locks; start no second run there from "
                    "another machine",
                    stacklevel=2,
                )
        except BaseException:
            self.release()
            raise
        finally:
            temporary.unlink(missing_ok=True)
        return True

    def _create_in_place(self) -> bool:
        """Create the lock file on Windows, which does not move open files."""
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        except FileExistsError:
            return False
        self._keep(descriptor)
        os.write(descriptor, self._data())
        return try_lock(descriptor) is not False

    def _remove_dead(self) -> bool:
        """Remove the lock file if its record shows that its owner has ended, where there are no locks."""
        record = _read_record(self._path)
        # A save is short, and readers notice the files of two saves. So its lock does not outlive it long.
        is_old = self._path.name == SAVE_LOCK and _age(self._path) > _MAX_SAVE_SECONDS
        if _is_alive(record) is not False and not is_old:
            return not self._path.exists()
        # Two processes may both find a dead owner. Only one of them moves this record away.
        aside = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}.tmp")
        try:
            self._path.rename(aside)
        except FileNotFoundError:
            return True
        if _read_record(aside) != record:
            # The record of a new owner: put it back, unless there is another one by now.
            with contextlib.suppress(OSError):
                os.link(aside, self._path)
        aside.unlink()
        return True

    def _remove_leftovers(self) -> None:
        """Remove the temporary files of processes that were killed while they created this lock."""
        with contextlib.suppress(OSError):
            for path in self._path.parent.iterdir():
                if path.name.startswith(f"{self._path.name}.") and path.suffix == ".tmp":
                    if is_at(self._descriptor, path):
                        path.unlink()  # another name of the lock file that was taken over
                    else:
                        remove_unlocked(path)

    def _data(self) -> bytes:
        return json.dumps(self._record).encode()

    def _keep(self, descriptor: int) -> None:
        self._descriptor = descriptor
        keep_from_forks(descriptor)

    def _drop(self) -> None:
        forget(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1

    def _is_own(self) -> bool:
        return (
            self._descriptor >= 0
            and self._record["pid"] == os.getpid()
            and is_at(self._descriptor, self._path)
        )


def save_lock(directory: Path) -> DirectoryLock:
    """Return the lock of a save, which moves several files into a directory; waits for another save.

    Raises:
        WriteError: Another process holds the lock for many seconds, or the lock file cannot be written.
    """
    return DirectoryLock(directory, SAVE_LOCK, _SAVE_SECONDS)


def is_at(descriptor: int, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False


def _own_record() -> dict[str, Any]:
    return {
        "host": _host(),
        "pid": os.getpid(),
        "began": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "system": _system(),
        "ticks": _start_ticks(os.getpid()),
    }


def _host() -> str:
    return os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")


def _system() -> str | None:
    """Name the running kernel and its set of process ids; None if that cannot be known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _start_ticks(pid: int) -> int | None:
    """The start time of a process, which tells processes with the same id apart; None if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def _read_record(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            record = json.loads(file.read(_MAX_RECORD))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and type(record.get("pid")) is int else None


def _is_alive(record: Mapping[str, Any] | None) -> bool | None:
    """Whether the owner of a record still runs; None if that cannot be known."""
    if record is None or _system() is None or record.get("system") != _system():
        return None
    return _start_ticks(record["pid"]) == record.get("ticks")


def _owner(record: Mapping[str, Any]) -> str:
    return (
        f"process {record['pid']} on {shorten(record.get('host'), 40)}, since {str(record.get('began'))[:30]}"
    )


def _in_use(path: Path, record: Mapping[str, Any] | None) -> WriteError:
    owner = "another process" if record is None else _owner(record)
    advice = "wait for it, end it, or write to another directory"
    if record is not None and _is_alive(record) is None:
        advice += f"; if it has ended, remove {path.name} there"
    return WriteError(f"{path.parent} is in use by {owner}: {advice}", errno.EBUSY, path.parent)
