"""From text to bytes, and from bytes to something that can be looked at."""

from __future__ import annotations

__all__ = ["printable", "replace_surrogates"]


def replace_surrogates(text: str) -> str:
    r"""Make a `str` that UTF-8 can hold: join surrogate pairs, and put U+FFFD for lone surrogates.

    A Python string may hold halves of UTF-16 characters, which are no characters and have no UTF-8 bytes.

    Raises:
        TypeError: The text is no `str`.

    >>> replace_surrogates("\ud83d\ude00 and \ud83d") == "😀 and \ufffd"
    True
    """
    if not isinstance(text, str):
        raise TypeError(f"the text must be a str, not {type(text).__name__}")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def printable(token: bytes | str) -> str:
    r"""Write a token on one line, so that different tokens look different.

    Text is quoted and its control characters are escaped; bytes that are no UTF-8, such as a part of a
    character, are written in hex.

    >>> print(printable(b"low"), printable(b"\r\n\x00"), printable("é".encode()), printable(b"\xc3"))
    'low' '\r\n\x00' 'é' <c3>
    """
    if isinstance(token, str):
        return repr(token)
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return f"<{token.hex(' ')}>"
