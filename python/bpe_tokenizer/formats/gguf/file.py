"""The GGUF container: reads the metadata of a file, and writes a file of metadata only.

The format is described in https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. As in llama.cpp's
`gguf.cpp`, version 1, big-endian files, arrays of arrays and duplicate keys are refused. The tensors after
the metadata are never read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, escaped, shorten
from bpe_tokenizer.formats.files import check_regular, read_errors

__all__ = ["Metadata", "ValueType", "read_metadata", "write_metadata"]

_MAGIC = b"GGUF"
_VERSION = 3
# Far more than any tokenizer needs. They bound the time and memory that a hostile file can take.
_MAX_METADATA = 1 << 30
_MAX_PAIRS = 1 << 16
_MAX_STRINGS = 1 << 24
_MAX_KEY = (1 << 16) - 1
# The most characters of a name in a message.
_MAX_SHOWN_KEY = 80
# Bytes of a file to read at once.
_WINDOW = 1 << 20

_HEADER = struct.Struct("<IQQ")
_LENGTH = struct.Struct("<Q")
_KIND = struct.Struct("<I")
_ARRAY = struct.Struct("<IQ")


class ValueType(IntEnum):
    """The types of values (`gguf_type`), by their numbers in a file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_NUMBERS = {
    ValueType.UINT8: "u1",
    ValueType.INT8: "i1",
    ValueType.UINT16: "<u2",
    ValueType.INT16: "<i2",
    ValueType.UINT32: "<u4",
    ValueType.INT32: "<i4",
    ValueType.FLOAT32: "<f4",
    ValueType.BOOL: "u1",
    ValueType.UINT64: "<u8",
    ValueType.INT64: "<i8",
    ValueType.FLOAT64: "<f8",
}


