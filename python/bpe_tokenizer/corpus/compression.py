"""Compressed files as the bytes they hold."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from importlib import import_module
from typing import Any, BinaryIO, cast

from bpe_tokenizer.errors import MissingDependencyError

__all__ = ["BROKEN", "decompressed"]

# What reading broken or cut off compressed data raises.
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
# So much compressed data at a time: a few bytes of Zstandard may stand for very many.
_CHUNK = 8192


def decompressed(stored: io.BufferedReader) -> BinaryIO:
    r"""Return what a file holds: no text in UTF-8 begins like a compressed file.

    Args:
        stored: The file at its beginning. Closing the result leaves it open, unless they are the same.

    Raises:
        MissingDependencyError: It is Zstandard (https://www.rfc-editor.org/rfc/rfc8878) and `zstandard` is
            not installed.

    >>> decompressed(io.BufferedReader(io.BytesIO(gzip.compress(b"low"))))  # doctest: +ELLIPSIS
    <gzip...>
    """
    head = stored.peek(len(_XZ))
    if head.startswith(_GZIP):
        return cast("BinaryIO", gzip.GzipFile(fileobj=stored))
    if head.startswith(_XZ):
        return cast("BinaryIO", lzma.LZMAFile(stored))
    if head.startswith(_ZSTANDARD):
        return cast("BinaryIO", io.BufferedReader(_Zstandard(stored)))
    return cast("BinaryIO", stored)


class _Zstandard(io.RawIOBase):
    """All frames of a file, one after the other.

    The library's own `stream_reader` takes a file that is cut off for a complete one.
    """

    def __init__(self, stored: io.BufferedReader) -> None:
        try:
            zstandard: Any = import_module("zstandard")
        except ImportError:
            raise MissingDependencyError(
                "files in Zstandard need the library zstandard: pip install zstandard"
            ) from None
        self._stored = stored
        self._decompressor = zstandard.ZstdDecompressor()
        self._error = zstandard.ZstdError
        self._frame: Any = None
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            data = self._frame.unused_data if self._frame is not None and self._frame.eof else b""
            data = data or self._stored.read1(_CHUNK)
            if not data:
                break
            self._ready = self._decompress(data)
        if not self._ready and self._frame is not None and not self._frame.eof:
            raise EOFError("the file ends within a frame")
        taken = self._ready[: len(buffer)]
        buffer[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)

    def _decompress(self, data: bytes) -> bytes:
        if self._frame is None or self._frame.eof:
            self._frame = self._decompressor.decompressobj()
        try:
            return cast("bytes", self._frame.decompress(data))
        except self._error as error:
            raise EOFError(str(error)) from None
