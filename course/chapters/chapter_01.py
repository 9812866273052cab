"""Checks of the exercises of chapter 1."""

from __future__ import annotations

import math
from typing import Any

from course.exercise import exercise, expect_call

_TEXTS = ("hello", "", "aaa", "the cat in the hat", "Zürich, 東京 and 😀\n")


@exercise("A `set` holds every character once, and `sorted` makes a sorted list of it.")
def _check_character_vocabulary(answer: Any) -> None:
    for text in _TEXTS:
        expect_call(answer, (text,), sorted(set(text)))


@exercise("Make a `dict` from each character to its position; `get` has a second argument for missing keys.")
def _check_encode_characters(answer: Any) -> None:
    vocabulary = sorted(set("the hello cat"))
    for text in _TEXTS:
        expect_call(answer, (text, vocabulary), _encoded(text, vocabulary))
    expect_call(answer, ("cab", ["c", "a", "b"]), [0, 1, 2])
    expect_call(answer, ("abba", []), [-1, -1, -1, -1])


def _encoded(text: str, vocabulary: list[str]) -> list[int]:
    return [vocabulary.index(character) if character in vocabulary else -1 for character in text]


@exercise("Compare whole words, not parts of the text, and divide by the number of the words of `text`.")
def _check_unknown_share(answer: Any) -> None:
    for training_text, text, share in (
        ("the cat", "the dog", 1 / 2),
        ("the cat", "the cat the", 0.0),
        ("the cat", "dog dog the", 2 / 3),
        ("the cat", "at he", 1.0),
        ("The cat", "the cat", 1 / 2),
        ("one two three", "one  two\nfour", 1 / 3),
        ("", "one", 1.0),
        ("one", "", 0.0),
        ("one", " \n", 0.0),
    ):
        expect_call(answer, (training_text, text), share)


@exercise("Bytes are not characters: `len(text)` is the number of characters.")
def _check_compression_ratio(answer: Any) -> None:
    for text, ids in (
        (" walking reads", [266, 264, 273, 115]),
        ("abc", [97, 98, 99]),
        ("né", [300]),
        ("東京", [400, 401, 402]),
        ("hello", [500, 111]),
        ("", []),
    ):
        expect_call(answer, (text, ids), len(text.encode("utf-8")) / len(ids) if ids else 0.0)


@exercise("Round the number of tokens up, and then square it.")
def _check_table_numbers(answer: Any) -> None:
    for vocab_size, width, text_length, characters in (
        (256, 8, 100, 1),
        (50_257, 768, 1_000, 4),
        (1_000, 16, 10, 3),
        (2, 3, 7, 3.5),
        (512, 4, 1, 4),
        (512, 4, 0, 4),
    ):
        tokens = math.ceil(text_length / characters)
        arguments = (vocab_size, width, text_length, characters)
        expect_call(answer, arguments, (vocab_size * width, tokens * tokens))
