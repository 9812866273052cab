"""A typical mistake in each exercise of chapter 5."""

from __future__ import annotations

from bpe_tokenizer.reference import GPT2_SPLIT_PATTERN, count_pairs, split

# Both spaces in one piece.
hand_pieces = ["We", "'ve", " paid", " $", "20", "  ", "for", " 2", " hats", "!"]


def shift_ids(ids: list[int]) -> list[int]:
    return [number - 1 for number in ids]  # The bytes, too.


def count_in_pieces(pieces: list[str]) -> dict[tuple[int, int], int]:
    return count_pairs(list("".join(pieces).encode("utf-8")))  # Across the ends.


def mixed_tokens(vocab: dict[int, bytes]) -> list[int]:
    # Parts of characters count, because they become U+FFFD.
    texts = {number: token.decode("utf-8", errors="replace") for number, token in vocab.items()}
    return sorted(number for number, text in texts.items() if len(split(text, GPT2_SPLIT_PATTERN)) > 1)


digit_pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"  # With the space.
