"""Atomic writes: a crash leaves the old file or the new one, never a part.

Every file of the package is written to a temporary file next to it, flushed to the disk, and moved into
place. Its writer keeps the temporary file locked, so a later save into the same place recognises the files of
killed saves, and removes them; a file system without locks keeps them. A new file has the permissions of the
umask, a replaced one keeps its own. A symbolic link is replaced, not followed. A pipe or a device is written
directly. A file for a store (`corpus/remote_path.py`) is written to the directory of temporary files of this
machine, and copied.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from bpe_tokenizer.errors import OptionError, WriteError, shorten
from bpe_tokenizer.locks import RUN_LOCK, SAVE_LOCK, save_lock

if sys.platform != "win32":
    import fcntl

__all__ = [
    "AtomicFile",
    "check_writable",
    "flush_directory",
    "is_temporary",
    "make_directory",
    "refuse_url",
    "remove_abandoned",
    "temporary_place",
    "unfinished",
    "url_of",
    "write_atomically",
    "write_errors",
]

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp", re.DOTALL)
# A temporary name has 22 characters more than the name itself, and a file system allows 255 bytes.
_MAX_NAME_BYTES = 200
# A URL, what `Path` makes of it ("s3:/bucket"), and the parent of that. A drive of Windows has one letter.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?:[/\\]+(.*)|$)", re.DOTALL)


def write_atomically(files: Mapping[Path, bytes]) -> None:
    """Write files of one directory, each completely or not at all.

    All files are written to temporary files next to them and flushed to the disk before the first is moved.
    So after a crash between two moves, the remaining new files exist completely, and `unfinished` finds them.
    Only one process at a time moves several files into a directory.

    Args:
        files: The content of each file, in the order of the moves.

    Raises:
        WriteError: A file cannot be written, and no file is changed; or it cannot be moved into place, and
            the files after it are unchanged.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_atomically({Path(directory) / "a": b"1", Path(directory) / "b": b"2"})
    ...     sorted(path.name for path in Path(directory).iterdir())
    ['a', 'b']
    """
    directory = next(iter(files)).parent
    with contextlib.ExitStack() as stack:
        if len(files) > 1:
            stack.enter_context(save_lock(directory))
        pending: list[AtomicFile] = []
        try:
            for path, data in files.items():
                pending.append(AtomicFile(path))
                stack.callback(pending[-1].close)
                pending[-1].write(data)
                pending[-1].finish()
            flush_directory(directory)
            pending[0].replace()
        except BaseException:
            if pending and os.path.lexists(pending[0].temporary):
                for file in pending:
                    file.abandon()
            raise
        for file in pending[1:]:
            file.replace()
        flush_directory(directory)
        for path in files:
            remove_abandoned(path)


class AtomicFile:
    """A file that is written to a temporary file next to it, until it is complete and moved into place.

    As a context manager it moves the file into place at the end, and an error leaves nothing of it.

    Args:
        path: The file.

    Raises:
        OptionError: The path is a URL.
        WriteError: The temporary file cannot be created, or the path is a directory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     with AtomicFile(Path(directory, "a")) as file:
    ...         file.write(b"text")
    ...     file.path.read_bytes()
    b'text'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_complete = False
        refuse_url(path)
        with write_errors(path):
            mode = _mode(path) if isinstance(path, Path) else stat.S_IFREG | 0o600
            self.is_direct = mode is not None and not stat.S_ISREG(mode)
            place = temporary_place(path)
            self.temporary, self.stream = (path, path.open("wb")) if self.is_direct else _create(place)
            if mode is not None and not self.is_direct:
                with contextlib.suppress(OSError):  # a file system without permissions
                    self.temporary.chmod(stat.S_IMODE(mode))

    def __del__(self) -> None:
        """Leave nothing of an incomplete file that nobody holds: a Ctrl-C may come before its `with`."""
        if hasattr(self, "stream") and not self.is_complete:
            self.abandon()

    def __enter__(self) -> AtomicFile:
        """Return the file."""
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Move the file into place, or remove it after an error."""
        try:
            if kind is None:
                self.finish()
                self.replace()
                flush_directory(self.path.parent)
        finally:
            self.abandon()

    def write(self, data: bytes) -> None:
        """Add data.

        Raises:
            WriteError: It cannot be written.
        """
        with write_errors(self.path):
            self.stream.write(data)

    def finish(self) -> None:
        """Flush the file to the disk.

        Raises:
            WriteError: It cannot be written.
        """
        with write_errors(self.path):
            self.stream.flush()
            if not self.is_direct:
                os.fsync(self.stream.fileno())
        self.is_complete = True

    def replace(self) -> None:
        """Move the file into place.

        Raises:
            WriteError: It cannot be moved.
        """
        if not self.is_direct:
            with write_errors(self.path):
                if sys.platform == "win32":
                    self.close()  # which does not rename open files
                if isinstance(self.path, Path):
                    self.temporary.replace(self.path)
                else:
                    self.path.put(self.temporary)
                    self.abandon()

    def create(self) -> None:
        """Close the file, and move it into place, which must be free; a store cannot tell.

        Raises:
            WriteError: There is one, or this one cannot be moved.
        """
        if not isinstance(self.path, Path):
            self.replace()
            return
        self.close()
        with write_errors(self.path):
            try:
                os.link(self.temporary, self.path)
            except FileExistsError:
                raise
            except OSError:
                # The file system has no hard links.
                if os.path.lexists(self.path):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
                self.temporary.rename(self.path)
            else:
                self.temporary.unlink()

    def close(self) -> None:
        """Close the file, whatever has become of it."""
        with contextlib.suppress(OSError, ValueError):
            self.stream.close()

    def abandon(self) -> None:
        """Close the file, and remove it unless it is in place."""
        self.close()
        if not self.is_direct:
            with contextlib.suppress(OSError):
                self.temporary.unlink()


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn errors of the operating system into a `WriteError` that names the path.

    Args:
        path: What is written.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of a pipe has enough; nothing is wrong
    except OSError as error:
        raise WriteError.of(path, error) from error
    except ValueError as error:
        # A path with a zero byte or a lone surrogate.
        if not isinstance(error, UnicodeEncodeError) and "\0" not in str(path):
            raise
        raise WriteError.of(repr(str(path))[1:-1], error) from error


def make_directory(path: Path) -> None:
    """Create a directory and its parents, unless it exists.

    Raises:
        OptionError: The path is a URL.
        WriteError: It cannot be created.
    """
    refuse_url(path)
    with write_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def check_writable(path: Path, *, is_directory: bool = False) -> None:
    """Check that a path can be written, before the long work whose result it gets.

    Args:
        path: A file; or a directory, which is created with its parents.
        is_directory: Whether it is a directory.

    Raises:
        OptionError: The path is a URL.
        WriteError: It cannot be written.

    >>> check_writable(Path("s3://bucket/corpus"), is_directory=True)
    Traceback (most recent call last):
    bpe_tokenizer.errors.OptionError: 's3://bucket/corpus' is a URL, and results are written to local ...
    """
    refuse_url(path)
    if not isinstance(path, Path):
        return  # a store tells when it is written
    with write_errors(path):
        place = path.parent
        if is_directory:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                path.lstat()  # a name may be too long
            place = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
        elif _mode(path) is not None and not path.is_file():
            return  # a pipe or a device
        if not stat.S_ISDIR(place.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, f"{shorten(place.name, 50)} is not a directory")
        if not os.access(place, os.W_OK | os.X_OK):
            is_read_only = hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY
            reason = errno.EROFS if is_read_only else errno.EACCES
            raise OSError(reason, os.strerror(reason))


def refuse_url(path: Path) -> None:
    """Refuse to write to a URL, which the file system takes for the directory `s3:`.

    Raises:
        OptionError: It is one.
    """
    url = url_of(path)
    if url is not None and isinstance(path, Path):
        raise OptionError(
            f"{shorten(url)} is a URL, and results are written to local files only: write to a path of this "
            "machine, and copy the result"
        )


def url_of(path: Path) -> str | None:
    """Return the URL that a path was made of; None for another path.

    >>> url_of(Path("s3://bucket/corpus")), url_of(Path("corpus"))
    ('s3://bucket/corpus', None)
    """
    found = _URL.match(os.fspath(path))
    return f"{found[1]}://{(found[2] or '').replace(os.sep, '/')}" if found is not None else None


def temporary_place(path: Path) -> Path:
    """Return the path next to which temporary files are: for one in a store, on this machine."""
    return path if isinstance(path, Path) else Path(tempfile.gettempdir(), "bpe_tokenizer-upload")


def unfinished(path: Path) -> list[Path]:
    """Return the temporary files of this path: those of live writers, and those that a crash left.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     unfinished(Path(directory) / "tokenizer_config.json")
    []
    """
    prefix = _prefix(path)
    with contextlib.suppress(OSError):
        return sorted(
            other
            for other in path.parent.iterdir()
            if other.name.startswith(prefix) and re.fullmatch(r"[0-9a-f]+\.tmp", other.name[len(prefix) :])
        )
    return []


def remove_abandoned(path: Path) -> None:
    """Remove the temporary files of a file, or of all files of a directory, whose writers were killed."""
    path = temporary_place(path)
    found = list(path.iterdir()) if path.is_dir() else unfinished(path)
    for temporary in found:
        if _TEMPORARY.fullmatch(temporary.name):
            _remove_unlocked(temporary)


def _remove_unlocked(path: Path) -> None:
    """Remove a temporary file unless its writer lives, or may live where files cannot be locked."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        if sys.platform != "win32":  # which does not remove open files
            file = stack.enter_context(path.open("rb+"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


def is_temporary(path: Path) -> bool:
    """Return whether a file has a name of this package's temporary files and locks.

    >>> is_temporary(Path(".vocab.json.0123456789abcdef.tmp")), is_temporary(Path("vocab.json"))
    (True, False)
    """
    return (
        path.name.removesuffix(".soft") in (RUN_LOCK, SAVE_LOCK)
        or _TEMPORARY.fullmatch(path.name) is not None
    )


def flush_directory(directory: Path) -> None:
    """Flush the names of a directory's files to the disk.

    Raises:
        WriteError: They cannot be written.
    """
    if not hasattr(os, "O_DIRECTORY") or not isinstance(directory, Path):
        return  # Windows cannot flush directories, and stores need not
    with write_errors(directory), contextlib.suppress(PermissionError):
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot
                raise
        finally:
            os.close(descriptor)


def _prefix(path: Path) -> str:
    name = path.name
    data = os.fsencode(name)
    return f".{hashlib.sha256(data).hexdigest()[:32] if len(data) > _MAX_NAME_BYTES else name}."


def _mode(path: Path) -> int | None:
    """The type and the permissions of the file at a path or at the end of its links; None for none.

    Raises:
        OSError: It is a directory.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return mode


def _create(path: Path) -> tuple[Path, BinaryIO]:
    """Create and lock a temporary file; a Ctrl-C meanwhile leaves none."""
    while True:
        temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(8)}.tmp")
        try:
            stream = temporary.open("xb")
            if sys.platform != "win32":
                with contextlib.suppress(OSError):
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(stream.fileno()).st_nlink:
                return temporary, stream
            stream.close()  # another process removed the file before it was locked
        except FileExistsError:
            raise  # the file, or a prepared link, is another's
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
