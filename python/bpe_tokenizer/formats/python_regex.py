r"""Finds patterns that the core and Python's `regex` module read differently.

`regex` is a backtracking engine, https://pypi.org/project/regex/, in its version 0 behaviour. The core parses
the patterns (`pretokenize/portability.rs`). tests/formats/test_minbpe.py compares both engines on the
patterns that pass.
"""

from __future__ import annotations

from bpe_tokenizer import _core
from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = ["python_objection"]

# Patterns that both engines read alike, although the core cannot know: what follows `(?i:...)` is outside of
# it, and the `$` of `\s++$` is only the end of the text, because the match has taken every line end.
_READ_ALIKE = frozenset(
    pattern
    for name in ("r50k", "cl100k", "o200k", "cl100k-bounded", "o200k-bounded")
    for pattern in NAMED_PATTERNS[name].patterns
)


def python_objection(pattern: str) -> str | None:
    r"""Say why Python's `regex` module may read a pattern differently.

    Args:
        pattern: A pattern that the core accepts.

    Returns:
        The problem, as the predicate of a sentence about the pattern; None if there is none.

    >>> python_objection(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\s+(?!\S)|\s+")
    >>> python_objection(r"\s+$")
    "holds $, which may mean something else to Python's regex module"
    >>> python_objection(r"(\s+)")
    "holds (, which may mean something else to Python's regex module"
    """
    return None if pattern in _READ_ALIKE else _core.SplitPattern.objection(pattern, "python")
