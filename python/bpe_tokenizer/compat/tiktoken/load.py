"""Rank files and the cache of downloads: `tiktoken.load`."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import write_atomically
from bpe_tokenizer.errors import FormatError, MissingDependencyError
from bpe_tokenizer.formats.tiktoken.cache import Cache, download, has_sha256
from bpe_tokenizer.formats.tiktoken.data_gym import ranks_from_data_gym
from bpe_tokenizer.formats.tiktoken.ranks import parse_ranks, write_ranks

__all__ = [
    "check_hash",
    "data_gym_to_mergeable_bpe_ranks",
    "dump_tiktoken_bpe",
    "load_tiktoken_bpe",
    "read_file",
    "read_file_cached",
]


def read_file(blobpath: str) -> bytes:
    """Return the content of a file.

    Args:
        blobpath: A path, an HTTP or HTTPS URL, or a URL for the library `blobfile`.

    Raises:
        HubError: The download fails; it is an `OSError`.
        MissingDependencyError: `blobfile` is needed and not installed.
        OSError: The file cannot be read.
    """
    if "://" not in blobpath:
        return Path(blobpath).read_bytes()
    if blobpath.startswith(("http://", "https://")):
        return download(blobpath)
    data: bytes = _blobfile(blobpath).read_bytes(blobpath)
    return data


def check_hash(data: bytes, expected_hash: str) -> bool:
    """Whether data has this SHA-256, in hexadecimal digits."""
    return has_sha256(data, expected_hash)


def read_file_cached(blobpath: str, expected_hash: str | None = None) -> bytes:
    """Return the content of a file, from tiktoken's cache if the cache holds it.

    Only downloads are cached; the SHA-256 of every file is checked.

    Args:
        blobpath: As `read_file` takes it.
        expected_hash: The SHA-256 that the file must have.

    Raises:
        FormatError: The SHA-256 differs; it is a `ValueError`.
        HubError: The download fails; it is an `OSError`.
        OSError: The file cannot be read, or cannot be written into the chosen cache.
    """
    if blobpath.startswith(("http://", "https://")):
        cache = Cache.at()
        data = cache.read(blobpath, expected_hash)
        return cache.fetch(blobpath, expected_hash) if data is None else data
    data = read_file(blobpath)
    if expected_hash is not None and not has_sha256(data, expected_hash):
        raise FormatError(f"{blobpath}: the SHA-256 is not {expected_hash}")
    return data


def load_tiktoken_bpe(tiktoken_bpe_file: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Return the tokens of a rank file and their ranks.

    Args:
        tiktoken_bpe_file: As `read_file` takes it.
        expected_hash: The SHA-256 that the file must have.

    Raises:
        FormatError: The file is broken or has another SHA-256; it is a `ValueError`.
        OSError: The file cannot be read.
    """
    return parse_ranks(read_file_cached(tiktoken_bpe_file, expected_hash), tiktoken_bpe_file)


def dump_tiktoken_bpe(bpe_ranks: dict[bytes, int], tiktoken_bpe_file: str) -> None:
    """Write a rank file.

    Args:
        bpe_ranks: The tokens and their ranks.
        tiktoken_bpe_file: A path, or a URL for the library `blobfile`.

    Raises:
        MissingDependencyError: `blobfile` is needed and not installed.
        WriteError: The file cannot be written.
    """
    data = write_ranks(bpe_ranks)
    if "://" not in tiktoken_bpe_file:
        write_atomically({Path(tiktoken_bpe_file): data})
        return
    with _blobfile(tiktoken_bpe_file).BlobFile(tiktoken_bpe_file, "wb") as file:
        file.write(data)


def data_gym_to_mergeable_bpe_ranks(
    vocab_bpe_file: str,
    encoder_json_file: str,
    vocab_bpe_hash: str | None = None,
    encoder_json_hash: str | None = None,
    clobber_one_byte_tokens: bool = False,
) -> dict[bytes, int]:
    """Return the tokens of GPT-2's two files and their ranks.

    Args:
        vocab_bpe_file: The merges, as `read_file` takes a file.
        encoder_json_file: The ids.
        vocab_bpe_hash: The SHA-256 that the merges must have.
        encoder_json_hash: The SHA-256 that the ids must have.
        clobber_one_byte_tokens: Take the ids of single bytes from the second file.

    Raises:
        FormatError: A file is broken or has another SHA-256, or the files contradict each other; it is a
            `ValueError`.
        OSError: A file cannot be read.
    """
    return ranks_from_data_gym(
        read_file_cached(vocab_bpe_file, vocab_bpe_hash),
        read_file_cached(encoder_json_file, encoder_json_hash),
        clobber_one_byte_tokens=clobber_one_byte_tokens,
        names=(vocab_bpe_file, encoder_json_file),
    )


def _blobfile(address: str) -> Any:
    try:
        return importlib.import_module("blobfile")
    except ImportError as error:
        raise MissingDependencyError(f"reading {address} needs blobfile: pip install blobfile") from error
