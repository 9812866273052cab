"""Checks that llama.cpp finds the same added tokens in every text as this package."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from bpe_tokenizer.errors import FormatError, shorten

__all__ = ["check_overlaps"]

# Bounds on the overlaps that are checked and on the characters of a token.
_MAX_OVERLAPS = 20_000
_MAX_CHARACTERS = 1000


def check_overlaps(contents: Sequence[str]) -> None:
    """Check that leftmost-longest matching finds the same tokens as llama.cpp.

    llama.cpp matches the longest token in the whole text, then the next longest in what remains. The results
    differ where a token begins inside another token that is not longer.

    Raises:
        FormatError: Two tokens overlap like that in a text.

    >>> check_overlaps(["<a>", "<b>", "  ", "   ", "    "])
    >>> check_overlaps(["<a", "a>>"])
    Traceback (most recent call last):
    bpe_tokenizer.errors.FormatError: the added tokens '<a' and 'a>>' overlap in '<a>>', where ...
    """
    ordered = sorted(contents)
    first_characters = {content[0] for content in contents}
    within: dict[frozenset[str], list[str]] = {}
    seen: set[str] = set()
    for content in contents:
        if len(content) > _MAX_CHARACTERS:
            raise FormatError(
                f"the added token {content[:40]!r}... has {len(content)} characters; the limit is "
                f"{_MAX_CHARACTERS}"
            )
        for start in range(1, len(content)):
            if content[start] not in first_characters:
                continue
            for other in _with_prefix(ordered, content[start:]):
                text = content[:start] + other
                if _size(other) < _size(content) or other == content or text in seen:
                    continue
                seen.add(text)
                if len(seen) > _MAX_OVERLAPS:
                    raise FormatError(
                        f"the added tokens overlap in more than {_MAX_OVERLAPS} ways, the limit"
                    )
                characters = frozenset(text)
                if characters not in within:
                    within[characters] = [each for each in contents if characters.issuperset(each)]
                if not _same_matches(text, within[characters]):
                    raise FormatError(
                        f"the added tokens {shorten(content)} and {shorten(other)} overlap in "
                        f"{shorten(text)}, where llama.cpp finds the longer one and this package the first; "
                        "change the type of one of them"
                    )


def _with_prefix(ordered: Sequence[str], start: str) -> Iterator[str]:
    for index in range(bisect_left(ordered, start), len(ordered)):
        if not ordered[index].startswith(start):
            return
        yield ordered[index]


def _same_matches(text: str, contents: Sequence[str]) -> bool:
    longest_first = sorted(contents, key=_size, reverse=True)
    # llama.cpp may match tokens of the same length in either order.
    reversed_ties = sorted(contents, key=_size)[::-1]
    expected = _leftmost_matches(text, longest_first)
    return (
        _longest_first_matches(text, longest_first) == expected == _longest_first_matches(text, reversed_ties)
    )


def _size(content: str) -> int:
    return len(content.encode())


def _leftmost_matches(text: str, longest_first: Sequence[str]) -> list[tuple[int, str]]:
    """The tokens that leftmost-longest matching finds."""
    found, at = [], 0
    while at < len(text):
        content = next((content for content in longest_first if text.startswith(content, at)), None)
        if content is not None:
            found.append((at, content))
        at += len(content or " ")
    return found


def _longest_first_matches(text: str, longest_first: Sequence[str]) -> list[tuple[int, str]]:
    """The tokens that llama.cpp finds: each one is matched in the text that longer tokens leave."""
    found: list[tuple[int, str]] = []
    rest = [(0, len(text))]
    for content in longest_first:
        left = []
        for begin, end in rest:
            at = text.find(content, begin, end)
            while at >= 0:
                found.append((at, content))
                left.append((begin, at))
                begin = at + len(content)
                at = text.find(content, begin, end)
            left.append((begin, end))
        rest = left
    return sorted(found)
