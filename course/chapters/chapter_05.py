"""Checks of the exercises of chapter 5."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.reference import (
    GPT2_SPLIT_PATTERN,
    BasicBPE,
    RegexBPETokenizer,
    TokenizerError,
    count_pairs,
    split,
)
from course.exercise import WrongAnswer, compared, exercise, expect_equal, shortened

_DOGS = " ".join(f"{owner} dog{mark}" for mark in ".!?" for owner in ("a", "my", "big", "old", "wet", "hot"))


@exercise(
    "At each position, try the alternatives in their order; look again at the two spaces of the example."
)
def _check_hand_pieces(answer: Any) -> None:
    text = "We've paid $20  for 2 hats!"
    if not isinstance(answer, (list, tuple)) or not all(isinstance(piece, str) for piece in answer):
        raise WrongAnswer(f"`hand_pieces` must be a list of strings: you have {shortened(answer)}")
    if "".join(answer) != text:
        raise WrongAnswer(f"the pieces joined are {shortened(''.join(answer))}, not the text")
    for number, (piece, right) in enumerate(zip(answer, split(text, GPT2_SPLIT_PATTERN), strict=False), 1):
        expect_equal(piece, right, f"piece {number}")
    expect_equal(answer, split(text, GPT2_SPLIT_PATTERN), "the list of the pieces")


@compared(
    "The bytes keep their ids, and only learned ids change.",
    [([259, 100, 259, 97, 99],), ([257],), ([0, 255, 257, 258, 50_000],), ([],), ([97, 98],)],
)
def _shift_ids(ids: list[int]) -> list[int]:
    return [token_id - 1 if token_id > 256 else token_id for token_id in ids]


@compared(
    "Count each piece into the same `dict`, as bytes and not as characters.",
    [
        *((["ab", "ab"],), (["my", " dog", ".", " my", " dog", "!"],), (["aaa", "a", "aa"],)),
        *((["né", "né!"],), (["東京", "京"],), (["", "a", "ab"],), ([],)),
    ],
)
def _count_in_pieces(pieces: list[str]) -> dict[tuple[int, int], int]:
    counts: dict[tuple[int, int], int] = {}
    for piece in pieces:
        count_pairs(piece.encode("utf-8"), counts)
    return counts


def _vocabularies() -> list[tuple[dict[int, bytes]]]:
    return [
        ({256: b" dog", 257: b" dog.", 258: b"dog! ", 259: b"a1", 260: b" 12", 261: b"\n  "},),
        ({300: b"b.", 7: b"a.", 8: "né".encode(), 9: "é.".encode(), 10: b"'ll", 11: b"I'll", 12: b"."},),
        ({256: b"a.\xc3", 257: b"\xa9", 258: b"(x", 259: b"\tx", 260: b"a b"},),
        (BasicBPE(275).train(_DOGS).vocab,),
        (RegexBPETokenizer(GPT2_SPLIT_PATTERN).train(_DOGS, 275).vocab,),
        ({},),
    ]


@compared(
    "Decode each token inside `try`, skip it on `UnicodeDecodeError`, and count the pieces of `split`.",
    _vocabularies,
)
def _mixed_tokens(vocab: dict[int, bytes]) -> list[int]:
    def is_mixed(token: bytes) -> bool:
        text = token.decode("utf-8", "ignore")
        return text.encode() == token and len(split(text, GPT2_SPLIT_PATTERN)) > 1

    return [token_id for token_id, token in sorted(vocab.items()) if is_mixed(token)]


def _digits_apart(text: str) -> list[str]:
    """Split as GPT-2 does, and cut the numbers into single digits."""
    pieces: list[str] = []
    for piece in split(text, GPT2_SPLIT_PATTERN):
        pieces += piece if piece.strip().isnumeric() else [piece]
    return pieces


@exercise("Only the third of the six alternatives changes.")
def _check_digit_pattern(answer: Any) -> None:
    if not isinstance(answer, str):
        raise WrongAnswer(f"`digit_pattern` must be a string: you have {shortened(answer)}")
    for text in (
        *("a 12", "2026-11-24", "I'll feed 2 dogs,  OK?", "room 101b, x2y", "it's 3.14\n  or 22/7  "),
        *("½ ٣٤ 東京 1", "x ½, ½½ and x²! Ⅷ", "  many   spaces\n\n\tthen 7"),
    ):
        try:
            pieces = split(text, answer)
        except TokenizerError as error:
            raise WrongAnswer(str(error)) from error
        expected = _digits_apart(text)
        if pieces != expected:
            raise WrongAnswer(
                f"split({text!r}, digit_pattern) gives {shortened(pieces)}, expected {shortened(expected)}"
            )
