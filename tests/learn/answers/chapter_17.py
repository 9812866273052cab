"""Answers to the exercises of chapter 17: right ones, and typical mistakes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

from bpe_tokenizer.reference import GPT2_SPLIT_PATTERN, merge_pair, split

BytesPair = tuple[bytes, bytes]


def count_pieces(text: str, special: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for document in text.split(special):
        counts.update(split(document, GPT2_SPLIT_PATTERN))
    return dict(counts)


def chunk_starts(data: bytes, number: int, special: bytes) -> list[int]:
    starts = {0}
    for k in range(1, number):
        found = data.find(special, len(data) * k // number)
        if found >= 0:
            starts.add(found)
    return sorted(starts)


def train_bpe(pieces: dict[str, int], number: int) -> list[BytesPair]:
    words = [[bytes([byte]) for byte in piece.encode()] for piece in pieces]
    times = list(pieces.values())
    counts: dict[BytesPair, int] = defaultdict(int)
    where: dict[BytesPair, set[int]] = defaultdict(set)
    for index, word in enumerate(words):
        for pair in pairwise(word):
            counts[pair] += times[index]
            where[pair].add(index)
    merges: list[BytesPair] = []
    while len(merges) < number:
        best = max(counts, key=lambda pair: (counts[pair], pair), default=None)
        if best is None or counts[best] == 0:
            break
        merges.append(best)
        for index in list(where[best]):
            for pair in pairwise(words[index]):
                counts[pair] -= times[index]
            words[index] = merge_pair(words[index], best, best[0] + best[1])
            for pair in pairwise(words[index]):
                counts[pair] += times[index]
                where[pair].add(index)
        del counts[best]
    return merges


def encode_lines(encode: Callable[[str], list[int]], lines: Iterable[str]) -> Iterator[int]:
    for line in lines:
        yield from encode(line)


def compression(tokenizers: dict[str, Any], texts: dict[str, str]) -> dict[tuple[str, str], float]:
    table = {}
    for name, tokenizer in tokenizers.items():
        for other, text in texts.items():
            ids = tokenizer.encode(text)
            if ids:
                table[name, other] = len(text.encode()) / len(ids)
    return table


def first_seen(pieces: dict[str, int], number: int) -> list[BytesPair]:
    words = [([bytes([byte]) for byte in piece.encode()], times) for piece, times in pieces.items()]
    merges: list[BytesPair] = []
    for _ in range(min(number, 4)):
        counts: Counter[BytesPair] = Counter()
        for word, times in words:
            for pair in pairwise(word):
                counts[pair] += times
        if not counts:
            break
        merges.append(counts.most_common(1)[0][0])
        words = [(merge_pair(word, merges[-1], b"".join(merges[-1])), times) for word, times in words]
    return merges


def encode_all(encode: Callable[[str], list[int]], lines: Iterable[str]) -> list[int]:
    read = [line for line, _ in zip(lines, range(100), strict=False)]
    return [token_id for line in read for token_id in encode(line)]


WRONG: dict[str, list[Any]] = {
    # Splits the special token too.
    "count_pieces": [lambda text, special: dict(Counter(split(text, GPT2_SPLIT_PATTERN)))],
    # Cuts inside of documents.
    "chunk_starts": [lambda data, number, special: sorted({len(data) * k // number for k in range(number)})],
    "train_bpe": [first_seen],  # Another tie.
    "encode_lines": [encode_all],
    # Characters per token.
    "compression": [
        lambda tokenizers, texts: {
            (name, other): len(text) / len(tokenizer.encode(text))
            for name, tokenizer in tokenizers.items()
            for other, text in texts.items()
            if text
        }
    ],
}
