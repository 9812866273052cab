"""Checks of the exercises of chapter 2."""

from __future__ import annotations

from typing import Any

from course.exercise import exercise, expect_call

_TEXTS = ("", "a", "né!", "привет", "你好", "😀 x", "👍🏽", "e\u0301", "a\u07ff\u0800\uffff\U00010000")
_CODE_POINTS = (
    *(0, 65, 127, 128, 233, 0x7FF, 0x800, 0x20AC, 0x4E2D),
    *(0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF),
)


@exercise("`encode` gives the bytes, and `len` of `bytes` counts them.")
def _check_count_bytes(answer: Any) -> None:
    for text in _TEXTS:
        expect_call(answer, (text,), len(text.encode("utf-8")))


@exercise("Compare with the last code points of the table: 0x7F, 0x7FF and 0xFFFF.", "encode", "chr")
def _check_utf8_length(answer: Any) -> None:
    for code_point in _CODE_POINTS:
        expect_call(answer, (code_point,), len(chr(code_point).encode("utf-8")))


@exercise(
    "One `if` for each row of the table; `bytes([...])` makes `bytes` of numbers.",
    "encode",
    "chr",
)
def _check_encode_code_point(answer: Any) -> None:
    for code_point in _CODE_POINTS:
        expect_call(answer, (code_point,), chr(code_point).encode("utf-8"))


@exercise("The first two bits of a continuation byte are `10`: look at `byte & 0b11000000`.")
def _check_character_starts(answer: Any) -> None:
    for text in _TEXTS:
        starts = [len(text[:position].encode("utf-8")) for position in range(len(text))]
        expect_call(answer, (text.encode("utf-8"),), starts)


@exercise("Add up the bytes character by character, and stop when the next character does not fit.")
def _check_cut(answer: Any) -> None:
    for text in _TEXTS:
        for limit in range(len(text.encode("utf-8")) + 2):
            expect_call(answer, (text, limit), _cut(text, limit))
    # The text itself has a replacement character: it is not a broken one.
    expect_call(answer, ("a�b", 4), "a�")


def _cut(text: str, limit: int) -> str:
    beginnings = [text[:end] for end in range(len(text) + 1)]
    return max((text for text in beginnings if len(text.encode("utf-8")) <= limit), key=len)
