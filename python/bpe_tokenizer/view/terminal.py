"""Tokens as coloured text for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bpe_tokenizer.view.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["coloured_tokens", "console_backgrounds", "print_tokens"]

# Backgrounds for black text; tokens cycle through them. Consoles of 16 colours or fewer get the second row.
_PALE = ("#fde68a", "#a7f3d0", "#bfdbfe", "#fbcfe8", "#ddd6fe", "#fed7aa")
_BASIC = ("yellow", "green", "cyan", "magenta", "white")


def coloured_tokens(tokens: Iterable[bytes], backgrounds: Sequence[str] = _PALE) -> Text:
    r"""Join tokens into one text that shows their boundaries.

    A token that holds a line feed ends its line, so the text keeps its shape.

    Args:
        tokens: The bytes of each token, in order.
        backgrounds: Colour names of rich; tokens cycle through them. Without any, `|` marks the boundaries.

    Returns:
        A `rich.text.Text` without a trailing line feed.

    Example:
        >>> coloured_tokens([b"Hello", b",", b" world"]).plain
        'Hello, world'
        >>> coloured_tokens([b"Hello", b",", b" world"], backgrounds=()).plain
        'Hello|,| world'
    """
    from rich.text import Text

    text = Text()
    starts_line = True
    for index, token in enumerate(tokens):
        if starts_line and index:
            text.append("\n")
        elif index and not backgrounds:
            text.append("|")
        style = f"black on {backgrounds[index % len(backgrounds)]}" if backgrounds else ""
        text.append(printable(token), style=style)
        starts_line = b"\n" in token
    return text


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
    # soft_wrap: the terminal wraps a long line; a pipe gets it unwrapped.
    console.print(coloured_tokens(tokens, console_backgrounds(console)), soft_wrap=True)
