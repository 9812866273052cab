"""Tokens as printable text."""

from __future__ import annotations

from bpe_tokenizer import _core
from bpe_tokenizer.errors import escaped

__all__ = ["printable", "printable_bytes"]


def printable(token: bytes) -> str:
    r"""Return a token's text, with every character that does not print escaped.

    Bytes that are not UTF-8 on their own (a part of a character) become `\xNN`. Control, format and
    unassigned characters become `\n`, `\x1b`, `\u200b`, so a token cannot move the cursor or change
    colours. Spaces stay.

    Args:
        token: The bytes of one token.

    Example:
        >>> print(printable(" café\n".encode()))
         café\n
        >>> print(printable(b"\xf0\x9f"))
        \xf0\x9f
    """
    return escaped(token.decode("utf-8", errors="backslashreplace"))


def printable_bytes(token: str) -> bytes:
    """Return the bytes of a token string; the UTF-8 of a string that GPT-2's characters do not spell."""
    if not token.isascii():
        token = token.encode(errors="replace").decode()  # lone surrogates, which no token holds
    decoded = _core.from_printable(token)
    return token.encode(errors="replace") if decoded is None else decoded
