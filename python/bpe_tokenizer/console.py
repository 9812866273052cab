"""What people read in a terminal: counts, and consoles whose size the environment cannot make unusable."""

from __future__ import annotations

import _thread
import os
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.libraries import import_library

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["can_start_thread", "count_noun", "new_console"]

_MAX_SIZE = 10_000


def new_console(**settings: Any) -> Console:
    """Return a rich console that prints.

    Rich believes `COLUMNS` and `LINES`: it prints nothing with a width of 0, and fails for `COLUMNS=²`. Here,
    a value that is not a usable size counts as 80 columns or 25 lines.

    Args:
        settings: Keyword arguments of `rich.console.Console`.

    Raises:
        MissingDependencyError: rich is not installed.
    """
    import_library("rich", "cli")
    from rich.console import Console

    for variable, name, default in (("COLUMNS", "width", 80), ("LINES", "height", 25)):
        value = os.environ.get(variable)
        if value is not None and not is_size(value):
            settings.setdefault(name, default)
    return Console(**settings)


def can_start_thread() -> bool:
    """Return whether the system gives this process another thread, as rich needs one to refresh."""
    try:
        _thread.start_new_thread(int, ())
    except (RuntimeError, MemoryError):
        return False
    return True


def count_noun(count: int, noun: str) -> str:
    """Return a count with its noun.

    >>> [count_noun(count, "merge") for count in (0, 1, 2000)]
    ['0 merges', '1 merge', '2,000 merges']
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def is_size(value: str) -> bool:
    """Return whether a text is a usable number of columns or lines.

    >>> [is_size(text) for text in ("80", "0", "-5", "²", "99999999999", "")]
    [True, False, False, False, False, False]
    """
    return value.isascii() and value.isdigit() and len(value) < 10 and 0 < int(value) <= _MAX_SIZE
