"""Answers to the exercises of chapter 12: right ones, and typical mistakes."""

from __future__ import annotations

import base64
import itertools
from typing import Any


def parse_line(line: bytes) -> tuple[bytes, int]:
    token, rank = line.split()
    return base64.b64decode(token), int(rank)


def byte_ids() -> list[int]:
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    order = visible + [byte for byte in range(256) if byte not in visible]
    return [order.index(byte) for byte in range(256)]


def merge(piece: bytes, ranks: dict[bytes, int], below: int | None = None) -> list[bytes]:
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > 1:
        joined = [left + right for left, right in itertools.pairwise(parts)]
        allowed = [(ranks[token], i) for i, token in enumerate(joined) if token in ranks]
        if not allowed:
            break
        rank, i = min(allowed)
        if below is not None and rank >= below:
            break
        parts[i : i + 2] = [joined[i]]
    return parts


def recover(ranks: dict[bytes, int], token: bytes) -> tuple[bytes, bytes] | None:
    parts = merge(token, ranks, below=ranks[token])
    return (parts[0], parts[1]) if len(parts) == 2 else None


def encode_piece(ranks: dict[bytes, int], piece: bytes) -> list[int]:
    return [ranks[part] for part in merge(piece, ranks)]


def first_split(ranks: dict[bytes, int], token: bytes) -> tuple[bytes, bytes] | None:
    splits = ((token[:i], token[i:]) for i in range(1, len(token)))  # Whatever the merges are.
    return next(((left, right) for left, right in splits if left in ranks and right in ranks), None)


def all_other_tokens(ranks: dict[bytes, int], token: bytes) -> tuple[bytes, bytes] | None:
    # All tokens but this one, and not only those of lower ranks.
    parts = merge(token, {each: rank for each, rank in ranks.items() if each != token})
    return (parts[0], parts[1]) if len(parts) == 2 else None


def longest_first(ranks: dict[bytes, int], piece: bytes) -> list[int]:
    ids = []
    while piece:  # As WordPiece does.
        length = max(n for n in range(1, len(piece) + 1) if piece[:n] in ranks)
        ids.append(ranks[piece[:length]])
        piece = piece[length:]
    return ids


WRONG: dict[str, list[Any]] = {
    "parse_line": [lambda line: (base64.b64decode(line.split()[0]), line.split()[1])],  # Bytes.
    # The order itself: the byte of each id, not the id of each byte.
    "byte_ids": [lambda: [byte_ids().index(byte) for byte in range(256)]],
    "recover": [first_split, all_other_tokens],
    "encode_piece": [longest_first],
}
