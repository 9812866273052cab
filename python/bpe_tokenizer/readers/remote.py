"""Files at URLs, with `fsspec`."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple, cast

from bpe_tokenizer.errors import CorpusError, CorpusFileNotFoundError, MissingDependencyError, TokenizerError
from bpe_tokenizer.libraries import import_library

__all__ = [
    "RemoteFile",
    "described",
    "file_system",
    "find_remote",
    "is_url",
    "local_path",
    "open_remote",
]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://\S+", re.ASCII)
_MAX_URL = 4096
# The protocols whose URLs are known for what they are without fsspec. Others need fsspec to know them.
_PROTOCOLS = frozenset(
    (
        *("abfs", "abfss", "adl", "az", "file", "ftp", "gcs", "gs", "hdfs", "hf", "http", "https", "local"),
        *("memory", "oss", "r2", "s3", "s3a", "sftp", "ssh", "wasb", "webhdfs"),
    )
)
_LOCAL = ("file", "local")
# Fields of fsspec's `info` with the time of the last change, or with what else changes with a file.
_CHANGES = ("mtime", "LastModified", "last_modified", "modified", "updated", "ETag", "etag", "created")
_MAX_SHOWN = 120


class RemoteFile(NamedTuple):
    """A file behind a URL.

    Args:
        url: The URL.
        size: The stored size in bytes; 0 if it is not known.
        modified: A number that changes with the file; 0 if there is none.
    """

    url: str
    size: int
    modified: int


def is_url(text: str) -> bool:
    """Return whether a text is a URL of a protocol that fsspec knows.

    >>> [is_url(text) for text in ("s3://bucket/a.jsonl", "C:/a.txt", "note: http://x y", "x://y")]
    [True, False, False, False]
    """
    if len(text) > _MAX_URL or (found := _URL.fullmatch(text)) is None:
        return False
    protocol = found[1].lower()
    if protocol in _PROTOCOLS:
        return True
    try:
        known = import_library("fsspec.registry", "remote").known_implementations
    except MissingDependencyError:
        return False
    return protocol in known


def local_path(url: str) -> str | None:
    """Return the path of a URL of this machine's files; None for another.

    >>> local_path("file:///data/a.txt"), local_path("s3://bucket/a.txt")
    ('/data/a.txt', None)
    """
    protocol, _, path = url.partition("://")
    if protocol.lower() not in _LOCAL:
        return None
    return path.removeprefix("localhost") if path.startswith("localhost/") else path


def find_remote(url: str) -> list[RemoteFile]:
    """Return the files that a URL names: a file, all files below a directory, or those that match a pattern.

    Hidden files and directories, whose names start with a dot, are left out.

    Raises:
        CorpusError: There is no such file, or the file system refuses.
        MissingDependencyError: `fsspec`, or the library of the protocol, is not installed.
    """
    system, path = file_system(url)
    with _errors(url):
        # In a URL of the web, "?" starts a query.
        if not url.lower().startswith("http") and any(each in path for each in "*?["):
            matching: dict[str, Any] = system.glob(path, detail=True)
            found = {name: info for name, info in matching.items() if info["type"] == "file"}
            if not found:
                raise CorpusFileNotFoundError(f"no file matches {url[:_MAX_SHOWN]}")
        else:
            info = system.info(path)
            found = {path: info}
            if info["type"] == "directory":
                root = path.rstrip("/")
                below: dict[str, Any] = system.find(path, detail=True)
                found = {
                    name: each for name, each in below.items() if not _is_hidden(name.removeprefix(root))
                }
                if not found:
                    raise CorpusError(f"the directory {url[:_MAX_SHOWN]} has no files")
        return [described(system, name, found[name]) for name in sorted(found)]


def open_remote(url: str) -> BinaryIO:
    """Open the file of a URL.

    Raises:
        CorpusError: It cannot be opened.
        MissingDependencyError: `fsspec`, or the library of the protocol, is not installed.
    """
    system, path = file_system(url)
    with _errors(url):
        return cast("BinaryIO", system.open(path, "rb"))


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises:
        CorpusError: The file system refuses.
        MissingDependencyError: `fsspec`, or the library of the protocol, is not installed.
    """
    fsspec = import_library("fsspec", "remote")
    try:
        with _errors(url):
            system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        if isinstance(error, MissingDependencyError):
            raise
        # fsspec's message names the library: "Install s3fs to access S3".
        raise MissingDependencyError(f"{url[:_MAX_SHOWN]} needs another library: {error}") from None
    return system, path


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def described(system: Any, path: str, info: Any) -> RemoteFile:
    """Return a file of a file system, from what its `info` says."""
    change = next((info[name] for name in _CHANGES if info.get(name) is not None), 0)
    return RemoteFile(str(system.unstrip_protocol(path)), int(info.get("size") or 0), _number(change))


def _number(change: object) -> int:
    """Return the nanoseconds of a time, or a checksum of anything else."""
    if isinstance(change, datetime):
        return int(change.timestamp() * 1_000_000) * 1000
    if isinstance(change, int | float):
        return int(change * 1e9)
    return zlib.crc32(str(change).encode())


@contextmanager
def _errors(url: str) -> Iterator[None]:
    """Turn what a file system raises, which may be of any class, into errors that name the URL."""
    try:
        yield
    except (TokenizerError, ImportError):
        raise
    except FileNotFoundError:
        raise CorpusFileNotFoundError(f"there is no file {url[:_MAX_SHOWN]}") from None
    except Exception as error:
        raise unreadable(url, error) from error


def unreadable(url: str, error: Exception) -> CorpusError:
    """Return the error for a URL that a file system cannot read."""
    reason = f"{type(error).__name__}: {error}"
    return CorpusError(f"{url[:_MAX_SHOWN]} cannot be read: {reason[:_MAX_SHOWN]}")
