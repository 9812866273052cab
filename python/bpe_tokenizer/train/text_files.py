"""The errors of files that are not UTF-8: where they are not, and what to do about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bpe_tokenizer.errors import CorpusError

__all__ = ["HEAD_BYTES", "names_compressed", "not_utf8"]

# The first bytes of compressed files, and the commands that unpack them.
_UNPACK = (
    (b"\x1f\x8b", "gzip -dk"),
    (b"\xfd7zXZ\x00", "xz -dk"),
    (b"\x28\xb5\x2f\xfd", "zstd -d"),
    (b"BZh", "bzip2 -dk"),
    (b"PK\x03\x04", "unzip"),
)
# As many bytes as tell.
HEAD_BYTES = 6


def not_utf8(name: str, head: bytes, byte: int, offset: int) -> str:
    r"""Return the message for a file that is not UTF-8.

    Args:
        name: The file.
        head: Its first bytes.
        byte: The first byte that is not UTF-8.
        offset: Its position.

    >>> not_utf8("a.txt", b"low\xff", 0xFF, 3)
    'a.txt is not UTF-8: byte 0xff at offset 3; convert it to UTF-8 first'
    >>> not_utf8("a.txt.gz", b"\x1f\x8b\x08", 0x8B, 1)
    'a.txt.gz is compressed: unpack it first (gzip -dk FILE)'
    """
    return (
        _compressed(name, head)
        or f"{name} is not UTF-8: byte 0x{byte:02x} at offset {offset:,}; convert it to UTF-8 first"
    )


@contextmanager
def names_compressed(files: Iterable[str | os.PathLike[str]]) -> Iterator[None]:
    """Let the error of files that are not UTF-8 say which of them is compressed.

    Args:
        files: The files that the block reads.

    Raises:
        CorpusError: As in the block.
    """
    try:
        yield
    except CorpusError as error:
        if "UTF-8" in str(error):
            for path in map(Path, files):
                if path.is_file():  # not a pipe, which has been read
                    with path.open("rb") as file:
                        message = _compressed(str(path), file.read(HEAD_BYTES))
                    if message:
                        raise CorpusError(message) from None
        raise


def _compressed(name: str, head: bytes) -> str:
    """Return the message for a compressed file; "" for another."""
    for signature, command in _UNPACK:
        if head.startswith(signature):
            return f"{name} is compressed: unpack it first ({command} FILE)"
    return ""
