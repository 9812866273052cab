"""Wrong answers to the exercises of chapter 11."""

from __future__ import annotations


def count_letter(vocab: dict[int, bytes], ids: list[int], letter: str) -> int:
    # Each token is decoded separately, so a letter in two tokens is lost.
    return sum(vocab[token].decode("utf-8", errors="replace").count(letter) for token in ids)


def count_letter_2(vocab: dict[int, bytes], ids: list[int], letter: str) -> int:
    # Only the first byte of the letter is counted.
    return b"".join(vocab[token] for token in ids).count(letter.encode("utf-8")[0])


def group_digits(number: str) -> list[str]:
    # From the left, as GPT-4 does.
    return [number[i : i + 3] for i in range(0, len(number), 3)]


def never_used(vocab_size: int, rows: list[list[int]]) -> list[int]:
    # The last id is missing.
    used = {token for row in rows for token in row}
    return [token for token in range(256, vocab_size - 1) if token not in used]


def never_used_2(vocab_size: int, rows: list[list[int]]) -> list[int]:
    # The order of a set is often, but not always, the sorted order.
    return list(set(range(256, vocab_size)).difference(*rows))


def heal(vocab: dict[int, bytes], ids: list[int]) -> tuple[list[int], bytes, list[int]]:
    # Only longer tokens: the removed one is not allowed any more.
    prefix = vocab[ids[-1]] if ids else b""
    longer = [token for token in vocab if vocab[token].startswith(prefix) and vocab[token] != prefix]
    return ids[:-1], prefix, sorted(longer)
