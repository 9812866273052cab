"""Checks of the exercises of chapter 2."""

from __future__ import annotations

from course.exercise import compared

_TEXTS = ("", "a", "né!", "привет", "你好", "😀 x", "👍🏽", "e\u0301", "a\u07ff\u0800\uffff\U00010000")
_CODE_POINTS = (
    *(0, 65, 127, 128, 233, 0x7FF, 0x800, 0x20AC, 0x4E2D),
    *(0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF),
)


@compared("`encode` gives the bytes, and `len` of `bytes` counts them.", [(text,) for text in _TEXTS])
def _count_bytes(text: str) -> int:
    return len(text.encode("utf-8"))


@compared(
    "Compare with the last code points of the table: 0x7F, 0x7FF and 0xFFFF.",
    [(code_point,) for code_point in _CODE_POINTS],
    *("encode", "chr"),
)
def _utf8_length(code_point: int) -> int:
    return len(chr(code_point).encode("utf-8"))


@compared(
    "One `if` for each row of the table; `bytes([...])` makes `bytes` of numbers.",
    [(code_point,) for code_point in _CODE_POINTS],
    *("encode", "chr"),
)
def _encode_code_point(code_point: int) -> bytes:
    return chr(code_point).encode("utf-8")


@compared(
    "The first two bits of a continuation byte are `10`: look at `byte & 0b11000000`.",
    [(text.encode("utf-8"),) for text in _TEXTS],
)
def _character_starts(data: bytes) -> list[int]:
    text = data.decode("utf-8")
    return [len(text[:position].encode("utf-8")) for position in range(len(text))]


@compared(
    "Add up the bytes character by character, and stop when the next character does not fit.",
    [
        *((text, limit) for text in _TEXTS for limit in range(len(text.encode("utf-8")) + 2)),
        ("a�b", 4),  # The text itself has a replacement character: it is not a broken one.
    ],
)
def _cut(text: str, limit: int) -> str:
    beginnings = [text[:end] for end in range(len(text) + 1)]
    return max((text for text in beginnings if len(text.encode("utf-8")) <= limit), key=len)
