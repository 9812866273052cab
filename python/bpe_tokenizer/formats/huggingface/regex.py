r"""Which regular expressions mean the same to our engine and to the one of Hugging Face `tokenizers`.

Ours is fancy-regex, theirs Oniguruma. They agree on far less than both accept: `\w` and `[[:alpha:]]` hold
other characters, `(?i:ss)` finds `ß` in one of them only, an empty match cuts the text in theirs and is
skipped in ours, and more. So a pattern passes only if everything in it is known to be read alike, or to be
translated by `_core`. tests/peers/test_against_tokenizers.py checks this list against both engines.
"""

from __future__ import annotations

import re

__all__ = ["objection", "regex_escape"]

# General categories, and the scripts that split patterns use.
_PROPERTY = re.compile(
    r"\^?(?:L[ultmo]?|M[nce]?|N[dlo]?|P[cdsefio]?|S[mcko]?|Z[slp]?|C[cfo]|Alphabetic"
    r"|Han|Hiragana|Katakana|Hangul|Latin|Greek|Cyrillic|Arabic|Hebrew|Thai|Devanagari)"
)
_CLASS_ESCAPES = frozenset("sSdDnrtfv")
_HEX = frozenset("0123456789abcdefABCDEF")
_MAX_DEPTH = 50
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
        oniguruma: It is written for Oniguruma; otherwise for us.

    Returns:
        What is wrong, to follow the pattern in a sentence; None if nothing is.

    >>> objection(r"'(?i:[sdmt]|ll|ve|re)|\s+(?!\S)", oniguruma=False)
    >>> objection(r"\p{L}*", oniguruma=True)
    'can match the empty text, where Hugging Face tokenizers cut and we do not'
    >>> objection(r"\bword", oniguruma=True)
    'holds \\b, which may mean something else to the other regex engine'
    """
    scanner = _Scanner(pattern, oniguruma)
    try:
        empty = scanner.alternation(0)
        if scanner.at < len(pattern):
            raise _UnportableError(")")
    except _UnportableError as error:
        return f"holds {error}, which may mean something else to the other regex engine"
    if empty:
        return "can match the empty text, where Hugging Face tokenizers cut and we do not"
    return None


class _UnportableError(Exception):
    """The pattern holds this."""


class _Scanner:
    """Reads a pattern from left to right; every method moves behind what it reads.

    Those of the syntax tell whether what they read can match the empty text.
    """

    def __init__(self, pattern: str, oniguruma: bool) -> None:
        self.pattern = pattern
        self.oniguruma = oniguruma
        self.at = 0
        self.ignores_case = False

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self.pattern[self.at : self.at + 1]

    def take(self, text: str) -> bool:
        """Move behind a text if it stands here."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) * found
        return found

    def alternation(self, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            raise _UnportableError("groups nested too deeply")
        empty = self.branch(depth)
        while self.take("|"):
            empty |= self.branch(depth)
        return empty

    def branch(self, depth: int) -> bool:
        empty = True
        first = self.at
        while self.next and self.next not in "|)":
            start = self.at
            # Behind a line end, Oniguruma finds `^` only if something follows. Where a match begins with
            # it that is so, for a match is never empty.
            if self.next == "^" and self.oniguruma and not (depth == 0 and start == first):
                raise _UnportableError("^ inside")
            empty &= self.repeated(start, self.atom(depth))
        return empty

    def repeated(self, start: int, empty: bool) -> bool:
        """The quantifier behind an atom, if any."""
        least = self.quantifier()
        if least is None:
            return empty
        is_count = (
            self.pattern[self.at - 1] == "}" and "," not in self.pattern[start : self.at].split("{")[-1]
        )
        if self.take("?"):
            least = 0 if is_count and self.oniguruma else least  # `X{2}?` is `(?:X{2})?` there
        else:
            self.take("+")
        if self.quantifier() is not None:
            raise _UnportableError("two quantifiers in a row")
        if empty:
            raise _UnportableError("a quantifier of something that can match the empty text")
        if self.ignores_case and self.pattern[start] not in "([\\'":
            raise _UnportableError("a quantifier of a letter whose case is ignored")
        if self.pattern[start] == "\\" and self.pattern[start + 1] in "xu" and self.pattern[start + 2] != "{":
            raise _UnportableError(f"a quantifier of \\{self.pattern[start + 1]} without braces")
        return least == 0

    def quantifier(self) -> int | None:
        """The least number of times; None if there is no quantifier."""
        if self.next and self.next in "?*+":
            self.at += 1
            return int(self.pattern[self.at - 1] == "+")
        end = self.pattern.find("}", self.at)
        bounds = self.pattern[self.at + 1 : end]
        digits = bounds.replace(",", "", 1)
        if self.next != "{" or end < 0 or not (digits.isascii() and digits.isdecimal()):
            return None
        self.at = end + 1
        return int(bounds.split(",")[0].strip("0") != "")

    def atom(self, depth: int) -> bool:
        character = self.next
        self.at += 1
        if character == "(":
            return self.group(depth)
        if character == "[":
            self.character_class()
            return False
        if character == "\\":
            return self.escape(in_class=False)
        if character in "^$":
            return True
        if character in "?*+":
            raise _UnportableError(f"{character} with nothing before it")
        self.check_case(character)
        return False

    def check_case(self, character: str) -> None:
        """Oniguruma ignores the case of `ss`, `fi`, `st`, ... by finding `ß`, `ﬁ`, `ﬆ`, ... too."""
        if not self.ignores_case:
            return
        if not character.isascii():
            raise _UnportableError(f"{character!r} with its case ignored")
        pair = (character + self.next).lower()
        if pair in ("ss", "st", "ff", "fi", "fl"):
            raise _UnportableError(f"{pair!r} with its case ignored")

    def group(self, depth: int) -> bool:
        outside = self.ignores_case
        looks_around = False
        if self.take("?"):
            if any(map(self.take, ("=", "!", "<=", "<!"))):
                looks_around = True
            elif not (self.take(":") or self.take(">")) and self.options():
                return True
        empty = self.alternation(depth + 1)
        if not self.take(")"):
            raise _UnportableError("(")
        self.ignores_case = outside
        return empty or looks_around

    def options(self) -> bool:
        """`i:` or `i)`, the latter only at the start; True if no group follows."""
        start = self.at - 2
        while self.next == "i" or (self.oniguruma and self.next == "m"):
            self.ignores_case |= self.next == "i"
            self.at += 1
        if self.at > start + 2 and self.take(":"):
            return False
        if self.at > start + 2 and start == 0 and self.take(")"):
            return True
        raise _UnportableError(self.pattern[start : start + 4] + "...")

    def escape(self, in_class: bool) -> bool:
        """What follows a backslash."""
        letter = self.next
        self.at += 1
        if letter in ("p", "P"):
            self.property(letter)
        elif letter in ("x", "u"):
            self.code_point(letter)
        elif not in_class and (letter in ("A", "z") or (letter == "Z" and self.oniguruma)):
            return True
        elif letter in ("w", "W"):
            if self.oniguruma:
                raise _UnportableError(f"\\{letter}")
        elif letter not in _CLASS_ESCAPES and not (letter and letter in "'\"!#$%&()*+,-./:;=?@[\\]^_`{|}~ "):
            raise _UnportableError(f"\\{letter}")
        return False

    def property(self, letter: str) -> None:
        end = self.pattern.find("}", self.at)
        name = self.pattern[self.at + 1 : end]
        if self.next != "{" or end < 0 or not _PROPERTY.fullmatch(name):
            raise _UnportableError(f"\\{letter}{self.pattern[self.at : max(end + 1, self.at + 1)][:30]}")
        if self.ignores_case:
            raise _UnportableError(f"\\{letter} with its case ignored")
        self.at = end + 1

    def code_point(self, letter: str) -> None:
        r"""`{...}`, or two digits behind `\x` and four behind `\u`."""
        start = self.at
        if letter == "x" and self.take("{"):
            self.at = self.pattern.find("}", self.at) + 1 or len(self.pattern)
            digits = self.pattern[start + 1 : self.at - 1]
            valid = len(digits) in range(1, 7)
        else:
            length = 2 if letter == "x" else 4
            self.at += length
            digits = self.pattern[start : self.at]
            # Oniguruma takes \xe9 for a byte.
            valid = len(digits) == length and (letter == "u" or digits[0] in "01234567")
        if self.ignores_case or not (valid and _HEX.issuperset(digits) and int(digits, 16) <= 0x10FFFF):
            raise _UnportableError(f"\\{letter}{self.pattern[start : self.at][:30]}")

    def character_class(self) -> None:
        """A bracketed class whose bracket was just read, with the classes inside."""
        depth = 1
        start = self.class_start()
        while depth:
            if not self.next:
                raise _UnportableError("[")
            for text in ("[:", "--", "~~"):
                if self.pattern.startswith(text, self.at):
                    raise _UnportableError(f"{text} in a class")
            character = self.next
            self.at += 1
            if character == "\\":
                self.escape(in_class=True)
            elif character == "[":
                depth += 1
                start = self.class_start()
            elif character == "]" and self.at - 1 != start:
                depth -= 1
            elif self.ignores_case and not character.isascii():
                raise _UnportableError(f"{character!r} with its case ignored")

    def class_start(self) -> int:
        """Where a `]` would be a plain character: right behind `[` or `[^`."""
        self.take("^")
        return self.at
