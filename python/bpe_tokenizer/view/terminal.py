"""Tokens as coloured text for terminals."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bpe_tokenizer.display.text import printable
from bpe_tokenizer.libraries import import_library

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["coloured_tokens", "console_backgrounds", "print_tokens", "tokens_for_console"]

# Backgrounds for black text; tokens cycle through them. Consoles of 16 colours or fewer get the second row.
_PALE = ("#fde68a", "#a7f3d0", "#bfdbfe", "#fbcfe8", "#ddd6fe", "#fed7aa")
_BASIC = ("yellow", "green", "cyan", "magenta", "white")
# First strong isolate and pop directional isolate: https://www.unicode.org/reports/tr9/#Explicit_Directional_Isolates
_ISOLATE, _POP = "\u2068", "\u2069"
# A mark at the start of a token would be drawn on the last character of the previous token.
_DOTTED_CIRCLE = "\u25cc"
# Bytes that continue a character in UTF-8, and the sign that a token shows in their place.
_CONTINUATION, _PART = bytes(range(0x80, 0xC0)), "·"


def coloured_tokens(
    tokens: Iterable[bytes], backgrounds: Sequence[str] = _PALE, width: int | None = None
) -> Text:
    r"""Join tokens into one text that shows their boundaries.

    A token that holds a line feed ends its line, so the text keeps its shape. With a width, the text is for a
    terminal: a line ends before the token that does not fit, and only a token that is wider than a whole line
    is broken. Tokens of right-to-left letters are isolates there, so a terminal that reorders text keeps the
    order of the tokens, and a mark at the start of a token is on a dotted circle.

    A character that is cut between tokens is shown with the first of them, and `·` with each other one.

    Args:
        tokens: The bytes of each token, in order.
        backgrounds: Colour names of rich; tokens cycle through them. Without any, `|` marks the boundaries.
        width: The columns of the terminal; None for lines of any length.

    Returns:
        A `rich.text.Text` without a trailing line feed.

    Raises:
        MissingDependencyError: rich is not installed.

    Example:
        >>> coloured_tokens([b"Hello", b",", b" world"]).plain
        'Hello, world'
        >>> coloured_tokens([b"Hello", b",", b" world"], backgrounds=()).plain
        'Hello|,| world'
        >>> print(coloured_tokens([b"Hello", b",", b" world"], backgrounds=(), width=9).plain)
        Hello|,|
         world
    """
    import_library("rich", "cli")
    from rich.cells import cell_len
    from rich.text import Text

    text = Text()
    starts_line = True
    column = 0
    listed = list(tokens)
    texts = [printable(token) for token in listed] if width is None else _whole_characters(listed)
    for index, token in enumerate(listed):
        if starts_line and index:
            text.append("\n")
            column = 0
        starts_line = b"\n" in token
        style = f"black on {backgrounds[index % len(backgrounds)]}" if backgrounds else ""
        mark = "" if backgrounds or starts_line or index + 1 == len(listed) else "|"
        shown = texts[index]
        if width is None:
            text.append(shown, style=style)
            text.append(mark)
            continue
        if unicodedata.category(shown[:1] or " ") in ("Mn", "Me"):
            shown = _DOTTED_CIRCLE + shown
        cells = cell_len(shown) + len(mark)
        if column and column + cells > width:
            text.append("\n")
            column = 0
        parts = [shown] if cells <= width else list(_lines(shown, width - len(mark)))
        for number, part in enumerate(parts):
            if number:
                text.append("\n")
                column = 0
            text.append(_isolated(part), style=style)
            column += cell_len(part)
        text.append(mark)
        column += len(mark)
    return text


def _whole_characters(tokens: Sequence[bytes]) -> list[str]:
    """Return the text of each token, with the characters that begin in it, whole."""
    data = b"".join(tokens)
    try:
        data.decode()
    except UnicodeDecodeError:
        return [printable(token) for token in tokens]
    texts = []
    end = 0
    for token in tokens:
        end += len(token)
        first = token.lstrip(_CONTINUATION)
        rest = data[end : end + 3]
        last = rest[: len(rest) - len(rest.lstrip(_CONTINUATION))] if first else b""
        texts.append(_PART * (len(first) < len(token)) + printable(first + last))
    return texts


def _lines(text: str, width: int) -> Iterator[str]:
    """Yield the parts of a token that is wider than a line."""
    from rich.cells import cell_len

    part = ""
    used = 0
    for character in text:
        cells = cell_len(character)
        if part and used + cells > width:
            yield part
            part, used = "", 0
        part += character
        used += cells
    yield part


def _isolated(text: str) -> str:
    """Return a text as a directional isolate if it has right-to-left characters."""
    if text.isascii() or not any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in text):
        return text
    return f"{_ISOLATE}{text}{_POP}"


def tokens_for_console(tokens: Iterable[bytes], console: Console, width: int | None = None) -> Text:
    """Return tokens as a console can show them: with its colours, and in lines of its width.

    A pipe or a file gets the characters of the text alone, in lines of any length.

    Args:
        tokens: The bytes of each token, in order.
        console: The rich console.
        width: The columns for the text; None for those of the console.
    """
    columns = max(width or console.width, 1) if console.is_terminal else None
    return coloured_tokens(tokens, console_backgrounds(console), columns)


def console_backgrounds(console: Console) -> Sequence[str]:
    """Return the backgrounds that a console can show; empty for a console without colours.

    Example:
        >>> from rich.console import Console
        >>> console_backgrounds(Console(color_system=None))
        ()
    """
    if console.color_system is None or console.no_color:
        return ()
    return _PALE if console.color_system in ("256", "truecolor") else _BASIC


def print_tokens(tokens: Iterable[bytes], console: Console) -> None:
    """Print tokens in colour, or with `|` between them on a console without colours.

    Args:
        tokens: The bytes of each token, in order.
        console: The rich console to print on.

    Example:
        >>> from rich.console import Console
        >>> print_tokens([b"to", b"ken"], Console(color_system=None))
        to|ken
    """
    # soft_wrap: the lines are as wide as they should be.
    console.print(tokens_for_console(tokens, console), soft_wrap=True)
