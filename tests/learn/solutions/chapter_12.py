"""Right answers to the exercises of chapter 12."""

from __future__ import annotations

import base64
import itertools


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
