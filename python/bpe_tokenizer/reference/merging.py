"""Training and encoding, as two loops: the whole of byte-pair encoding.

Training finds the most frequent pair of neighbours, makes it a token, and repeats. It learns a list of pairs,
the *merges*; the index of a merge in the list is its *rank*. Encoding applies the merges to another text, the
lowest rank first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from .pairs import Pair, Token, count_pairs, merge_pair

__all__ = ["learn_merges", "lowest_ranked_pair", "merge_all", "origins", "rank_merges"]


def learn_merges(
    pieces: Mapping[tuple[Token, ...], int], num_merges: int
) -> Iterator[tuple[Pair[Token], int]]:
    """Yield the merges that training learns, each with the count of its pair.

    Each merge makes a new token. Equal pieces always have equal tokens, so after a merge no other
    pair can make the same token.

    Args:
        pieces: The distinct pieces of the training text as tokens, and how often each occurs. Nothing is
            learned across the end of a piece.
        num_merges: How many merges to learn; fewer when no pair is left.

    The table of the paper: low 5 times, lower 2, newest 6, widest 3. Both ("e", "s") and ("s", "t") occur
    9 times, and ("e", "s") was seen first.

    >>> table = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
    >>> for pair, count in learn_merges({tuple(word): times for word, times in table.items()}, 4):
    ...     print(pair, count)
    ('e', 's') 9
    ('es', 't') 9
    ('l', 'o') 7
    ('lo', 'w') 7
    """
    words = [(list(tokens), times) for tokens, times in pieces.items()]
    for _ in range(num_merges):
        counts: dict[Pair[Token], int] = {}
        for tokens, times in words:
            count_pairs(tokens, counts, times)
        if not counts:
            return
        best = max(counts, key=counts.__getitem__)  # Of equal counts, max takes the pair seen first.
        yield best, counts[best]
        words = [(merge_pair(tokens, best), times) for tokens, times in words]


def rank_merges(merges: Iterable[Pair[Token]]) -> dict[Pair[Token], int]:
    """Return the rank of each merge: its index in the list, from 0.

    >>> rank_merges([("l", "o"), ("lo", "w")])
    {('l', 'o'): 0, ('lo', 'w'): 1}
    """
    ranks: dict[Pair[Token], int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair, rank)
    return ranks


def lowest_ranked_pair(tokens: Sequence[Token], ranks: Mapping[Pair[Token], int]) -> Pair[Token] | None:
    """Return the pair of neighbours with the lowest rank, or None if no pair is a merge.

    >>> lowest_ranked_pair(["f", "l", "o", "w"], {("l", "o"): 0, ("o", "w"): 1})
    ('l', 'o')
    """
    return min((pair for pair in pairwise(tokens) if pair in ranks), key=ranks.__getitem__, default=None)


def merge_all(tokens: Sequence[Token], ranks: Mapping[Pair[Token], int]) -> list[Token]:
    """Apply merges until none applies, the lowest rank first.

    The order matters: "flow" below has both ("l", "o") and ("o", "w"), but only one of them can use the "o".

    Args:
        tokens: The smallest tokens of a piece, in order.
        ranks: The rank of each merge.

    >>> merge_all(["f", "l", "o", "w"], {("l", "o"): 0, ("o", "w"): 1, ("f", "lo"): 2})
    ['flo', 'w']
    """
    tokens = list(tokens)
    while (pair := lowest_ranked_pair(tokens, ranks)) is not None:
        tokens = merge_pair(tokens, pair)
    return tokens


def origins(merges: Iterable[Pair[Token]]) -> dict[Token, Pair[Token]]:
    """Return the two tokens that each learned token was made from.

    >>> origins([("l", "o"), ("lo", "w")])
    {'lo': ('l', 'o'), 'low': ('lo', 'w')}
    """
    made: dict[Token, Pair[Token]] = {}
    for left, right in merges:
        made.setdefault(left + right, (left, right))
    return made
