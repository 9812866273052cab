"""Answers to the exercises of chapter 1: right ones, and typical mistakes."""

from __future__ import annotations

import math
from typing import Any


def character_vocabulary(text: str) -> list[str]:
    return sorted(set(text))


def encode_characters(text: str, vocabulary: list[str]) -> list[int]:
    to_id = {character: number for number, character in enumerate(vocabulary)}
    return [to_id.get(character, -1) for character in text]


def unknown_share(training_text: str, text: str) -> float:
    known = set(training_text.split())
    words = text.split()
    if not words:
        return 0
    return sum(word not in known for word in words) / len(words)


def compression_ratio(text: str, ids: list[int]) -> float:
    return len(text.encode("utf-8")) / len(ids) if ids else 0


def table_numbers(
    vocab_size: int, width: int, text_length: int, characters_in_a_token: float
) -> tuple[int, int]:
    tokens = math.ceil(text_length / characters_in_a_token)
    return vocab_size * width, tokens**2


WRONG: dict[str, list[Any]] = {
    "character_vocabulary": [lambda text: list(dict.fromkeys(text))],  # Not sorted.
    # No -1.
    "encode_characters": [lambda text, vocabulary: [vocabulary.index(c) for c in text if c in vocabulary]],
    # Looks for parts of words: "at" is in "the cat".
    "unknown_share": [
        lambda training_text, text: sum(w not in training_text for w in text.split()) / len(text.split())
    ],
    "compression_ratio": [lambda text, ids: len(text) / len(ids) if ids else 0],  # Characters.
    # Rounded down.
    "table_numbers": [lambda size, width, length, characters: (size * width, (length // characters) ** 2)],
}
