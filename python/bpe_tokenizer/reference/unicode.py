"""From text to bytes, and from bytes to printable text."""

from __future__ import annotations

__all__ = ["printable", "replace_surrogates"]


def replace_surrogates(text: str) -> str:
    r"""Join surrogate pairs, and replace lone surrogates by U+FFFD.

    A Python string may hold surrogates, the halves of UTF-16 characters. UTF-8 cannot encode them.

    Raises:
        TypeError: The text is not a `str`.

    >>> replace_surrogates("\ud83d\ude00 and \ud83d") == "😀 and \ufffd"
    True
    """
    if not isinstance(text, str):
        raise TypeError(f"the text must be a str, not {type(text).__name__}")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def printable(token: bytes | str) -> str:
    r"""Return a token as one line of text; different tokens look different.

    Text is quoted, with control characters escaped. Bytes that are not UTF-8, such as a part of a character,
    are in hex.

    >>> print(printable(b"low"), printable(b"\r\n\x00"), printable("é".encode()), printable(b"\xc3"))
    'low' '\r\n\x00' 'é' <c3>
    """
    if isinstance(token, str):
        return repr(token)
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return f"<{token.hex(' ')}>"
