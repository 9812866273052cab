r"""Whether a split pattern can match the empty text.

Engines disagree about empty matches: ours skips them, Hugging Face's cuts the text there. A pattern without
them means the same to both.
"""

from __future__ import annotations

__all__ = ["can_match_empty"]

_ZERO_WIDTH = frozenset("bBAzZG")
_LOOK_AROUND = ("?=", "?!", "?<=", "?<!")
_MAX_DEPTH = 100


def can_match_empty(pattern: str) -> bool:
    r"""Tell whether a pattern can match the empty text; True where that cannot be told.

    Args:
        pattern: A valid pattern in the dialect of `bpe_tokenizer.patterns`.

    >>> can_match_empty(r"\s+(?!\S)|\w+"), can_match_empty(r"\s*"), can_match_empty(r"(?=\p{Lu})")
    (False, True, True)
    """
    scanner = _Scanner(pattern)
    try:
        return scanner.alternation(0)
    except _UnknownError:
        return True


class _UnknownError(Exception):
    """The pattern holds something that this scanner does not know."""


class _Scanner:
    """Reads a pattern from left to right; every method moves behind what it reads."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def alternation(self, depth: int) -> bool:
        """Branches up to the end of the group: one of them may be empty."""
        if depth > _MAX_DEPTH:
            raise _UnknownError
        empty = self.branch(depth)
        while self.take("|"):
            empty |= self.branch(depth)
        return empty

    def branch(self, depth: int) -> bool:
        """Atoms, one after the other: all of them may be empty."""
        empty = True
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            atom_is_empty = self.atom(depth)
            empty &= self.repeated(atom_is_empty)
        return empty

    def repeated(self, empty: bool) -> bool:
        """Quantifiers behind an atom; a second `?` or `+` only says how eager the first is."""
        eagerness = ""
        while self.at < len(self.pattern):
            if eagerness and self.pattern[self.at] in eagerness:
                self.at += 1
                eagerness = ""
                continue
            if self.pattern[self.at] in "?*+":
                empty |= self.pattern[self.at] != "+"
                self.at += 1
            else:
                end = self.pattern.find("}", self.at)
                bounds = self.pattern[self.at + 1 : end]
                if self.pattern[self.at] != "{" or end < 0 or not bounds.replace(",", "").isdecimal():
                    break
                least = bounds.split(",")[0]
                empty |= not least or int(least) == 0
                self.at = end + 1
            eagerness = "?+"
        return empty

    def atom(self, depth: int) -> bool:
        """One character, class, escape, anchor or group."""
        if self.take("("):
            return self.group(depth)
        if self.take("["):
            self.skip_class()
            return False
        if self.take("\\"):
            return self.escape()
        self.at += 1
        return self.pattern[self.at - 1] in "^$"

    def group(self, depth: int) -> bool:
        """What follows an opening parenthesis."""
        zero_width = False
        for look in _LOOK_AROUND:
            if self.take(look):
                zero_width = True
        if not zero_width and self.take("?") and not self.take(">") and not self.name() and self.flags():
            return True
        empty = self.alternation(depth + 1)
        if not self.take(")"):
            raise _UnknownError
        return empty or zero_width

    def name(self) -> bool:
        """`<name>` or `P<name>`."""
        if self.take("P<") or self.take("<"):
            end = self.pattern.find(">", self.at)
            if end < 0:
                raise _UnknownError
            self.at = end + 1
            return True
        return False

    def flags(self) -> bool:
        """`i-s:` or `i-s)`; True if no group follows."""
        while self.at < len(self.pattern) and (
            self.pattern[self.at].isalpha() or self.pattern[self.at] == "-"
        ):
            self.at += 1
        if self.take(")"):
            return True
        if not self.take(":"):
            raise _UnknownError
        return False

    def escape(self) -> bool:
        """What follows a backslash."""
        letter = self.pattern[self.at : self.at + 1]
        self.at += 1
        if not letter or letter.isdecimal() or letter in "gkK":
            raise _UnknownError  # a reference to a group, or a match that begins here
        if letter in "pPxuUb" and self.take("{"):
            self.at = self.pattern.find("}", self.at) + 1 or len(self.pattern)
        return letter in _ZERO_WIDTH

    def skip_class(self) -> None:
        """A bracketed class whose bracket was just read, with the classes inside."""
        depth = 1
        first = True
        while depth and self.at < len(self.pattern):
            character = self.pattern[self.at]
            self.at += 1
            if first and character == "^":
                continue
            if character == "\\":
                self.escape_in_class()
            elif character == "[":
                depth += 1
                first = True
                continue
            elif character == "]" and not first:
                depth -= 1
            first = False
        if depth:
            raise _UnknownError

    def escape_in_class(self) -> None:
        letter = self.pattern[self.at : self.at + 1]
        self.at += 1
        if letter in ("p", "P", "x", "u", "U") and self.take("{"):
            self.at = self.pattern.find("}", self.at) + 1 or len(self.pattern)

    def take(self, text: str) -> bool:
        """Move behind a text if it stands here."""
        found = self.pattern.startswith(text, self.at)
        self.at += len(text) * found
        return found
