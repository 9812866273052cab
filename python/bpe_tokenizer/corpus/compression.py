"""Reads compressed files."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from typing import Any, BinaryIO, cast

from bpe_tokenizer.libraries import import_library

__all__ = ["DECOMPRESSION_ERRORS", "decompress"]

# The errors of reading corrupt or truncated compressed data.
DECOMPRESSION_ERRORS = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\x00"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
# Bytes of compressed data in one step. Small, because a few bytes of Zstandard can expand enormously.
_CHUNK = 8192


def decompress(stored: io.BufferedReader) -> BinaryIO:
    r"""Return a stream of a file's uncompressed bytes. The first bytes decide; UTF-8 never starts like them.

    Args:
        stored: The file at its start. Closing the result leaves a compressed file open.

    Raises:
        MissingDependencyError: The file is Zstandard (https://www.rfc-editor.org/rfc/rfc8878) and
            `zstandard` is not installed.

    >>> decompress(io.BufferedReader(io.BytesIO(gzip.compress(b"low"))))  # doctest: +ELLIPSIS
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
    """All frames of a Zstandard file, in sequence.

    The library's `stream_reader` does not report a truncated file, so this class does.
    """

    def __init__(self, stored: io.BufferedReader) -> None:
        zstandard = import_library("zstandard")
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
