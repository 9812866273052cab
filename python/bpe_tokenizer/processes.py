"""What kind of process this is: one that should keep to itself, or one that may use all processors."""

from __future__ import annotations

import os
import sys

__all__ = ["is_worker"]

_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def is_worker() -> bool:
    """Return whether this process is a forked child or a worker of `multiprocessing`: one of several.

    >>> is_worker()
    False
    """
    process = sys.modules.get("multiprocessing.process")  # a worker has imported it
    return _forked or (process is not None and process.parent_process() is not None)
