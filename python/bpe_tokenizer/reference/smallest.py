"""1. The smallest BPE: count the pairs of neighbours, merge the most frequent one, repeat.

This file is the whole of byte-pair encoding. A token is an id, an `int`. The ids 0 to 255 are the bytes, and
each merge makes the next id. The later files add one idea each, and change nothing here.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import inf
from typing import TypeAlias, TypeVar

Token = TypeVar("Token")  # An id here. Later files merge strings with the same two functions.
Pair: TypeAlias = tuple[int, int]
PairTable: TypeAlias = dict[Pair, int]  # A count, a rank or a new id for each pair.


def count_pairs(
    tokens: Sequence[Token], tokens_stats: dict[tuple[Token, Token], int] | None = None, times: int = 1
) -> dict[tuple[Token, Token], int]:
    """Count how often each pair of neighbouring tokens occurs.

    Pairs may overlap: three equal tokens in a row are two pairs. The dict keeps the order in which the pairs
    were first seen.

    Args:
        tokens: The tokens of a text, in order.
        tokens_stats: Counts to add to (changed in place); None starts from nothing.
        times: How often the text occurs.

    Returns:
        The count of each pair: `tokens_stats` if given, otherwise a new dict.

    >>> count_pairs([1, 2, 1, 2, 3])
    {(1, 2): 2, (2, 1): 1, (2, 3): 1}
    >>> count_pairs([1, 1, 1], times=10)
    {(1, 1): 20}
    """
    counts = {} if tokens_stats is None else tokens_stats
    for pair in pairwise(tokens):
        counts[pair] = counts.get(pair, 0) + times
    return counts


compute_pair_of_tokens_stats = count_pairs


def merge_pair(tokens: Sequence[Token], pair: tuple[Token, Token], idx: Token) -> list[Token]:
    """Replace every occurrence of a pair by a new token, from left to right.

    Args:
        tokens: The tokens of a text, in order.
        pair: The two neighbours to merge.
        idx: The token that replaces them: the new id.

    Returns:
        The new tokens.

    >>> merge_pair([5, 6, 6, 7, 8, 9, 9, 10], (6, 7), 100)
    [5, 6, 100, 8, 9, 9, 10]
    >>> merge_pair([1, 1, 1], (1, 1), 256)  # the left one first
    [256, 1]
    """
    merged: list[Token] = []
    position = 0
    while position < len(tokens):
        if tuple(tokens[position : position + 2]) == pair:
            merged.append(idx)
            position += 2
        else:
            merged.append(tokens[position])
            position += 1
    return merged


class BasicBPE:
    """The smallest tokenizer: byte-pair encoding of the bytes of a text.

    The example of https://en.wikipedia.org/wiki/Byte-pair_encoding: in `aaabdaaabac`, "aa" is the most
    frequent pair at first. Then "aa" + "a" and "a" + "b" both occur twice, and the first seen is merged.

    Args:
        vocab_size: The number of ids: 256 for the bytes, and one for each merge.

    Attributes:
        merges: The id that each merged pair became, in the order of learning.
        vocab: The bytes of each id.

    >>> tokenizer = BasicBPE(259).train("aaabdaaabac")
    >>> tokenizer.merges
    {(97, 97): 256, (256, 97): 257, (257, 98): 258}
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    >>> tokenizer.decode([258, 100, 258, 97, 99])
    'aaabdaaabac'
    """

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self.merges: PairTable = {}
        self.vocab = {byte: bytes([byte]) for byte in range(256)}

    def train(self, text: str) -> "BasicBPE":
        """Learn the merges of a text: the most frequent pair becomes the next id, until no id is left."""
        ids = list(text.encode("utf-8"))
        for new_id in range(256, self.vocab_size):
            counts = count_pairs(ids)
            if not counts:
                break
            pair = max(counts, key=counts.__getitem__)  # Of equal counts, max takes the pair seen first.
            ids = merge_pair(ids, pair, new_id)
            self.merges[pair] = new_id
            self.vocab[new_id] = self.vocab[pair[0]] + self.vocab[pair[1]]
        return self

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids: apply the merges to its bytes, the one learned first before the others."""
        ids = list(text.encode("utf-8"))
        while len(ids) > 1:
            pair = min(pairwise(ids), key=lambda pair: self.merges.get(pair, inf))
            if pair not in self.merges:
                break
            ids = merge_pair(ids, pair, self.merges[pair])
        return ids

    def decode(self, tokens: Iterable[int]) -> str:
        """Turn ids into text. Bytes that are not UTF-8 become U+FFFD."""
        return b"".join(self.vocab[token_id] for token_id in tokens).decode("utf-8", "replace")
