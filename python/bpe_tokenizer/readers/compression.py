"""Decompresses files in steps of bounded size."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias

from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.libraries import import_library

__all__ = [
    "CHUNK_BYTES",
    "Compression",
    "Stored",
    "compression_of",
    "decompressed_chunks",
    "may_be_compressed",
]

Compression: TypeAlias = Literal["gzip", "zstd", "xz", "bz2"]

# Bytes of a chunk of content.
CHUNK_BYTES = 256 << 10
# Stored bytes that are read at once. A few of them can expand enormously, so what a step returns is limited
# too.
_STORED_BYTES = 256 << 10
# The magic numbers of frames to skip are 0x184d2a50 to 0x184d2a5f.
_SKIPPABLE = b"\x2a\x4d\x18"
_SIGNATURES: tuple[tuple[bytes, Compression], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zXZ\x00", "xz"),
    # Of a file with data, and of an empty one.
    *((b"BZh%c1AY&SY" % level, "bz2") for level in b"123456789"),
    *((b"BZh%c\x17rE8P\x90" % level, "bz2") for level in b"123456789"),
)


class Stored(Protocol):
    """Stored bytes that are read in sequence."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most so many; nothing at the end."""


def compression_of(head: bytes) -> Compression | None:
    r"""Return how a file with these first 16 bytes is compressed; None if it is not.

    No text starts like a compressed file.

    >>> compression_of(b"\x1f\x8b\x08"), compression_of(b"BZh, a text")
    ('gzip', None)
    """
    if head[1:4] == _SKIPPABLE and 0x50 <= head[0] <= 0x5F:
        return "zstd"
    return next((kind for signature, kind in _SIGNATURES if head.startswith(signature)), None)


def may_be_compressed(head: bytes) -> bool:
    r"""Return whether a file that starts with these bytes, of which more may follow, can be compressed.

    >>> may_be_compressed(b"BZ"), may_be_compressed(b"BZh, a text")
    (True, False)
    """
    if head and 0x50 <= head[0] <= 0x5F and _SKIPPABLE.startswith(head[1:4]):
        return True
    return any(signature.startswith(head[: len(signature)]) for signature, _ in _SIGNATURES)


def decompressed_chunks(
    stored: Stored, compression: Compression | None, name: str
) -> Generator[bytes, None, None]:
    """Yield the content of a file from its start, in chunks of at most about `CHUNK_BYTES`.

    Args:
        stored: The file at its start.
        compression: How it is compressed.
        name: Its name, for messages.

    Raises:
        CorpusError: The data is corrupt or truncated, or cannot be read.
        MissingDependencyError: The file is Zstandard (https://www.rfc-editor.org/rfc/rfc8878) and
            `backports.zstd`, which Python has from 3.14 on, is not installed.
    """
    if compression is None:
        while chunk := stored.read(CHUNK_BYTES):
            yield chunk
        return
    new_part, its_error = _decompressor(compression)
    try:
        yield from _parts(stored, new_part)
    except CorpusError:
        raise
    except (EOFError, OSError, ValueError, its_error) as error:
        raise CorpusError(
            f"{name[:160]} is corrupt or truncated compressed data: {str(error)[:80]}"
        ) from None


def _parts(stored: Stored, new_part: Callable[[], Any]) -> Generator[bytes, None, None]:
    """Yield what the parts of a file hold: members of gzip, streams of xz and bzip2, frames of Zstandard.

    Zero bytes may follow a part. The file classes of the standard library ignore what else follows.
    """
    data = stored.read(_STORED_BYTES)
    while data:
        part = new_part()
        while not part.eof:
            if part.needs_input and not data and not (data := stored.read(_STORED_BYTES)):
                raise EOFError("the file ends within its data")
            chunk = part.decompress(data, CHUNK_BYTES)
            data = b""
            if chunk:
                yield chunk
        data = part.unused_data.lstrip(b"\0")
        while not data and (more := stored.read(_STORED_BYTES)):
            data = more.lstrip(b"\0")


def _decompressor(compression: Compression) -> tuple[Callable[[], Any], type[Exception]]:
    """Return what makes the decompressor of a part, and what it raises."""
    if compression == "gzip":
        return _GzipMember, zlib.error
    # Not every Python has the other modules.
    if compression == "bz2":
        import bz2

        return bz2.BZ2Decompressor, OSError
    if compression == "xz":
        import lzma

        return partial(lzma.LZMADecompressor, lzma.FORMAT_XZ), lzma.LZMAError
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        zstd = import_library("backports.zstd")
    return zstd.ZstdDecompressor, zstd.ZstdError


class _GzipMember:
    """A decompressor of a gzip member with the methods of the other libraries' decompressors."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        chunk = self._member.decompress(self._member.unconsumed_tail + data, max_length)
        self.needs_input = not self._member.unconsumed_tail and len(chunk) < max_length
        return chunk
