"""Checks of the exercises of chapter 1."""

from __future__ import annotations

import math

from course.exercise import compared

_TEXTS = ("hello", "", "aaa", "the cat in the hat", "Zürich, 東京 and 😀\n")
_KNOWN = sorted(set("the hello cat"))


@compared(
    "A `set` holds every character once, and `sorted` makes a sorted list of it.",
    [(text,) for text in _TEXTS],
)
def _character_vocabulary(text: str) -> list[str]:
    return sorted(set(text))


@compared(
    "Make a `dict` from each character to its position; `get` has a second argument for missing keys.",
    [*((text, _KNOWN) for text in _TEXTS), ("cab", ["c", "a", "b"]), ("abba", [])],
)
def _encode_characters(text: str, vocabulary: list[str]) -> list[int]:
    return [vocabulary.index(character) if character in vocabulary else -1 for character in text]


@compared(
    "Compare whole words, not parts of the text, and divide by the number of the words of `text`.",
    [
        *(("the cat", text) for text in ("the dog", "the cat the", "dog dog the", "at he")),
        *(("The cat", "the cat"), ("one two three", "one  two\nfour")),
        *(("", "one"), ("one", ""), ("one", " \n")),
    ],
)
def _unknown_share(training_text: str, text: str) -> float:
    known, words = training_text.split(), text.split()
    return sum(word not in known for word in words) / len(words) if words else 0.0


@compared(
    "Bytes are not characters: `len(text)` is the number of characters.",
    [
        *((" walking reads", [266, 264, 273, 115]), ("abc", [97, 98, 99]), ("né", [300])),
        *(("東京", [400, 401, 402]), ("hello", [500, 111]), ("", [])),
    ],
)
def _compression_ratio(text: str, ids: list[int]) -> float:
    return len(text.encode("utf-8")) / len(ids) if ids else 0.0


@compared(
    "Round the number of tokens up, and then square it.",
    [
        *((256, 8, 100, 1), (50_257, 768, 1_000, 4), (1_000, 16, 10, 3)),
        *((2, 3, 7, 3.5), (512, 4, 1, 4), (512, 4, 0, 4)),
    ],
)
def _table_numbers(vocab_size: int, width: int, text_length: int, characters: float) -> tuple[int, int]:
    tokens = math.ceil(text_length / characters)
    return vocab_size * width, tokens * tokens
