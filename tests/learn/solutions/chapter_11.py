"""Right answers to the exercises of chapter 11."""

from __future__ import annotations


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
