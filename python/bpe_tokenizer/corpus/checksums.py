"""SHA-256 of files and values."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bpe_tokenizer.errors import CorpusError

__all__ = ["checksum", "digest", "is_intact"]

_CHUNK = 1 << 20


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
