"""A typical mistake in each exercise of chapter 2."""

from __future__ import annotations


def count_bytes(text: str) -> int:
    return len(text)  # Code points.


def utf8_length(code_point: int) -> int:
    return (
        1 if code_point < 0x7F else 2 if code_point < 0x7FF else 3 if code_point < 0xFFFF else 4
    )  # < for <=.


def encode_code_point(code_point: int) -> bytes:
    if code_point <= 0x7F:
        return bytes([code_point])
    # Two bytes for everything else, as for the example of the page.
    return bytes([(0b11000000 | (code_point >> 6)) & 0xFF, 0b10000000 | (code_point & 0b111111)])


def character_starts(data: bytes) -> list[int]:
    return [position for position, byte in enumerate(data) if byte < 0b10000000]  # Only ASCII.


def cut(text: str, limit: int) -> str:
    return text.encode("utf-8")[:limit].decode("utf-8", errors="replace")  # Ends in U+FFFD.
