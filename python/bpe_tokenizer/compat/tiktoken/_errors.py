"""Errors that are also the built-ins which tiktoken raises."""

from __future__ import annotations

from bpe_tokenizer.errors import OptionError, UnknownIdError

__all__ = ["IdOverflowError", "UnknownModelError", "UnknownTokenError"]


class IdOverflowError(UnknownIdError, OverflowError):
    """An integer is negative or above 2**32 - 1, so it cannot be an id."""


class UnknownModelError(OptionError, KeyError):
    """No encoding is known for the name of a model."""

    def __str__(self) -> str:
        """Return the message itself (`KeyError` would quote it)."""
        return Exception.__str__(self)


class UnknownTokenError(UnknownIdError):
    """Some bytes are not a token."""
