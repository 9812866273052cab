"""The header of a file of piece counts.

A file holds a line with its format and version, the length of the header in 8 bytes (little-endian), the
header in JSON, and the sorted pieces with their counts (`crates/core/src/train/counts/saved.rs`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bpe_tokenizer.errors import FormatError

__all__ = ["read_header", "write_header"]

_MAGIC = b"bpe-tokenizer piece counts 1\n"
_LENGTH_BYTES = 8
_DROPPED_FIELDS = 3


def write_header(fields: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file up to the pieces."""
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True).encode()
    return _MAGIC + len(text).to_bytes(_LENGTH_BYTES, "little") + text


def read_header(data: bytes, name: str) -> tuple[dict[str, Any], int]:
    """Return the fields of a header, and the offset of the pieces.

    Args:
        data: The file.
        name: Its name, for errors.

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
        integers = [header["documents"], *header["dropped"]]
        texts = [
            *header["split_patterns"],
            *header["special_tokens"],
            *[header["normalization"]] * (header["normalization"] is not None),
        ]
        is_right = (
            begin < len(data)
            and len(integers) == 1 + _DROPPED_FIELDS
            and all(type(value) is int and 0 <= value < 2**64 for value in integers)
            and isinstance(header["split_patterns"], list)
            and isinstance(header["special_tokens"], list)
            and all(isinstance(text, str) for text in texts)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        is_right = False
    if not is_right:
        raise FormatError(f"{name}: byte {start}: the header is broken")
    return header, begin
