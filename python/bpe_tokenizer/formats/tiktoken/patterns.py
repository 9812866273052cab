r"""Split patterns to and from tiktoken's, which drops text that its pattern does not match.

Both libraries use the dialect of Rust's `fancy-regex`. tiktoken drops the text between two matches; here it
is a piece too. Published patterns match everything. Custom patterns are translated so that the pieces stay
the same.
"""

from __future__ import annotations

import re
from itertools import chain, product
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, PatternError, shorten
from bpe_tokenizer.model import Split
from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = ["MATCH_ALL", "model_settings", "tiktoken_pattern"]

# Matches any text as one piece.
MATCH_ALL = "(?s:.+)"

# Patterns that match every character at any place.
_TOTAL = frozenset(named.patterns[0] for named in NAMED_PATTERNS.values() if len(named.patterns) == 1) | {
    MATCH_ALL
}

# Syntax that changes its meaning when a pattern is repeated or embedded: back-references, \G and \K.
_NOT_MOVABLE = re.compile(r"(?<!\\)(?:\\\\)*\\[1-9gGkK]|\(\?(?:P=|P>|R|[0-9+&(])")
# Characters of every kind that patterns distinguish.
_KINDS = "aA0 .\n'é日_"
_MOST_OTHERS = 100


def model_settings(pat_str: str) -> dict[str, Any]:
    r"""Return the arguments of a model that splits as tiktoken does with this pattern.

    >>> model_settings(r"\w+")
    {'pre_tokenizers': [Split(type='Split', pattern='\\w+', behavior='Removed', invert=True)]}
    >>> model_settings(cover_all(r"\w+"))
    {'split_patterns': ['\\w+']}
    """
    if pat_str in _TOTAL:
        return {"split_patterns": [pat_str]}
    inner = pat_str[len("(?:") :][: (len(pat_str) - len(cover_all(""))) // 2]
    if cover_all(inner) == pat_str:
        return {"split_patterns": [inner]}
    return {"pre_tokenizers": [Split(pattern=pat_str, behavior="Removed", invert=True)]}


def tiktoken_pattern(core: _core.Model, name: str) -> str:
    """Return the pattern with which tiktoken splits as a model does.

    Args:
        core: A model with split patterns, or with the settings of `model_settings`.
        name: The format, for messages.

    Raises:
        FormatError: The model has several patterns, or no pattern of tiktoken splits like its pattern.
    """
    patterns = core.split_patterns
    if patterns is None:
        step = core.pre_tokenizers[0]
        assert isinstance(step, Split)
        return step.pattern
    if len(patterns) > 1:
        raise FormatError(f"split_patterns: {name} can hold one pattern, not {len(patterns)} in sequence")
    if not patterns or patterns[0] in _TOTAL:
        return patterns[0] if patterns else MATCH_ALL
    pattern = patterns[0]
    if _NOT_MOVABLE.search(pattern):
        raise FormatError(
            f"split_patterns: {name} drops what a pattern leaves unmatched, and {shorten(pattern)} cannot be "
            "made to match everything, because it holds a back-reference, \\G or \\K"
        )
    if _may_match_empty(pattern):
        raise FormatError(
            f"split_patterns: {name} cannot hold {shorten(pattern)}, which matches the empty text; it fails "
            "there"
        )
    try:
        _core.SplitPattern(cover_all(pattern))
    except PatternError as error:
        raise FormatError(
            f"split_patterns: {name} drops what a pattern leaves unmatched, and {shorten(pattern)} cannot be "
            f"made to match everything: {error}"
        ) from error
    return cover_all(pattern)


def cover_all(pattern: str) -> str:
    r"""Return a pattern that matches what another does, and also each stretch between its matches.

    >>> _core.SplitPattern(cover_all("b+")).split("aabbc")
    ['aa', 'bb', 'c']
    """
    return f"(?:{pattern})|(?:(?!{pattern})(?s:.))++"


def _may_match_empty(pattern: str) -> bool:
    """Whether it can match the empty text between two characters; tried with many, and with its own."""
    others = sorted(set(pattern).difference(_KINDS))[:_MOST_OTHERS]
    character = "(?s:.)"
    try:
        between = _core.SplitPattern(f"{character}(?:{pattern}){character}|{character}")
    except PatternError:
        return False  # such a pattern is refused for that
    pairs = chain(product(_KINDS, _KINDS), product(others, _KINDS), product(_KINDS, others))
    return any(between.split(left + right) == [left + right] for left, right in pairs)
