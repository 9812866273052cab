"""Right answers to the exercises of chapter 5."""

from __future__ import annotations

from bpe_tokenizer.reference import GPT2_SPLIT_PATTERN, count_pairs, split

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
        if len(split(text, GPT2_SPLIT_PATTERN)) > 1:
            mixed.append(number)
    return sorted(mixed)


digit_pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
