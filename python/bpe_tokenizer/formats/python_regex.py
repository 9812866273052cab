r"""Finds patterns that the core and Python's `regex` module read differently.

`regex` is a backtracking engine, https://pypi.org/project/regex/, in its version 0 behaviour. The core parses
the patterns (`pretokenize/portability.rs`). tests/formats/test_minbpe.py compares both engines on the
patterns that pass.
"""

from __future__ import annotations

from bpe_tokenizer import _core
from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = ["COVERING", "python_objection"]

# GPT-4's pattern as minbpe spells it: https://github.com/karpathy/minbpe/blob/master/minbpe/regex.py
_MINBPE_GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
    r"|\s+(?!\S)|\s+"
)

# Patterns that both engines read alike and that match every character: each has a branch for letters,
# numbers, white space and all others that does not depend on context. (Two of them contain `\s++$`: `$` is
# then only the end of the text, because the match has taken every line end.)
COVERING = frozenset(
    (
        _MINBPE_GPT4,
        *(
            pattern
            for name in (
                *("gpt2", "r50k", "cl100k", "o200k", "llama3", "qwen2", "qwen3.5", "tekken", "bailing"),
                *("cl100k-bounded", "o200k-bounded"),
            )
            for pattern in NAMED_PATTERNS[name].patterns
        ),
    )
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
    return None if pattern in COVERING else _core.SplitPattern.objection(pattern, "python")
