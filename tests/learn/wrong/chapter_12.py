"""Wrong answers to the exercises of chapter 12."""

from __future__ import annotations

import base64
import itertools


def parse_line(line: bytes) -> tuple[bytes, bytes]:
    # The rank stays bytes.
    token, rank = line.split()
    return base64.b64decode(token), rank


def byte_ids() -> list[int]:
    # The order itself: the byte of each id, not the id of each byte.
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return visible + [byte for byte in range(256) if byte not in visible]


def recover(ranks: dict[bytes, int], token: bytes) -> tuple[bytes, bytes] | None:
    # The first split into two tokens, whatever the merges are.
    for i in range(1, len(token)):
        if token[:i] in ranks and token[i:] in ranks:
            return token[:i], token[i:]
    return None


def recover_2(ranks: dict[bytes, int], token: bytes) -> tuple[bytes, bytes] | None:
    # All tokens but this one, and not only those of lower ranks.
    parts = [token[i : i + 1] for i in range(len(token))]
    while True:
        joined = [left + right for left, right in itertools.pairwise(parts)]
        allowed = [(ranks[each], i) for i, each in enumerate(joined) if each in ranks and each != token]
        if not allowed:
            return (parts[0], parts[1]) if len(parts) == 2 else None
        _, i = min(allowed)
        parts[i : i + 2] = [joined[i]]


def encode_piece(ranks: dict[bytes, int], piece: bytes) -> list[int]:
    # The longest token first, as WordPiece does.
    ids = []
    while piece:
        length = max(n for n in range(1, len(piece) + 1) if piece[:n] in ranks)
        ids.append(ranks[piece[:length]])
        piece = piece[length:]
    return ids
