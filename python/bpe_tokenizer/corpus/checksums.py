"""SHA-256 of values and of files, and the errors of reading those that a run has written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bpe_tokenizer.errors import CorpusError

__all__ = ["checksum", "digest", "is_intact", "read_errors", "size_of"]


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading a file into a `CorpusError` that names it."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise CorpusError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def size_of(path: Path) -> int:
    """Return the size of a file in bytes. Errors: `read_errors`."""
    with read_errors(path):
        return path.stat().st_size


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    with read_errors(path), suppress(FileNotFoundError):
        status = path.stat()
        # Two changes within a tick of the file system's clock have the same time.
        is_older = not verify and status.st_mtime_ns < listed
        return status.st_size == size and (is_older or checksum(path) == sha256)
    return False
