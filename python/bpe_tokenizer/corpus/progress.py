"""How far a run through a corpus is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["shown_progress"]


@contextmanager
def shown_progress(wanted: bool, total: int | None) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error, where that is a terminal, while the context lasts.

    Args:
        wanted: False shows nothing.
        total: Bytes that are to be read; None if nobody knows.

    Returns:
        A context: a function that takes the bytes read and the tokens made so far.
    """
    if not wanted or not sys.stderr.isatty():
        yield lambda done, tokens: None
        return
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        *Progress.get_default_columns(),
        DownloadColumn(),
        TextColumn("{task.fields[tokens]:,} tokens"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("Tokenizing", total=total, tokens=0)
        yield lambda done, tokens: bars.update(task, completed=done, tokens=tokens)
