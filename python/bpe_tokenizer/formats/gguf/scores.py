"""SentencePiece-style BPE as llama.cpp runs it, by the tokens' scores, as a list of merges.

llama.cpp begins with the characters of a text and joins, as long as it can, the two neighbours that together
are the text of the token with the best score, the leftmost of equals (`llm_tokenizer_spm_session` in its
`llama-vocab.cpp`). Merges are joined by their rank, the leftmost of equals. So the merges are the ways to
cut a token into two tokens, in the order of the token's scores, and that is exact:

- Of the ways to cut a token only one ever comes about. Within a text, the stretch that becomes a token
  develops as the token's text alone does, because nothing is joined across its edges.
- Merges of one score are joined in the order of their places, which ranks cannot say. But two of them only
  compete where the left one, or what becomes of it, takes the symbol that the right one begins with. It is
  enough that the left ones have lower ranks then (`_order_ties`); a vocabulary for which no order of the merges
  achieves that is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise

from bpe_tokenizer.errors import FormatError

__all__ = ["Pair", "last_merge", "merges_from_scores"]

Pair = tuple[str, str]

# The most work that long tokens may make, in characters copied; the 256,000 tokens of Gemma make 2% of it.
_MAX_WORK = 1_000_000_000
# The most rules about the order of merges of one score.
_MAX_RULES = 1_000_000


def merges_from_scores(scores: Mapping[str, float]) -> list[Pair]:
    """Return the merges that a vocabulary with scores amounts to.

    Args:
        scores: The score of each token, by its text.

    Raises:
        FormatError: No list of merges does the same: the vocabulary has a token that is made of a character
            that is none, or tokens of one score that compete in both directions.

    >>> merges_from_scores({"a": 0, "b": 0, "ab": -1, "abb": -2, "bb": -3})
    [('a', 'b'), ('a', 'bb'), ('ab', 'b'), ('b', 'b')]
    """
    if sum(len(text) ** 2 for text in scores) > _MAX_WORK:
        raise FormatError("the tokens are too long for a vocabulary")
    _check_characters(scores)
    cuts = {text: found for text in scores if len(text) > 1 and (found := _cuts(text, scores))}
    order = sorted(cuts, key=scores.__getitem__, reverse=True)
    tied = {text for pair in pairwise(order) if scores[pair[0]] == scores[pair[1]] for text in pair}
    if not tied:
        return [pair for text in order for pair in cuts[text]]
    made = _last_merges(tied, cuts, scores)
    merges: list[Pair] = []
    for _, group in groupby(order, key=scores.__getitem__):
        texts = list(group)
        if texts[0] in tied:
            merges += _order_ties([text for text in texts if text in made], made, scores)
        else:
            merges += cuts[texts[0]]
    return merges


def _cuts(text: str, scores: Mapping[str, float]) -> list[Pair]:
    return [
        (left, right)
        for at in range(1, len(text))
        if (left := text[:at]) in scores and (right := text[at:]) in scores
    ]


def _check_characters(scores: Mapping[str, float]) -> None:
    """Check that what becomes a token is made of tokens only."""
    missing = {character for character in set().union(*scores) if character not in scores}
    missing.discard(" ")  # which texts do not hold any more when they are merged
    if not missing:
        return
    for text in scores:
        if len(text) > 1 and not missing.isdisjoint(text) and " " not in text and last_merge(text, scores):
            character = next(character for character in text if character in missing)
            raise FormatError(f"the token {text!r} holds {character!r}, which is no token itself")


def _last_merges(
    tied: Iterable[str], cuts: Mapping[str, Sequence[Pair]], scores: Mapping[str, float]
) -> dict[str, Pair]:
    """The two symbols that become each of the tokens that share their scores, or that hold such a token."""
    found = set(tied)
    made: dict[str, Pair] = {}
    for text in sorted(cuts, key=len):
        if text in found or any(left in made or right in made for left, right in cuts[text]):
            pair = last_merge(text, scores)
            if pair is not None:
                made[text] = pair
    return made


def _order_ties(texts: Sequence[str], made: Mapping[str, Pair], scores: Mapping[str, float]) -> list[Pair]:
    """The merges that make tokens of one score, ordered so that the lowest rank is the leftmost place.

    Raises:
        FormatError: There is no such order.
    """
    within = _within(set(texts), made)
    # By a symbol: what has come about when it is taken by its left neighbour, and by its right one.
    by_left: defaultdict[str, set[str]] = defaultdict(set)
    by_right: defaultdict[str, set[str]] = defaultdict(set)
    orders: list[tuple[Collection[str], Collection[str]]] = []
    for text, (left, right) in made.items():
        if text in within and scores[text] >= scores[texts[0]]:
            itself = within[text] & {text}
            by_left[right] |= within.get(left, set()) | itself
            by_right[left] |= within.get(right, set()) | itself
            orders.append((within.get(left, ()), within.get(right, ())))
    orders += [(by_left[symbol], by_right[symbol]) for symbol in by_left.keys() & by_right.keys()]
    if sum(len(first) * len(then) for first, then in orders) > _MAX_RULES:
        raise FormatError(f"the token {texts[0]!r} and {len(texts) - 1} others have the same score")
    before: dict[str, set[str]] = {text: set() for text in texts}
    for first, then in orders:
        for text in then:
            before[text].update(other for other in first if other != text)
    try:
        return [made[text] for text in TopologicalSorter(before).static_order()]
    except CycleError as error:
        names = ", ".join(dict.fromkeys(map(repr, error.args[1])))
        raise FormatError(
            f"the tokens {names} have the same score, so which of them comes about depends on their places "
            "in a text"
        ) from None


def _within(texts: Set[str], made: Mapping[str, Pair]) -> dict[str, set[str]]:
    """Which of the texts come about while a token does, it included, for those where there are any."""
    within: dict[str, set[str]] = {}
    for text, (left, right) in made.items():  # the parts of a token stand before it
        parts = within.get(left, set()) | within.get(right, set()) | (texts & {text})
        if parts:
            within[text] = parts
    return within


def last_merge(text: str, scores: Mapping[str, float]) -> Pair | None:
    """Return the two symbols that become the token when its text is merged alone; None if it never does.

    Args:
        text: The text of two or more characters.
        scores: The score of each token.

    >>> last_merge("abc", {"ab": -1, "bc": -2, "abc": -3})
    ('ab', 'c')
    """
    symbols = list(text)
    while len(symbols) > 2:
        best, at = None, 0
        for index, (left, right) in enumerate(pairwise(symbols)):
            score = scores.get(left + right)
            if score is not None and (best is None or score > best):
                best, at = score, index
        if best is None:
            return None
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    return symbols[0], symbols[1]
