"""Answers to the exercises of chapter 11: right ones, and typical mistakes."""

from __future__ import annotations

from typing import Any


def count_letter(vocab: dict[int, bytes], ids: list[int], letter: str) -> int:
    return b"".join(vocab[token] for token in ids).decode("utf-8").count(letter)


def group_digits(number: str) -> list[str]:
    groups: list[str] = []
    while number:
        groups.insert(0, number[-3:])
        number = number[:-3]
    return groups


def never_used(vocab_size: int, rows: list[list[int]]) -> list[int]:
    used = set()
    for row in rows:
        used.update(row)
    return [token for token in range(256, vocab_size) if token not in used]


def heal(vocab: dict[int, bytes], ids: list[int]) -> tuple[list[int], bytes, list[int]]:
    if not ids:
        return [], b"", sorted(vocab)
    prefix = vocab[ids[-1]]
    return ids[:-1], prefix, sorted(token for token in vocab if vocab[token].startswith(prefix))


def heal_to_longer(vocab: dict[int, bytes], ids: list[int]) -> tuple[list[int], bytes, list[int]]:
    kept, prefix, allowed = heal(vocab, ids)
    return kept, prefix, [token for token in allowed if vocab[token] != prefix]  # Not the removed one.


WRONG: dict[str, list[Any]] = {
    "count_letter": [
        # Each token is decoded separately, so a letter in two tokens is lost.
        lambda vocab, ids, letter: sum(vocab[each].decode("utf-8", "replace").count(letter) for each in ids),
        # Only the first byte of the letter is counted.
        lambda vocab, ids, letter: b"".join(vocab[each] for each in ids).count(letter.encode("utf-8")[0]),
    ],
    # From the left, as GPT-4 does.
    "group_digits": [lambda number: [number[i : i + 3] for i in range(0, len(number), 3)]],
    "never_used": [
        lambda vocab_size, rows: never_used(vocab_size - 1, rows),  # The last id is missing.
        # The order of a set is often, but not always, the sorted order.
        lambda vocab_size, rows: list(set(range(256, vocab_size)).difference(*rows)),
    ],
    "heal": [heal_to_longer],
}
