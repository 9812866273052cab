r"""Texts that tokenizers get wrong: the hostile set of the tests that compare with another implementation.

Everything is made, nothing is stored, and the same in every run.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator

__all__ = [
    *("LONE_SURROGATES", "after_a_letter", "code_points", "contractions", "hostile_texts", "long_runs"),
    *("mixed_newlines", "random_mixtures", "special_token_texts", "zero_bytes"),
]

# Lone high, lone low, the wrong way round, before a pair, inside a word, before a space.
LONE_SURROGATES = (
    *("\ud800", "\udfff", "\udc00\ud800", "a\ud83db", "\ud83d\ud83d\ude00", "x \udbff y", "'\ud800s"),
    "\ud800" * 50,
)

# White space of every kind, line ends, letters with and without case, marks, digits, signs, joiners.
_ALPHABET = (
    " \t\n\r\x0b\x0c\x85\xa0\u2003\u2028\u3000\ufeff\u200b\u200d\u200c\0\x7f"
    "aAsStTrRvVmMlLdDe'’ſK\u0130\u0131ßẞǅªʰˈ"
    "\u0301\u0323\u20e3\ufe0féÅ日あア한\u1100\u1161אبक्षไ𝒳𐐀"
    '09½²Ⅷ٣१①.,!?-_/\\(){}[]<>|#$€+=~`^"%&*@:;…—「」🙂👩🇫\U000e0041\U0010ffff\ue000'
)

_LINE_ENDS = ("\n", "\r\n", "\r", "\u2028", "\x85", "\n\n", "\r\n\r\n", "\n\r", " \n", "\n ", "\t\r\n  ")


def code_points(start: int = 0, stop: int = sys.maxunicode + 1, step: int = 1) -> Iterator[str]:
    """Every Unicode scalar value of a range, alone."""
    return (chr(code_point) for code_point in range(start, stop, step) if not 0xD800 <= code_point < 0xE000)


def after_a_letter(characters: Iterator[str], letter: str = "a") -> Iterator[str]:
    """The same, each behind a letter."""
    return (letter + character for character in characters)


def long_runs(length: int = 2000) -> Iterator[str]:
    """One character over and over, alone and between others."""
    for character in "a é日\n\t'.1\0🙂\u0301\ufeff\u2003ſ":
        run = character * length
        yield from (run, f"x{run}", f"{run}x", f" {run} ", f"{run}\n{run}", f"{run}'s")
    for unit in ("'s", "ab", " a", "\r\n", "a\u0301", "한", "1.", "' ", "\u200d👩"):
        yield unit * (length // len(unit))


def mixed_newlines() -> Iterator[str]:
    """Line ends of every kind, before, between and behind words, spaces and signs."""
    befores, afters = ("", "a", " ", "!", "1"), ("", "b", "  ", "?", "\n")
    for before, end, after in itertools.product(befores, _LINE_ENDS, afters):
        yield before + end + after
    yield "".join(f"line {i}{end}" for i, end in enumerate(_LINE_ENDS * 3))


def contractions() -> Iterator[str]:
    """Contractions in every case, with the long s and the Kelvin sign that case folding brings in."""
    endings = [
        *("s", "t", "re", "ve", "m", "ll", "d", "ſ", "S"),
        *("K", "k", "RE", "vE", "lL", "ſs", "st", "ss", "ﬆ"),
    ]
    for apostrophe, ending in itertools.product(("'", "’", "''", " '"), endings):
        for word in ("it", "IT", "", "日", "1", " "):
            yield f"{word}{apostrophe}{ending}"
            yield f"{word}{apostrophe}{ending} {ending}{apostrophe}x"
            yield f"{word}{apostrophe}{ending.upper()}{apostrophe}{ending}"


def zero_bytes() -> Iterator[str]:
    """Zero bytes everywhere."""
    yield from ("\0", "\0\0", "a\0b", " \0 ", "\0a", "a\0", "\0\n\0", "don\0't", "日\0本", "\0" * 999)


def special_token_texts(tokens: list[str]) -> Iterator[str]:
    """The texts of special tokens whole, doubled, cut, nested and between words."""
    for token in tokens:
        yield from (
            token,
            token * 2,
            f"a{token}b",
            f" {token} ",
            f"{token}\n",
            f"\n\n{token}",
            f"'s{token}'s",
        )
        yield from (token[:-1], token[1:], token[:-1] + token, token + token[1:], token.upper())
        yield from (f"{token[:3]}{token}{token[3:]}", f"é\u0301{token}\u0301", f"\0{token}\0")
    yield "".join(tokens)
    yield " ".join(reversed(tokens))


def random_mixtures(count: int, seed: int = 0) -> Iterator[str]:
    """Short random strings of characters that split patterns and normalisation tell apart."""
    generator = random.Random(seed)
    for _ in range(count):
        yield "".join(generator.choices(_ALPHABET, k=generator.randint(1, 30)))


def hostile_texts(mixtures: int = 2000) -> list[str]:
    """Everything but the code points and the texts of special tokens."""
    made = (long_runs(), mixed_newlines(), contractions(), zero_bytes(), random_mixtures(mixtures))
    return ["", *LONE_SURROGATES, *itertools.chain(*made)]
