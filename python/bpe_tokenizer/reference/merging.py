"""Training and encoding, as two loops: the whole of byte-pair encoding.

Training looks for the most frequent pair of neighbours, makes it a token, and looks again. What it learns is
a list of pairs, the *merges*; the place of a merge in the list is its *rank*. Encoding does the merges again
on another text, the lowest rank first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from .pairs import Pair, Token, count_pairs, merge_pair

__all__ = ["learn_merges", "lowest_ranked_pair", "merge_all", "origins", "rank_merges"]


def learn_merges(
    pieces: Mapping[tuple[Token, ...], int], num_merges: int
) -> Iterator[tuple[Pair[Token], int]]:
    """Yield the merges that training learns, each with the number of times its pair was there.

    Each merge makes a token that was not there before. Between the same two cuts the same text always
    becomes the same tokens, so once a pair is merged, nothing is left that could make its token another way.

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
        best = max(counts, key=counts.__getitem__)  # of equals, max takes the one seen first
        yield best, counts[best]
        words = [(merge_pair(tokens, best), times) for tokens, times in words]


def rank_merges(merges: Iterable[Pair[Token]]) -> dict[Pair[Token], int]:
    """Give each merge its rank: its place in the list, counted from 0.

    >>> rank_merges([("l", "o"), ("lo", "w")])
    {('l', 'o'): 0, ('lo', 'w'): 1}
    """
    ranks: dict[Pair[Token], int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair, rank)
    return ranks


def lowest_ranked_pair(tokens: Sequence[Token], ranks: Mapping[Pair[Token], int]) -> Pair[Token] | None:
    """Return the pair of neighbours that was learned first, or None if no pair is a merge.

    >>> lowest_ranked_pair(["f", "l", "o", "w"], {("l", "o"): 0, ("o", "w"): 1})
    ('l', 'o')
    """
    return min((pair for pair in pairwise(tokens) if pair in ranks), key=ranks.__getitem__, default=None)


def merge_all(tokens: Sequence[Token], ranks: Mapping[Pair[Token], int]) -> list[Token]:
    """Do every merge that can be done, the lowest rank first.

    The order matters: "flow" below has both ("l", "o") and ("o", "w"), and only one of them can have the "o".

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
    """Tell for each learned token which two it was made from.

    >>> origins([("l", "o"), ("lo", "w")])
    {'lo': ('l', 'o'), 'low': ('lo', 'w')}
    """
    made: dict[Token, Pair[Token]] = {}
    for left, right in merges:
        made.setdefault(left + right, (left, right))
    return made
