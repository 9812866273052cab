r"""Which regular expressions mean the same to our engine and to Python's `regex` module.

Theirs is a backtracking engine of its own, https://pypi.org/project/regex/, in its version 0 behaviour. It
reads `$` as "before a last line end" too, finds `İ` for `(?i:i)`, takes `{e<=1}` for a fuzzy match and `[[`
for a letter; and more. So a pattern passes only if everything in it is known to be read alike.
tests/test_formats_minbpe.py checks the list against that module.
"""

from __future__ import annotations

import re

from bpe_tokenizer.formats.huggingface.regex import objection
from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = ["COVERING", "python_objection"]

# GPT-4's pattern as minbpe spells it: https://github.com/karpathy/minbpe/blob/master/minbpe/regex.py
_MINBPE_GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
    r"|\s+(?!\S)|\s+"
)

# Patterns that are read alike and leave no character unmatched: a character is a letter, a number, white
# space or none of them, and each pattern has a branch for each that asks nothing of what stands around.
# (`\s++$` in two of them meets `$` only at the very end of the text, having taken every line end.)
COVERING = frozenset(
    (
        _MINBPE_GPT4,
        *(
            pattern
            for name in ("gpt2", "r50k", "cl100k", "o200k", "llama3", "qwen2", "qwen3.5", "tekken", "bailing")
            for pattern in NAMED_PATTERNS[name].patterns
        ),
    )
)

# An escape that both engines read alike, in a class and outside.
_ESCAPE = (
    r"""\\(?:[sSdDnrtfv]|[pP]\{\^?[A-Za-z]+\}|x[0-7][0-9A-Fa-f]|u[0-9A-Fa-f]{4}"""
    r"""|['"!\#$%&()*+,\-./:;=?@\[\\\]^_`{|}~\ ])"""
)
# A part of a pattern that both read alike. `objection` comes first; this narrows what it lets pass: no `$`,
# no capturing groups, no classes in classes, no braces but in counts.
_LEXEME = re.compile(
    rf"""
      {_ESCAPE}
    | \[\^?(?: {_ESCAPE} | [^\\\[\]&|~-] | -(?!-) | &(?!&) | \|(?!\|) | ~(?!~) )+\]
    | \(\?(?: : | i: | [=!>] | <[=!] )
    | [)|]
    | (?: [?*+] | \{{[0-9]+(?:,[0-9]*)?\}} )[+?]?
    | [.^]
    | [^\\\[\](){{}}|?*+.^$]
    """,
    re.VERBOSE | re.DOTALL,
)
# Theirs takes `İ` for `i` and `ı` for `I`, ours does not.
_IGNORED_I = re.compile(r"\(\?i:.*[iI-]", re.DOTALL)


def python_objection(pattern: str) -> str | None:
    r"""Say why a pattern cannot be carried over to Python's `regex` module, or from there.

    Args:
        pattern: A pattern that our engine accepts.

    Returns:
        What is wrong, to follow the pattern in a sentence; None if nothing is.

    >>> python_objection(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\s+(?!\S)|\s+")
    >>> python_objection(r"\s+$")
    "holds $, which may mean something else to Python's regex module"
    >>> python_objection(r"(\s+)")
    "holds (, which may mean something else to Python's regex module"
    """
    if pattern in COVERING:
        return None
    problem = objection(pattern, oniguruma=False)
    if problem is not None:
        return (
            "can match the empty text, which not every engine skips"
            if "empty text" in problem
            else problem.replace("the other regex engine", "Python's regex module")
        )
    at = 0
    while at < len(pattern):
        lexeme = _LEXEME.match(pattern, at)
        if lexeme is None:
            return _holds(pattern[at : at + 2] if pattern[at] == "\\" else pattern[at])
        at = lexeme.end()
    if _IGNORED_I.search(pattern):
        return _holds("(?i: with an i or a range behind it")
    return None


def _holds(what: str) -> str:
    return f"holds {what}, which may mean something else to Python's regex module"
