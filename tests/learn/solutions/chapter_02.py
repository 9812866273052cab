"""Right answers to the exercises of chapter 2."""

from __future__ import annotations


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
