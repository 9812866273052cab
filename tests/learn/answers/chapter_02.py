"""Answers to the exercises of chapter 2: right ones, and typical mistakes."""

from __future__ import annotations

from typing import Any


def count_bytes(text: str) -> int:
    return len(text.encode("utf-8"))


def utf8_length(code_point: int) -> int:
    if code_point <= 0x7F:
        return 1
    if code_point <= 0x7FF:
        return 2
    if code_point <= 0xFFFF:
        return 3
    return 4


def encode_code_point(code_point: int) -> bytes:
    last = [0b10000000 | ((code_point >> shift) & 0b111111) for shift in (12, 6, 0)]
    if code_point <= 0x7F:
        return bytes([code_point])
    if code_point <= 0x7FF:
        return bytes([0b11000000 | (code_point >> 6), *last[2:]])
    if code_point <= 0xFFFF:
        return bytes([0b11100000 | (code_point >> 12), *last[1:]])
    return bytes([0b11110000 | (code_point >> 18), *last])


def character_starts(data: bytes) -> list[int]:
    return [position for position, byte in enumerate(data) if byte & 0b11000000 != 0b10000000]


def cut(text: str, limit: int) -> str:
    result = ""
    for character in text:
        if count_bytes(result + character) > limit:
            break
        result += character
    return result


WRONG: dict[str, list[Any]] = {
    "count_bytes": [len],  # Code points.
    "utf8_length": [
        lambda point: 1 + (point >= 0x7F) + (point >= 0x7FF) + (point >= 0xFFFF),  # < for <=.
        lambda point: count_bytes(chr(point)),  # The task excludes `encode`, also in a function of ours.
    ],
    # Two bytes for everything else, as for the example of the page.
    "encode_code_point": [
        lambda point: (
            bytes([point])
            if point <= 0x7F
            else bytes([(0b11000000 | (point >> 6)) & 0xFF, 0b10000000 | (point & 0b111111)])
        ),
        lambda point: bytes(chr(point), "utf-8"),  # The task excludes `chr`.
    ],
    "character_starts": [lambda data: [at for at, byte in enumerate(data) if byte < 0b10000000]],  # ASCII.
    "cut": [lambda text, limit: text.encode("utf-8")[:limit].decode("utf-8", "replace")],  # Ends in U+FFFD.
}
