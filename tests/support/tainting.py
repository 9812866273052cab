"""Texts of which each character says whose it is.

The oracle of provenance is the alphabet: Latin letters are one message's, Greek ones another's, Cyrillic
ones a tool's, and all else is the template's. Case maps letters to letters of the same script, so that the
script of a character says whose it must be, whatever was done to the text.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from bpe_tokenizer.chat.jinja.tainted_str import TEMPLATE, Provenance, TaintedStr, as_tainted, concat
from bpe_tokenizer.chat.segment import Origin

__all__ = [
    *("ALPHABET", "CYRILLIC", "GREEK", "LATIN", "SCRIPTS", "few", "owned", "owner", "runs"),
    *("separators", "shorts", "tainted_argument", "texts"),
]

LATIN, GREEK, CYRILLIC = (
    Provenance(Origin("messages", 0, "content")),
    Provenance(Origin("messages", 1, "content")),
    Provenance(Origin("tools", 0)),
)
# Some letters become two or three in another case (ß, ŉ, İ, ﬁ, ΐ), and Σ has two lower-case forms.
SCRIPTS = {
    LATIN: "abSßŉİﬁsN\u02bc\u0307",
    GREEK: "αΣσςΐΑ\u0308\u0301",
    CYRILLIC: "жЖд",
    TEMPLATE: " \t\n\r\u3000-_{}|+7",
}
ALPHABET = "".join(SCRIPTS.values())


# Whose a character is: that of a letter, in whatever case.
OWNERS = {
    character: known
    for known, letters in SCRIPTS.items()
    for letter in letters
    for character in letter + letter.upper() + letter.lower() + letter.title() + letter.casefold()
}


def owner(character: str) -> Provenance:
    return OWNERS.get(character, TEMPLATE)


def owned(text: str) -> TaintedStr:
    """Track a text by its scripts."""
    return as_tainted(concat([TaintedStr(character, owner(character)) for character in text]))


def runs(text: str) -> list[tuple[str, Provenance]]:
    return [(str(text)[start:end], known) for start, end, known in as_tainted(text).runs()]


few = settings(max_examples=60)


texts = st.text(st.sampled_from(ALPHABET), max_size=14)
shorts = st.text(st.sampled_from(ALPHABET), max_size=2)
separators = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=2)


def tainted_argument(argument: Any) -> Any:
    if isinstance(argument, str):
        return owned(argument)
    return [owned(part) for part in argument] if isinstance(argument, list) else argument
