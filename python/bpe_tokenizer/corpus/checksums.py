"""SHA-256 of files, also while they are written."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from pathlib import Path
from typing import Any, BinaryIO

from bpe_tokenizer.errors import CorpusError

__all__ = ["HashingFile", "checksum", "digest", "is_intact"]

_CHUNK = 1 << 20
# The bytes after which the system begins to write them to the disk.
_WRITE_BACK = 16 << 20


class HashingFile(io.RawIOBase):
    """A file that is hashed while it is written.

    A file whose beginning is written again at the end, such as a header with a count, is read once more for
    its hash: SHA-256 needs the bytes in order.

    Args:
        file: The file, empty.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     hashing = HashingFile(file)
    ...     _ = hashing.write(b"text")
    ...     hashing.checksum()[:8]
    '982d9e3e'
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest: Any = hashlib.sha256()
        self._position = self._end = self._written_back = 0
        self._is_sequential = True

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes, or an array in sequence."""
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        self._file.write(view)
        if self._position == self._end:
            self._digest.update(view)
            self._end += len(view)
        else:
            self._is_sequential = False
            self._end = max(self._end, self._position + len(view))
        self._position += len(view)
        if self._position - self._written_back >= _WRITE_BACK:
            self._start_write_back()
            self._written_back = self._position
        return len(view)

    def _start_write_back(self) -> None:
        """Let the system begin to write to the disk, so that flushing the file later takes less time.

        Linux does so for bytes that are not needed soon. It also forgets those that are on the disk already.
        """
        if hasattr(os, "posix_fadvise"):
            size = self._position - self._written_back
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._file.fileno(), self._written_back, size, os.POSIX_FADV_DONTNEED)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position."""
        self._position = self._file.seek(offset, whence)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def flush(self) -> None:
        """Write what is buffered."""
        if not self._file.closed:
            self._file.flush()

    def checksum(self, path: Path | None = None) -> str:
        """Return the SHA-256 of the file.

        Args:
            path: The file's name, which a file that was not written in sequence is read by.
        """
        if self._is_sequential or path is None:
            return str(self._digest.hexdigest())
        self.flush()
        return checksum(path)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def digest(value: object) -> str:
    """Return the SHA-256 of a value of numbers, strings, lists and dicts.

    >>> digest(["low", 1])[:8]
    'fa52537f'
    """
    return hashlib.sha256(repr(value).encode("utf-8", errors="surrogatepass")).hexdigest()


def is_intact(path: Path, size: int, sha256: str, listed: int, verify: bool) -> bool:
    """Return whether a file is as it was listed.

    A file of the right size that was last changed before it was listed is not read. The hash decides about a
    file with a later time, such as a copy.

    Args:
        path: The file.
        size: Its size in bytes.
        sha256: Its hash.
        listed: When it was listed, in nanoseconds.
        verify: Read every file, and compare its hash.

    Raises:
        CorpusError: The file cannot be read.
    """
    try:
        status = path.stat()
        if status.st_size != size:
            return False
        # Two changes within a tick of the file system's clock have the same time.
        return (not verify and status.st_mtime_ns < listed) or checksum(path) == sha256
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from error
