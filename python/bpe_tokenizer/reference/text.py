"""What every file needs: the error of the lesson, valid text, and tokens as printable text."""

from collections.abc import Mapping
from os import PathLike
from typing import TypeAlias

# Where files are.
FilePath: TypeAlias = str | PathLike[str]


class TokenizerError(ValueError):
    """An argument, a file or a state that the lesson cannot use. The message says what to do."""


def replace_surrogates(text: str) -> str:
    r"""Join surrogate pairs, and replace lone surrogates by U+FFFD.

    A Python string may hold surrogates, the halves of UTF-16 characters. UTF-8 cannot encode them.

    Raises:
        TokenizerError: The text is not a `str`.

    >>> replace_surrogates("\ud83d\ude00 and \ud83d") == "😀 and \ufffd"
    True
    """
    if not isinstance(text, str):
        raise TokenizerError(f"the text must be a str, not {type(text).__name__}")
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def checked_dict(special_tokens: Mapping[str, int]) -> Mapping[str, int]:
    """Return the ids of special tokens.

    Raises:
        TokenizerError: They are not in a dict, but in a list, for example.
    """
    if not isinstance(special_tokens, Mapping):
        kind = type(special_tokens).__name__
        raise TokenizerError(f"special_tokens must be a dict, such as {{'<|end|>': 300}}, not {kind}")
    return special_tokens


def printable(token: bytes | str) -> str:
    r"""Return a token as one line of text; different tokens look different.

    Text is quoted, with control characters escaped. Bytes that are not UTF-8, such as a part of a character,
    are in hex.

    >>> print(printable(b"low"), printable(b"\r\n\x00"), printable("é".encode()), printable(b"\xc3"))
    'low' '\r\n\x00' 'é' <c3>
    """
    try:
        return repr(token if isinstance(token, str) else token.decode("utf-8"))
    except UnicodeDecodeError:
        return f"<{token.hex(' ')}>" if isinstance(token, bytes) else repr(token)
