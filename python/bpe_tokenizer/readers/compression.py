"""Decompresses files in steps of bounded size."""

from __future__ import annotations

import zlib
from collections.abc import Generator
from typing import Any, Literal, Protocol, TypeAlias, cast

from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.libraries import import_library

__all__ = [
    "CHUNK_BYTES",
    "Compression",
    "Stored",
    "compression_of",
    "decompressed_chunks",
    "inflated",
    "may_be_compressed",
]

Compression: TypeAlias = Literal["gzip", "zstd", "xz", "bz2"]

# Bytes of a chunk of content.
CHUNK_BYTES = 256 << 10
# Stored bytes that are read at once. A few of them can expand enormously, so what a step returns is limited
# too.
_STORED_BYTES = 256 << 10
# No header of Zstandard that `_Frames` reads is longer.
_HEADER_BYTES = 8
_GZIP = b"\x1f\x8b"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
# The magic numbers of frames to skip are 0x184d2a50 to 0x184d2a5f.
_SKIPPABLE = b"\x2a\x4d\x18"
_SIGNATURES: tuple[tuple[bytes, Compression], ...] = (
    (_GZIP, "gzip"),
    (_ZSTANDARD, "zstd"),
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
            `zstandard` is not installed.
    """
    if compression is None:
        while chunk := stored.read(CHUNK_BYTES):
            yield chunk
        return
    try:
        yield from _DECOMPRESSORS[compression](stored)
    except CorpusError:
        raise
    except (EOFError, zlib.error, OSError, ValueError) as error:
        raise CorpusError(
            f"{name[:160]} is corrupt or truncated compressed data: {str(error)[:80]}"
        ) from None


def inflated(stored: Stored, data: bytes, wbits: int) -> Generator[bytes, None, bytes]:
    """Yield the content of a member of gzip, or of a stream of zlib, in chunks of at most `CHUNK_BYTES`.

    Args:
        stored: The stored bytes after `data`.
        data: Its first stored bytes.
        wbits: What it is, as in `zlib.decompressobj`.

    Returns:
        The stored bytes after it, as far as they are read.

    Raises:
        EOFError: The stored bytes end within it.
        zlib.error: It is corrupt.
    """
    member = zlib.decompressobj(wbits)
    while not member.eof:
        # Also without new data, there may be more to return.
        chunk = member.decompress(data, CHUNK_BYTES)
        data = member.unconsumed_tail
        if chunk:
            yield chunk
        if not (data or member.eof or chunk):
            data = stored.read(_STORED_BYTES)
            if not data:
                raise EOFError("the file ends within a member")
    return member.unused_data


def _gzip_chunks(stored: Stored) -> Generator[bytes, None, None]:
    """Yield what the members of a gzip file hold. Zero bytes may follow a member."""
    data = stored.read(_STORED_BYTES)
    while data:
        data = (yield from inflated(stored, data, 16 + zlib.MAX_WBITS)).lstrip(b"\0")
        while not data and (more := stored.read(_STORED_BYTES)):
            data = more.lstrip(b"\0")
        if len(data) == 1:
            data += stored.read(_STORED_BYTES)
        if data and not data.startswith(_GZIP):
            raise ValueError("something else follows a gzip member")


def _xz_chunks(stored: Stored) -> Generator[bytes, None, None]:
    import lzma  # not every Python has it

    try:
        file = lzma.LZMAFile(cast("Any", _Readable(stored)))  # noqa: SIM115 (`_read_chunks` closes it)
        yield from _read_chunks(file)
    except lzma.LZMAError as error:
        raise EOFError(str(error)) from None


def _bz2_chunks(stored: Stored) -> Generator[bytes, None, None]:
    import bz2  # not every Python has it

    yield from _read_chunks(bz2.BZ2File(cast("Any", _Readable(stored))))


def _read_chunks(file: Any) -> Generator[bytes, None, None]:
    with file:
        # Not `read`, which loses what it has read when an error follows.
        while chunk := file.read1(CHUNK_BYTES):
            yield chunk


def _zstd_chunks(stored: Stored) -> Generator[bytes, None, None]:
    zstandard = import_library("zstandard")
    frames = _Frames(stored)
    options = {"read_size": _STORED_BYTES, "read_across_frames": True, "closefd": False}
    try:
        with zstandard.ZstdDecompressor().stream_reader(frames, **options) as reader:
            while chunk := reader.read(CHUNK_BYTES):
                yield chunk
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from None
    if not frames.at_end:
        raise EOFError("the file ends within a frame")


_DECOMPRESSORS = {"gzip": _gzip_chunks, "zstd": _zstd_chunks, "xz": _xz_chunks, "bz2": _bz2_chunks}


class _Readable:
    """What the standard library needs of a file. Reads more than it asks for at once."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._held = memoryview(b"")

    def read(self, size: int) -> bytes:
        if not self._held:
            self._held = memoryview(self._stored.read(max(size, _STORED_BYTES)))
        data, self._held = bytes(self._held[:size]), self._held[size:]
        return data

    def seekable(self) -> bool:
        return False


class _Frames:
    """A Zstandard file that knows whether it ends with a frame: the library does not report a truncated one.

    It follows the frames by their headers, which hold the sizes of what follows.
    """

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._held = b""
        # Bytes to pass over before the next header.
        self._skip = 0
        self._step = self._magic
        self._has_checksum = False

    @property
    def at_end(self) -> bool:
        return self._step == self._magic and not self._held and not self._skip

    def read(self, size: int) -> bytes:
        data = self._stored.read(size)
        self._follow(data)
        return data

    def _follow(self, data: bytes) -> None:
        at = 0
        while True:
            passed = min(self._skip, len(data) - at)
            self._skip -= passed
            at += passed
            if self._skip or (at == len(data) and not self._held):
                break
            window = self._held + data[at : at + _HEADER_BYTES]
            length = self._step(window)
            if length == 0:
                self._held = window
                break
            at += length - len(self._held)
            self._held = b""

    def _magic(self, window: bytes) -> int:
        """Read the start of a frame. Each step returns the length of its header, or 0 for more bytes."""
        if len(window) < 8 and not (window.startswith(_ZSTANDARD) and len(window) >= 5):
            return 0
        if window[1:4] == _SKIPPABLE:
            self._skip = int.from_bytes(window[4:8], "little")
            return 8
        flags = window[4]
        is_single = flags >> 5 & 1
        size_bytes = (is_single, 2, 4, 8)[flags >> 6]
        self._skip = (1 - is_single) + (0, 1, 2, 4)[flags & 3] + size_bytes
        self._has_checksum = bool(flags >> 2 & 1)
        self._step = self._block
        return 5

    def _block(self, window: bytes) -> int:
        if len(window) < 3:
            return 0
        header = int.from_bytes(window[:3], "little")
        kind, size = header >> 1 & 3, header >> 3
        self._skip = 1 if kind == 1 else size
        if header & 1:
            self._skip += 4 * self._has_checksum
            self._step = self._magic
        return 3
