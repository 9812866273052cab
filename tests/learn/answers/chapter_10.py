"""Answers to the exercises of chapter 10: right ones, and typical mistakes."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.reference import NaiveBPETokenizer, split


def bytes_per_character(text: str) -> float:
    return len(text.encode()) / len(text) if text else 0.0


def premiums(counts: dict[str, int], base: str) -> dict[str, float]:
    return {language: tokens / counts[base] for language, tokens in counts.items()}


def weights(sizes: dict[str, int]) -> dict[str, int]:
    largest = max(sizes.values())
    return {language: round(largest / size) for language, size in sizes.items()}


def cut_words(text: str, pattern: str) -> float:
    words = text.split()
    if not words:
        return 0.0
    cut = [word for word in words if len(split(word, pattern)) > 1]
    return len(cut) / len(words)


def fairest(tokenizers: dict[str, NaiveBPETokenizer], texts: dict[str, str], base: str) -> str:
    largest = {}
    for name, tokenizer in tokenizers.items():
        counts = {language: len(tokenizer.encode(text)) for language, text in texts.items()}
        largest[name] = max(premiums(counts, base).values())
    return min(largest, key=lambda name: largest[name])


WRONG: dict[str, list[Any]] = {
    "bytes_per_character": [lambda text: len(text) / len(text.encode()) if text else 0.0],  # Upside down.
    # Ignores base.
    "premiums": [lambda counts, _: {each: n / min(counts.values()) for each, n in counts.items()}],
    # Rounds down.
    "weights": [lambda sizes: {each: max(sizes.values()) // size for each, size in sizes.items()}],
    # Counts pieces, not words.
    "cut_words": [lambda text, pattern: 1 - len(text.split()) / len(split(text, pattern)) if text else 0.0],
    # The shortest, not the fairest.
    "fairest": [
        lambda tokenizers, texts, base: min(
            tokenizers, key=lambda name: sum(len(tokenizers[name].encode(text)) for text in texts.values())
        )
    ],
}
