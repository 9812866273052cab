"""Answers to the exercises of chapter 5: right ones, and typical mistakes."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer.reference import GPT2_SPLIT_PATTERN as GPT2
from bpe_tokenizer.reference import count_pairs, split

hand_pieces = ["We", "'ve", " paid", " $", "20", " ", " for", " 2", " hats", "!"]


def shift_ids(ids: list[int]) -> list[int]:
    return [number - 1 if number > 256 else number for number in ids]


def count_in_pieces(pieces: list[str]) -> dict[tuple[int, int], int]:
    counts: dict[tuple[int, int], int] = {}
    for piece in pieces:
        counts = count_pairs(list(piece.encode("utf-8")), counts)
    return counts


def mixed_tokens(vocab: dict[int, bytes]) -> list[int]:
    mixed = []
    for number, token in vocab.items():
        try:
            text = token.decode("utf-8")
        except UnicodeDecodeError:
            continue
        if len(split(text, GPT2)) > 1:
            mixed.append(number)
    return sorted(mixed)


digit_pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


WRONG: dict[str, list[Any]] = {
    # Both spaces in one piece.
    "hand_pieces": [["We", "'ve", " paid", " $", "20", "  ", "for", " 2", " hats", "!"]],
    "shift_ids": [lambda ids: [number - 1 for number in ids]],  # The bytes, too.
    "count_in_pieces": [lambda pieces: count_pairs(list("".join(pieces).encode("utf-8")))],  # Of the whole.
    # Parts of characters count, because they become U+FFFD.
    "mixed_tokens": [
        lambda vocab: [
            each for each in sorted(vocab) if len(split(vocab[each].decode(errors="replace"), GPT2)) > 1
        ]
    ],
    "digit_pattern": [digit_pattern.replace(r"\p{N}|", r" ?\p{N}|")],  # With the space.
}
