"""Splitting, training and encoding as simply as possible: the oracle of the tests for the fast core.

`train_merges` counts all pairs again for each merge, and `encode_piece` scans all pairs for each merge.
No state is kept between two steps, so no state can be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias

from bpe_tokenizer.reference import count_pairs, merge_pair, split
from bpe_tokenizer.reference.characters import BYTE_CHARACTERS

__all__ = ["TieBreak", "encode_piece", "split", "train_merges"]

TieBreak: TypeAlias = Literal["first", "largest", "huggingface"]
Pair: TypeAlias = tuple[bytes, bytes]

# The bytes in the order of their printable characters: "!" is first, the space is among the last.
BYTES_IN_PRINTABLE_ORDER = [
    bytes([byte]) for byte in sorted(range(256), key=lambda byte: BYTE_CHARACTERS[byte])
]


def train_merges(
    piece_counts: Mapping[bytes, int],
    num_new_tokens: int,
    tie_break: TieBreak = "first",
    min_frequency: int = 0,
    max_token_length: int | None = None,
) -> list[Pair]:
    """Learn merges from counted pieces.

    A token is its bytes: a merge whose bytes are a token already makes no new token. Of the most frequent
    pairs, `"first"` takes that seen first, `"largest"` that whose (left bytes, right bytes) are the greatest,
    `"huggingface"` the smallest in `BpeTrainer`'s order: bytes by their printable characters, then learned
    tokens by age, https://github.com/huggingface/tokenizers/blob/main/tokenizers/src/models/bpe/trainer.rs

    >>> table = {b"low": 5, b"lower": 2, b"newest": 6, b"widest": 3}
    >>> train_merges(table, 2)
    [(b'e', b's'), (b'es', b't')]
    >>> train_merges(table, 2, tie_break="largest")
    [(b's', b't'), (b'e', b'st')]
    >>> train_merges(table, 2, tie_break="huggingface")
    [(b'e', b's'), (b'es', b't')]
    """
    words = [([bytes([byte]) for byte in piece], count) for piece, count in piece_counts.items()]
    order = {token: i for i, token in enumerate(BYTES_IN_PRINTABLE_ORDER)}
    merges: list[Pair] = []
    while len(order) < 256 + num_new_tokens:
        counts: dict[Pair, int] = {}
        for tokens, count in words:
            count_pairs(tokens, counts, count)
        if max_token_length is not None:
            counts = {
                pair: count for pair, count in counts.items() if len(pair[0] + pair[1]) <= max_token_length
            }
        most = max(counts.values(), default=0)
        if most < max(min_frequency, 1):
            break
        best = break_tie([pair for pair, count in counts.items() if count == most], tie_break, order)
        merges.append(best)
        order.setdefault(best[0] + best[1], len(order))
        words = [(merge_pair(tokens, best, best[0] + best[1]), count) for tokens, count in words]
    return merges


def break_tie(pairs: Sequence[Pair], tie_break: TieBreak, order: Mapping[bytes, int]) -> Pair:
    """Choose among equally frequent pairs, in the order in which they were seen.

    >>> break_tie([(b"e", b"s"), (b"s", b"t")], "largest", {})
    (b's', b't')
    """
    if tie_break == "largest":
        return max(pairs)
    if tie_break == "huggingface":
        return min(pairs, key=lambda pair: (order[pair[0]], order[pair[1]]))
    return pairs[0]


def encode_piece(piece: bytes, merges: Sequence[Pair]) -> list[bytes]:
    """Merge a piece: repeat the pair of the lowest rank, and of equal ranks the leftmost.

    Each step merges one occurrence, as tiktoken and Hugging Face do. For learned merges the result is the
    same as merging all occurrences in one step; for an arbitrary list it may differ.

    >>> encode_piece(b"lowest", [(b"l", b"o"), (b"lo", b"w"), (b"e", b"s"), (b"s", b"t")])
    [b'low', b'es', b't']
    >>> encode_piece(b"abab", [(b"ab", b"a"), (b"a", b"b")])
    [b'aba', b'b']
    """
    ranks: dict[Pair, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair, rank)
    tokens = [bytes([byte]) for byte in piece]
    while True:
        possible = [(ranks[pair], i) for i, pair in enumerate(pairwise(tokens)) if pair in ranks]
        if not possible:
            return tokens
        _, i = min(possible)
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
