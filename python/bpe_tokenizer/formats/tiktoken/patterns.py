r"""Split patterns to and from tiktoken's, which drops text that its pattern does not match.

Both libraries use the dialect of Rust's `fancy-regex`. tiktoken drops the text between two matches; here it
is a piece too. Published patterns match everything.
"""

from __future__ import annotations

import contextlib
from typing import Any

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, PatternError, shorten
from bpe_tokenizer.formats.capabilities import keeping_matches
from bpe_tokenizer.model import Split

__all__ = ["MATCH_ALL", "model_settings", "tiktoken_pattern"]

# Matches any text as one piece.
MATCH_ALL = "(?s:.+)"


def model_settings(pat_str: str) -> dict[str, Any]:
    r"""Return the arguments of a model that splits as tiktoken does with this pattern.

    >>> model_settings(r"\w+")
    {'pre_tokenizers': [Split(type='Split', pattern='\\w+', behavior='Removed', invert=True)]}
    >>> model_settings(r"\w+|\W")
    {'pre_tokenizers': [Split(type='Split', pattern='\\w+|\\W', behavior='Isolated', invert=False)]}
    """
    with contextlib.suppress(PatternError):
        return {"pre_tokenizers": [keeping_matches(pat_str)]}
    return {"split_patterns": [pat_str]}  # its encoder refuses it


def tiktoken_pattern(core: _core.Model, name: str) -> str:
    """Return the pattern with which tiktoken splits as a model does.

    Args:
        core: A model with split patterns, or with the settings of `model_settings`.
        name: The format, for messages.

    Raises:
        FormatError: The model has several patterns, or one that may leave text unmatched.
    """
    patterns = core.split_patterns
    if patterns is None:
        step = core.pre_tokenizers[0]
        assert isinstance(step, Split)
        return step.pattern
    if len(patterns) > 1:
        raise FormatError(f"split_patterns: {name} can hold one pattern, not {len(patterns)} in sequence")
    pattern = patterns[0] if patterns else MATCH_ALL
    if not _core.SplitPattern(pattern).covers_every_text:
        raise FormatError(
            f"split_patterns: {name} drops what a pattern leaves unmatched, and {shorten(pattern)} may leave "
            r"text unmatched; add branches that match it, such as |\s+|\S"
        )
    return pattern
