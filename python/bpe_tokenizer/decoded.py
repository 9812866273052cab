"""The bytes of ids as text, which they need not be."""

from __future__ import annotations

import codecs

from bpe_tokenizer.errors import DecodingError, OptionError

__all__ = ["check_error_handler", "decoding_error", "to_text"]


def to_text(data: bytes, errors: str) -> str:
    r"""Return bytes as text.

    Args:
        data: UTF-8, or not.
        errors: A handler of `bytes.decode`, for bytes that are not UTF-8.

    Raises:
        DecodingError: The bytes are not UTF-8, and `errors` is `"strict"`.

    >>> to_text(b"ab\xff", "replace")
    'ab\ufffd'
    """
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise decoding_error(error) from None


def decoding_error(error: UnicodeDecodeError) -> DecodingError:
    """Return an error of `bytes.decode` as our own class of it."""
    return DecodingError(error.encoding, error.object, error.start, error.end, error.reason)


def check_error_handler(errors: str) -> None:
    """Check that there is such a handler of `bytes.decode`.

    Raises:
        OptionError: There is none.
    """
    if errors == "replace":
        return
    try:
        codecs.lookup_error(errors)
    except LookupError:
        raise OptionError(
            f"errors is {errors!r}; it must be 'replace', 'strict', 'ignore' or another handler"
        ) from None