class Metadata:
    """The metadata of a file, with typed access to values and errors that name the key.

    Args:
        file: The file.
        values: A `str`, `int`, `float` or `bool` for each key; `_core.Strings` for an array of strings, a
            numpy array for any other array.

    >>> metadata = Metadata(Path("model.gguf"), {"tokenizer.ggml.model": "gpt2"})
    >>> metadata.text("tokenizer.ggml.model")
    'gpt2'
    >>> metadata.text("tokenizer.ggml.pre", "default")
    'default'
    >>> metadata.strings("tokenizer.ggml.model")
    Traceback (most recent call last):
    bpe_tokenizer.errors.FormatError: model.gguf: tokenizer.ggml.model: must be an array of strings
    """

    def __init__(self, file: Path, values: dict[str, Any]) -> None:
        self.file = file
        self.values = values

    def error(self, key: str, problem: str) -> FormatError:
        """Return an error that names the file and the key."""
        return FormatError(f"{self.file}: {key}: {problem}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string."""
        return str(self._value(key, str, "a string", default))

    def flag(self, key: str, default: bool | None = None) -> bool:
        """Return a boolean."""
        return bool(self._value(key, bool, "a boolean", default))

    def integer(self, key: str) -> int | None:
        """Return an integer; None if the key is missing."""
        value = self.values.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.error(key, "must be an integer")

    def strings(self, key: str) -> _core.Strings:
        """Return an array of strings as their bytes."""
        value: _core.Strings = self._value(key, _core.Strings, "an array of strings", None)
        return value

    def numbers(self, key: str, kinds: str) -> np.ndarray[Any, Any] | None:
        """Return an array of numbers whose numpy kind is one of `kinds`; None if the key is missing."""
        value = self.values.get(key)
        if value is None or (isinstance(value, np.ndarray) and value.dtype.kind in kinds):
            return value
        raise self.error(key, f"must be an array of {'numbers' if 'f' in kinds else 'integers'}")

    def _value(self, key: str, wanted: type, name: str, default: Any) -> Any:
        value = self.values.get(key, default)
        if value is None:
            raise self.error(key, "is missing")
        if isinstance(value, wanted):
            return value
        raise self.error(key, f"must be {name}")


def read_metadata(path: Path, wanted: Callable[[str], bool]) -> Metadata:
    """Read the metadata of a GGUF file.

    Args:
        path: The file; only the metadata is read.
        wanted: Whether to keep the value of a key.

    Raises:
        FormatError: The file cannot be read, is not GGUF of version 2 or 3, or ends within the metadata.
    """
    with read_errors(path):
        check_regular(path)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                raise FormatError(f"{path}: is empty")
            return Metadata(path, _Reader(path, file, size).pairs(wanted))


class _Reader:
    """Reads values in sequence, never past the end. Holds a window of the file.

    It does not map the file: reading a map past the new end of a truncated file kills the process (SIGBUS).
    """

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self.path = path
        self.file = file
        self.size = min(size, _MAX_METADATA)
        self.window = b""
        self.at = 0  # in the window
        self.unread = self.size  # bytes after the window
        self.key = "the header"

    @property
    def rest(self) -> int:
        """The bytes after those that are used."""
        return len(self.window) - self.at + self.unread

    def fill(self, count: int) -> None:
        """Read until the window has the next `count` bytes, which the file has."""
        missing = count - (len(self.window) - self.at)
        if missing <= 0:
            return
        wanted = min(max(missing, _WINDOW), self.unread)
        read = self.file.read(wanted)
        if len(read) < wanted:
            raise self.error("the file ends here")
        self.window = self.window[self.at :] + read
        self.at = 0
        self.unread -= wanted

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes, which the file has."""
        self.fill(count)
        self.at += count
        return self.window[self.at - count : self.at]

    def skip(self, count: int) -> None:
        """Skip `count` bytes, which the file has, without reading them."""
        after = count - (len(self.window) - self.at)
        if after <= 0:
            self.at += count
            return
        self.file.seek(after, os.SEEK_CUR)
        self.window, self.at = b"", 0
        self.unread -= after

    def error(self, problem: str) -> FormatError:
        # The name of a broken file's pair may be any part of the file.
        return FormatError(f"{self.path}: {escaped(self.key, _MAX_SHOWN_KEY)}: {problem}")

    def pairs(self, wanted: Callable[[str], bool]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        seen: set[str] = set()
        for index in range(self._header()):
            self.key = f"metadata pair {index}"
            key = self._key()
            if key in seen:
                raise self.error(f"duplicate key {shorten(key)}")
            seen.add(key)
            self.key = key
            value = self._any(wanted(key))
            if value is not None:
                values[key] = value
        return values

    def _header(self) -> int:
        """Return the number of pairs."""
        magic = self.take(min(4, self.rest))
        if magic != _MAGIC:
            raise FormatError(f"{self.path}: is not a GGUF file: it begins with {magic!r}, not b'GGUF'")
        version, _tensors, pairs = self._fixed(_HEADER)
        if version & 0xFFFF == 0:
            raise self.error("big-endian files are not supported; convert the file on a big-endian machine")
        if version not in (2, 3):
            raise self.error(f"version {version} is not supported; supported: 2 and 3")
        if pairs > _MAX_PAIRS:
            raise self.error(f"claims {pairs} metadata pairs; the limit is {_MAX_PAIRS}")
        return int(pairs)

    def _fixed(self, layout: struct.Struct) -> tuple[Any, ...]:
        if layout.size > self.rest:
            raise self.error("the file ends here")
        return layout.unpack(self.take(layout.size))

    def _key(self) -> str:
        data = self._string(_MAX_KEY)
        if not data:
            raise self.error("the key is empty")
        return self._decode(data)

    def _string(self, limit: int | None = None) -> bytes:
        (length,) = self._fixed(_LENGTH)
        if length > self.rest:
            raise self.error(f"claims a string of {length} bytes{self._more()}")
        if limit is not None and length > limit:
            raise self.error(f"claims a string of {length} bytes; the limit is {limit}")
        return self.take(length)

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.error(f"is not UTF-8: byte 0x{data[error.start]:02x} at {error.start}") from error

    def _kind(self, number: int) -> ValueType:
        try:
            return ValueType(number)
        except ValueError:
            raise self.error(f"has the unknown value type {number}") from None

    def _any(self, keep: bool) -> Any:
        """Return the next value; None if it is not kept."""
        kind = self._kind(*self._fixed(_KIND))
        if kind is ValueType.ARRAY:
            return self._array(keep)
        if kind is ValueType.STRING:
            data = self._string()
            return self._decode(data) if keep else None
        number = self._items(kind, 1, keep=True)[0].item()
        if not keep:
            return None
        return bool(number) if kind is ValueType.BOOL else number

    def _array(self, keep: bool) -> Any:
        number, count = self._fixed(_ARRAY)
        kind = self._kind(number)
        if kind is ValueType.ARRAY:
            raise self.error("is an array of arrays, which is not supported")
        if kind is not ValueType.STRING:
            return self._items(kind, count, keep)
        strings = self._strings(count)
        return strings if keep else None

    def _items(self, kind: ValueType, count: int, keep: bool) -> Any:
        dtype = np.dtype(_NUMBERS[kind])
        size = count * dtype.itemsize
        if size > self.rest:
            raise self.error(f"claims {count} items of {dtype.itemsize} bytes{self._more()}")
        if keep:
            return np.frombuffer(self.take(size), dtype)
        self.skip(size)
        return None

    def _strings(self, count: int) -> _core.Strings:
        if count > min(self.rest // _LENGTH.size, _MAX_STRINGS):
            raise self.error(f"claims {count} strings{self._more()}")
        strings = _core.Strings([])
        while True:
            self.at = strings.read(self.window, self.at, count)
            if len(strings) == count:
                return strings
            strings.append(self._item(len(strings)))

    def _item(self, index: int) -> bytes:
        """Return an item of an array of strings."""
        if self.rest < _LENGTH.size:
            raise self.error(f"string {index} starts after the end{self._more()}")
        (length,) = self._fixed(_LENGTH)
        if length > self.rest:
            raise self.error(f"string {index} continues after the end{self._more()}")
        return self.take(length)

    def _more(self) -> str:
        """The rest of the file, for a message about a claim that exceeds it."""
        if self.size == _MAX_METADATA:
            return f"; the limit for metadata is {_MAX_METADATA} bytes"
        return f"; the file has {self.rest} more bytes"


def write_metadata(pairs: Sequence[tuple[str, ValueType, Any]]) -> bytes:
    r"""Return a GGUF file of version 3 with metadata and no tensors.

    Args:
        pairs: Keys, types and values. A list is an array of the type; strings may be `bytes`.

    >>> write_metadata([("general.architecture", ValueType.STRING, "llama")])[:20]
    b'GGUF\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00'
    """
    parts = [_MAGIC, _HEADER.pack(_VERSION, 0, len(pairs))]
    for key, kind, value in pairs:
        parts.append(_string(key))
        if isinstance(value, list):
            parts += (_KIND.pack(ValueType.ARRAY), _ARRAY.pack(kind, len(value)))
        else:
            parts.append(_KIND.pack(kind))
            value = [value]
        if kind is ValueType.STRING:
            parts += map(_string, value)
        else:
            parts.append(np.asarray(value, _NUMBERS[kind]).tobytes())
    return b"".join(parts)


def _string(value: str | bytes) -> bytes:
    data = value.encode("utf-8") if isinstance(value, str) else value
    return _LENGTH.pack(len(data)) + data
