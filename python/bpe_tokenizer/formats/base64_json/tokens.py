"""Vocabularies and merges with tokens in base64."""

from __future__ import annotations

from base64 import b64decode

from bpe_tokenizer.errors import shorten
from bpe_tokenizer.formats.json_file import Field

__all__ = ["read_merges", "read_vocab", "token_of"]

_MAX_ID = 2**32 - 2


def read_vocab(field: Field) -> dict[int, bytes]:
    """Read an object that maps ids to tokens.

    Raises:
        FormatError: A key is not an id, or a value is not a token in base64.
    """
    vocab: dict[int, bytes] = {}
    for key, value in field.members().items():
        if not (key.isascii() and key.isdecimal() and len(key) <= 10 and str(int(key)) == key):
            raise field.error(f"{shorten(key)} is not an id")
        if int(key) > _MAX_ID:
            raise field.error(f"{key} is not an id; the largest id is {_MAX_ID}")
        token = token_of(value)
        if token is None:
            raise field.get(key).refused("is not a token in base64")
        vocab[int(key)] = token
    return vocab


def read_merges(field: Field) -> list[tuple[bytes, bytes]]:
    """Read an array of pairs of tokens.

    Raises:
        FormatError: An item is not a pair of tokens in base64, or one of them is empty.
    """
    merges = []
    for index, pair in enumerate(field.values()):
        tokens = (
            [token_of(token) for token in pair] if isinstance(pair, list) and len(pair) == 2 else [None, None]
        )
        left, right = tokens
        if not left or not right:
            raise field.item(index).refused("is not a pair of tokens in base64")
        merges.append((left, right))
    return merges


def token_of(value: object) -> bytes | None:
    """Return the bytes of a base64 string; None if it is not one.

    >>> token_of("bG8="), token_of(""), token_of("?"), token_of(7)
    (b'lo', b'', None, None)
    """
    if not isinstance(value, str):
        return None
    try:
        return b64decode(value, validate=True)
    except ValueError:
        return None
