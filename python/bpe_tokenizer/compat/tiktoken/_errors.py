"""Our errors where tiktoken raises a built-in that ours are not."""

from __future__ import annotations

from bpe_tokenizer.errors import OptionError, UnknownIdError

__all__ = ["IdOverflowError", "UnknownModelError", "UnknownTokenError"]


class IdOverflowError(UnknownIdError, OverflowError):
    """An integer that no id can be, negative or above 2**32 - 1, is asked for as an id."""


class UnknownModelError(OptionError, KeyError):
    """No encoding is known for the name of a model."""

    def __str__(self) -> str:
        """Return the message itself (`KeyError` would quote it)."""
        return Exception.__str__(self)


class UnknownTokenError(UnknownIdError):
    """A text or some bytes are no token."""
