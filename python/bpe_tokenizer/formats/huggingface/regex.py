r"""Which regular expressions mean the same to our engine and to the one of Hugging Face `tokenizers`.

Ours is fancy-regex, theirs Oniguruma. The core reads the patterns (`pretokenize/portability.rs`).
tests/peers/test_regex_against_tokenizers.py compares both engines on the patterns that pass.
"""

from __future__ import annotations

import re

from bpe_tokenizer import _core

__all__ = ["objection", "regex_escape"]

_META_CHARACTERS = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")


def regex_escape(text: str) -> str:
    r"""Return the pattern of a text, in any dialect.

    >>> regex_escape("a.b")
    'a\\.b'
    """
    return _META_CHARACTERS.sub(r"\\\g<0>", text)


def objection(pattern: str, oniguruma: bool) -> str | None:
    r"""Say why a pattern cannot be carried over to the other engine.

    Args:
        pattern: A pattern that its own engine accepts.
        oniguruma: Whether it is written for Oniguruma and not for us.

    Returns:
        What is wrong, in words that follow the pattern in a sentence; None if nothing is.

    >>> objection(r"'(?i:[sdmt]|ll|ve|re)|\s+(?!\S)", oniguruma=False)
    >>> objection(r"\p{L}*", oniguruma=True)
    'can match the empty text, where Hugging Face tokenizers cut and we do not'
    >>> objection(r"\Gword", oniguruma=True)
    'holds \\G, which may mean something else to the other regex engine'
    """
    return _core.SplitPattern.objection(pattern, "from_oniguruma" if oniguruma else "to_oniguruma")
