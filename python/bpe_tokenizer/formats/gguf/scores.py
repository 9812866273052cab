"""Converts SentencePiece-style BPE with scores, as llama.cpp runs it, to a list of merges.

llama.cpp starts with the characters of a text. It repeatedly joins the two neighbours that together are the
text of the token with the best score, the leftmost of equals (`llm_tokenizer_spm_session` in its
`llama-vocab.cpp`). BPE joins the pair of the lowest rank, the leftmost of equals. So the merges are all
splits of a token into two tokens, in the order of the tokens' scores. This is exact:

- Only one split of a token ever occurs. The range of a text that becomes a token goes through the same steps
  as the token's text alone, because nothing is joined across its ends.
- llama.cpp joins pairs of the same score from left to right, which ranks cannot express. But two such pairs
  compete only where the left one, or a token made from it, takes the first symbol of the right one. It is
  enough that the left one has the lower rank there (`_order_ties`). A vocabulary without such an order is
  refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise
from typing import TypeVar

from bpe_tokenizer.errors import FormatError, shorten

__all__ = ["Pair", "join", "last_merge", "merges_from_scores"]

Pair = tuple[str, str]
_Symbol = TypeVar("_Symbol", str, bytes)

# The bound on copied characters for long tokens; the 256,000 tokens of Gemma copy 2 % of it.
_MAX_WORK = 1_000_000_000
# The bound on constraints for the order of merges with the same score.
_MAX_CONSTRAINTS = 1_000_000


def merges_from_scores(scores: Mapping[str, float]) -> list[Pair]:
    """Return the merges that give the same ids as a vocabulary with scores.

    Args:
        scores: The score of each token, by its text.

    Raises:
        FormatError: No list of merges gives the same ids: a token has a character that is not a token, or
            tokens of the same score compete in both directions.

    >>> merges_from_scores({"a": 0, "b": 0, "ab": -1, "abb": -2, "bb": -3})
    [('a', 'b'), ('a', 'bb'), ('ab', 'b'), ('b', 'b')]
    """
    if sum(len(text) ** 2 for text in scores) > _MAX_WORK:
        raise FormatError(
            "the tokens are too long for a vocabulary: converting their scores to merges would take too "
            "much time"
        )
    _check_characters(scores)
    cuts = {text: found for text in scores if (found := _cuts(text, scores))}
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
    """Check that every token that text can become consists of characters that are tokens."""
    missing = {character for character in set().union(*scores) if character not in scores}
    if not missing:
        return
    for text in scores:
        # A text to merge has no space.
        if not missing.isdisjoint(text) and " " not in text and last_merge(text, scores):
            character = next(character for character in text if character in missing)
            raise FormatError(
                f"the token {shorten(text)} has the character {character!r}, which is not a token"
            )


def _last_merges(
    tied: Iterable[str], cuts: Mapping[str, Sequence[Pair]], scores: Mapping[str, float]
) -> dict[str, Pair]:
    """The last merge of each token that shares its score, or that contains such a token."""
    found = set(tied)
    made: dict[str, Pair] = {}
    for text in sorted(cuts, key=len):
        if text in found or any(left in made or right in made for left, right in cuts[text]):
            pair = last_merge(text, scores)
            if pair is not None:
                made[text] = pair
    return made


def _order_ties(texts: Sequence[str], made: Mapping[str, Pair], scores: Mapping[str, float]) -> list[Pair]:
    """The merges of tokens with the same score, ordered so that of competing pairs the left one is first.

    Raises:
        FormatError: No such order exists.
    """
    within = _within(set(texts), made)
    # For each symbol: the tied tokens that exist when its left or its right neighbour takes it.
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
    if sum(len(first) * len(then) for first, then in orders) > _MAX_CONSTRAINTS:
        raise FormatError(
            f"the token {shorten(texts[0])} and {len(texts) - 1} others have the same score, too many to "
            "order"
        )
    before: dict[str, set[str]] = {text: set() for text in texts}
    for first, then in orders:
        for text in then:
            before[text].update(other for other in first if other != text)
    try:
        # Sorted, so that a file gives the same list in every process.
        ordered = TopologicalSorter({text: sorted(others) for text, others in before.items()})
        return [made[text] for text in ordered.static_order()]
    except CycleError as error:
        names = ", ".join(dict.fromkeys(map(repr, error.args[1])))
        raise FormatError(
            f"the tokens {names} have the same score, so their places in a text decide which one occurs; "
            "give them different scores"
        ) from None


def _within(texts: Set[str], made: Mapping[str, Pair]) -> dict[str, set[str]]:
    """For each token, the tied tokens that merging it makes; tokens without any are absent."""
    within: dict[str, set[str]] = {}
    for text, (left, right) in made.items():  # the parts of a token precede it
        parts = within.get(left, set()) | within.get(right, set()) | (texts & {text})
        if parts:
            within[text] = parts
    return within


def last_merge(text: str, scores: Mapping[str, float]) -> Pair | None:
    """Return the two symbols of the last merge of a token's text; None if merging does not make the token.

    Args:
        text: The text of two or more characters.
        scores: The score of each token.

    >>> last_merge("abc", {"ab": -1, "bc": -2, "abc": -3})
    ('ab', 'c')
    """
    left, right, *others = join(list(text), lambda left, right: scores.get(left + right), until=2)
    return None if others else (left, right)


def join(
    symbols: list[_Symbol], score: Callable[[_Symbol, _Symbol], float | None], until: int = 1
) -> list[_Symbol]:
    """Join the two neighbours of the best score, the leftmost of equal ones, again and again.

    Args:
        symbols: The symbols.
        score: Returns the score of two neighbours; None if they are never joined.
        until: The number of symbols at which to stop.

    >>> join(list("abab"), lambda left, right: {"ab": 1}.get(left + right))
    ['ab', 'ab']
    """
    while len(symbols) > until:
        best, at = None, 0
        for index, (left, right) in enumerate(pairwise(symbols)):
            found = score(left, right)
            if found is not None and (best is None or found > best):
                best, at = found, index
        if best is None:
            break
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    return symbols
