"""tiktoken's cache of downloaded files.

Its directory and file names follow `read_file_cached` of
https://github.com/openai/tiktoken/blob/main/tiktoken/load.py.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bpe_tokenizer.atomic import make_directory, write_atomically
from bpe_tokenizer.errors import FormatError, HubError

__all__ = ["Cache", "download", "has_sha256"]

# The largest rank file has 4 MB.
_MAX_BYTES = 1 << 28
_TIMEOUT = 20  # seconds without a byte


@dataclass(frozen=True)
class Cache:
    """A directory of downloaded files, each named by the SHA-1 of its URL.

    Args:
        directory: The directory, which need not exist; None keeps nothing.
        is_chosen: Whether the user chose this directory. Then a failure to write is an error.
    """

    directory: Path | None
    is_chosen: bool

    @classmethod
    def at(cls, cache_dir: str | os.PathLike[str] | None = None) -> Cache:
        """Return the cache of a directory.

        Args:
            cache_dir: The directory; empty keeps nothing; None for `TIKTOKEN_CACHE_DIR`,
                `DATA_GYM_CACHE_DIR`, or `data-gym-cache` in the directory of temporary files.

        >>> Cache.at("").directory is None
        True
        """
        named = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
        chosen = named if cache_dir is None else os.fspath(cache_dir)
        if chosen is None:
            return cls(Path(tempfile.gettempdir(), "data-gym-cache"), is_chosen=False)
        return cls(Path(chosen) if chosen else None, is_chosen=True)

    def path(self, url: str) -> Path | None:
        """Return the path of the file for a URL.

        >>> Cache.at("cache").path("https://example.org/ranks").name
        '81457f5f3a3864f3a392f6e1f0e4adfb10913580'
        """
        name = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
        return self.directory and self.directory / name

    def read(self, url: str, sha256: str | None) -> bytes | None:
        """Return a file if the cache holds it with the right content.

        Args:
            url: The URL it was downloaded from.
            sha256: The SHA-256 that the file must have; None accepts any content.
        """
        path = self.path(url)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        return data if sha256 is None or has_sha256(data, sha256) else None

    def fetch(self, url: str, sha256: str | None) -> bytes:
        """Download a file into the cache.

        Args:
            url: The URL.
            sha256: The SHA-256 that the file must have; None accepts any content.

        Raises:
            FormatError: The file has another SHA-256.
            HubError: The file cannot be downloaded.
            WriteError: The file cannot be written into a chosen cache.
        """
        path = self.path(url)
        data = download(url, "" if path is None else f"save it as {path.name} in TIKTOKEN_CACHE_DIR")
        if sha256 is not None and not has_sha256(data, sha256):
            raise FormatError(
                f"{url}: the downloaded file has the SHA-256 {hashlib.sha256(data).hexdigest()}, not "
                f"{sha256}; try again, or check for a proxy that answers instead of the server"
            )
        if path is not None:
            try:
                make_directory(path.parent)
                write_atomically({path: data})
            except OSError:
                if self.is_chosen:
                    raise
        return data


def download(url: str, way_out: str = "") -> bytes:
    """Return the content of an HTTP or HTTPS URL.

    Args:
        url: The URL.
        way_out: What the user may do with a file that another program downloads, for the error.

    Raises:
        HubError: The server cannot be reached, returns an error, or returns more than 256 MB.
    """
    import http.client
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as response:
            data: bytes = response.read(_MAX_BYTES + 1)
            expected = response.headers.get("Content-Length")
    except (OSError, http.client.HTTPException, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it is the answer too, with the connection
        raise HubError(
            f"{url}: cannot be downloaded: {str(error)[:80]}. Check the connection and try again, "
            f"or download the file yourself and {way_out or 'load it by its path'}"
        ) from error
    if len(data) > _MAX_BYTES:
        raise HubError(f"{url}: returns more than {_MAX_BYTES:,} bytes, too much for a tokenizer file")
    if expected is not None and expected.isdigit() and len(data) < int(expected):
        raise HubError(f"{url}: returned {len(data):,} of {expected} bytes; try again")
    return data


def has_sha256(data: bytes, sha256: str) -> bool:
    """Whether data has this SHA-256, in hexadecimal digits.

    >>> has_sha256(b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    True
    """
    return hashlib.sha256(data).hexdigest() == sha256.lower()
