"""The header of a file of piece counts.

A file holds a line with its format and version, the length of the header in 8 bytes (little-endian), the
header in JSON, and the sorted pieces with their counts (`crates/core/src/train/counts/saved.rs`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.files import check_regular, read_errors

__all__ = ["SMALL_FILE", "read_header", "read_header_of", "write_header"]

# Smaller files of counts are read into memory at once.
SMALL_FILE = 1 << 20

_MAGIC = b"bpe-tokenizer piece counts 1\n"
_LENGTH_BYTES = 8


def write_header(fields: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file up to the pieces."""
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True).encode()
    return _MAGIC + len(text).to_bytes(_LENGTH_BYTES, "little") + text


def read_header_of(path: Path) -> tuple[dict[str, Any], int]:
    """Return the fields of a file's header, and the offset of the pieces. Reads nothing else.

    Raises:
        FormatError: As `read_header`, or the file cannot be read.
    """
    with read_errors(path):
        check_regular(path)
        size = path.stat().st_size
        with path.open("rb") as file:
            start = len(_MAGIC) + _LENGTH_BYTES
            data = file.read(start)
            length = int.from_bytes(data[len(_MAGIC) :], "little")
            if data.startswith(_MAGIC) and start + length < size:
                data += file.read(length)
    return read_header(data, str(path), size)


def read_header(data: bytes, name: str, size: int | None = None) -> tuple[dict[str, Any], int]:
    """Return the fields of a header, and the offset of the pieces.

    Args:
        data: The file, or its beginning.
        name: Its name, for errors.
        size: Bytes of the file, if the data is its beginning.

    Raises:
        FormatError: The file is not one of piece counts, has another version, or the header is broken.
    """
    kind, version = _MAGIC.rsplit(b" ", 1)
    if not data.startswith(_MAGIC):
        if data.startswith(kind):
            line = data[len(kind) : len(kind) + 20].split(b"\n")[0].decode("ascii", "replace").strip()
            raise FormatError(
                f"{name}: piece counts of version {line}; this package reads version "
                f"{version.decode().strip()}"
            )
        raise FormatError(f"{name}: byte 0: this is not a file of piece counts that PieceCounts.save wrote")
    start = len(_MAGIC) + _LENGTH_BYTES
    begin = start + int.from_bytes(data[len(_MAGIC) : start], "little")
    try:
        header = json.loads(data[start:begin])
        texts = [
            *header["split_patterns"],
            *header["special_tokens"],
            *[header["normalization"]] * (header["normalization"] is not None),
        ]
        is_right = (
            begin < (len(data) if size is None else size)
            and type(header["documents"]) is int
            and 0 <= header["documents"] < 2**64
            and isinstance(header["split_patterns"], list)
            and isinstance(header["special_tokens"], list)
            and all(isinstance(text, str) for text in texts)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        is_right = False
    if not is_right:
        raise FormatError(f"{name}: byte {start}: the header is broken")
    return header, begin
