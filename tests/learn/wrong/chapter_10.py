"""A typical mistake in each exercise of chapter 10."""

from __future__ import annotations

from bpe_tokenizer.reference import NaiveBPETokenizer, split


def bytes_per_character(text: str) -> float:
    return len(text) / len(text.encode()) if text else 0.0  # Upside down.


def premiums(counts: dict[str, int], base: str) -> dict[str, float]:
    return {language: tokens / min(counts.values()) for language, tokens in counts.items()}  # Ignores base.


def weights(sizes: dict[str, int]) -> dict[str, int]:
    largest = max(sizes.values())
    return {language: largest // size for language, size in sizes.items()}  # Rounds down.


def cut_words(text: str, pattern: str) -> float:
    words = text.split()
    return 1 - len(words) / len(split(text, pattern)) if words else 0.0  # Counts pieces, not words.


def fairest(tokenizers: dict[str, NaiveBPETokenizer], texts: dict[str, str], base: str) -> str:
    total = {}
    for name, tokenizer in tokenizers.items():
        total[name] = sum(
            len(tokenizer.encode(text)) for text in texts.values()
        )  # The shortest, not the fairest.
    return min(total, key=lambda name: total[name])
