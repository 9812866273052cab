"""Tokens as coloured chips in a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bpe_tokenizer.view.chips import backgrounds_of, printable, token_chips

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_tokens", "printable", "token_chips"]


def print_tokens(tokens: Iterable[bytes], console: Console) -> None:
    """Print tokens as chips: in colour where the console has colours, else with `|` between them.

    Args:
        tokens: The bytes of each token, in order.
        console: Where to print.

    Example:
        >>> from rich.console import Console
        >>> print_tokens([b"to", b"ken"], Console(color_system=None))
        to|ken
    """
    # soft_wrap: a long line is broken by the terminal, never in a pipe.
    console.print(token_chips(tokens, backgrounds_of(console)), soft_wrap=True)
