"""Sizes in bytes as people write them."""

from __future__ import annotations

import re
import sys

from bpe_tokenizer.arguments import check_integer
from bpe_tokenizer.errors import OptionError, shorten

__all__ = ["byte_size"]

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kMGT]i?B|B)?\s*", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, **{f"{unit}b": 1000**power for power, unit in enumerate("kmgt", 1)}}
_UNITS |= {f"{unit}ib": 1024**power for power, unit in enumerate("kmgt", 1)}


def byte_size(name: str, value: int | str) -> int:
    """Return a size in bytes, which is at least 1.

    Args:
        name: The argument, for messages.
        value: Bytes, or a text like `"500MB"` or `"2GiB"`.

    Raises:
        ArgumentTypeError: It is neither an `int` nor a `str`.
        OptionError: The text is not a size, or the size is less than 1.

    >>> byte_size("unit_bytes", "1.5GB")
    1500000000
    """
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None:
            raise OptionError(f"{name} is {shorten(value)}; say it as '500MB', '2GB' or in bytes")
        value = int(min(float(match[1]) * _UNITS[(match[2] or "").lower()], sys.maxsize))
    return check_integer(name, value, 1)
