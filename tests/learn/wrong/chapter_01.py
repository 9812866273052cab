"""A typical mistake in each exercise of chapter 1."""

from __future__ import annotations


def character_vocabulary(text: str) -> list[str]:
    return list(dict.fromkeys(text))  # Not sorted.


def encode_characters(text: str, vocabulary: list[str]) -> list[int]:
    return [vocabulary.index(character) for character in text if character in vocabulary]  # No -1.


def unknown_share(training_text: str, text: str) -> float:
    words = text.split()
    # Looks for parts of words: "at" is in "the cat".
    return sum(word not in training_text for word in words) / len(words) if words else 0


def compression_ratio(text: str, ids: list[int]) -> float:
    return len(text) / len(ids) if ids else 0  # Characters.


def table_numbers(
    vocab_size: int, width: int, text_length: int, characters_in_a_token: float
) -> tuple[int, int]:
    tokens = int(text_length // characters_in_a_token)  # Rounded down.
    return vocab_size * width, tokens**2
