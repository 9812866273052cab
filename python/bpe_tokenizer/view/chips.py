"""Tokens as printable text, side by side, each on its own background."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["backgrounds_of", "printable", "token_chips"]

# Backgrounds under black text, taken in turn; the second for terminals of 16 colours or fewer.
_PALE = ("#fde68a", "#a7f3d0", "#bfdbfe", "#fbcfe8", "#ddd6fe", "#fed7aa")
_BASIC = ("yellow", "green", "cyan", "magenta", "white")


def printable(token: bytes) -> str:
    r"""Return a token's text with everything that does not print written as an escape.

    Bytes that are not UTF-8 on their own (a part of a character) come out as `\xNN`, control, format
    and unassigned characters as `\n`, `\x1b`, `\u200b`; so a token can never move the cursor or
    change colours. Spaces stay.

    Args:
        token: The bytes of one token.

    Returns:
        Printable text.

    Example:
        >>> print(printable(" café\n".encode()))
         café\n
        >>> print(printable(b"\xf0\x9f"))
        \xf0\x9f
    """
    text = token.decode("utf-8", errors="backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def token_chips(tokens: Iterable[bytes], backgrounds: Sequence[str] = _PALE) -> Text:
    r"""Lay tokens out side by side, each on its own background.

    A line ends after a token that holds a line feed, so the text keeps its shape.

    Args:
        tokens: The bytes of each token, in order.
        backgrounds: Names of colours as rich knows them, taken in turn; with none, `|` marks the
            boundaries instead.

    Returns:
        A `rich.text.Text`; it ends without a line feed.

    Example:
        >>> token_chips([b"Hello", b",", b" world"]).plain
        'Hello, world'
        >>> token_chips([b"Hello", b",", b" world"], backgrounds=()).plain
        'Hello|,| world'
    """
    from rich.text import Text

    chips = Text()
    line_begins = True
    for index, token in enumerate(tokens):
        if line_begins and index:
            chips.append("\n")
        elif index and not backgrounds:
            chips.append("|")
        style = f"black on {backgrounds[index % len(backgrounds)]}" if backgrounds else ""
        chips.append(printable(token), style=style)
        line_begins = b"\n" in token
    return chips


def backgrounds_of(console: Console) -> Sequence[str]:
    """Return the backgrounds that a console can show: none where it has no colours.

    Example:
        >>> from rich.console import Console
        >>> backgrounds_of(Console(color_system=None))
        ()
    """
    if console.color_system is None or console.no_color:
        return ()
    return _PALE if console.color_system in ("256", "truecolor") else _BASIC
