"""The progress of long work: a bar in a terminal, and lines elsewhere if a command asks for them."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

from bpe_tokenizer.arguments import check_flag

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["ProgressBar", "progress_lines"]

_LINE_SECONDS = 30.0
_wants_lines: ContextVar[bool] = ContextVar("wants_lines", default=False)
# Tests replace it.
clock = time.monotonic


@contextlib.contextmanager
def progress_lines() -> Iterator[None]:
    """Show progress also where stderr is not a terminal, as the command line does: a line in 30 seconds."""
    token = _wants_lines.set(True)
    try:
        yield
    finally:
        _wants_lines.reset(token)


class ProgressBar:
    """A bar on stderr with rate and remaining time; or lines, if stderr is not a terminal.

    Args:
        bars: The bar; None shows none.
        lines: Whether to print a line on stderr for every 30 seconds of work.
    """

    def __init__(self, bars: Progress | None, lines: bool = False) -> None:
        self._bars = bars
        self._lines = lines
        self._printed = self._begin = clock()
        self._description = self._unit = ""
        self._scale: float = 1
        self._total: int | None = None
        self._done = 0
        self._first: tuple[int, float] | None = None

    @classmethod
    @contextlib.contextmanager
    def shown(cls, wanted: bool = True) -> Iterator[ProgressBar]:
        """Show a bar, if wanted, while the context lasts. Without a terminal, as `without_terminal`."""
        if not check_flag("verbose", wanted) or not sys.stderr.isatty():
            yield cls.without_terminal(wanted)
            return
        try:
            from rich.progress import Progress, TextColumn, TimeElapsedColumn
        except ImportError:  # of the extra `cli`
            has_rich = False
        else:
            has_rich = True
        if not has_rich:  # not above: an error of the work would be one that the import caused
            yield cls(None, lines=True)
            return

        from bpe_tokenizer.console import can_start_thread, new_console

        columns = (*Progress.get_default_columns(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
        console = new_console(stderr=True)
        with Progress(*columns, console=console, transient=True, auto_refresh=can_start_thread()) as bars:
            yield cls(bars)

    @classmethod
    def without_terminal(cls, wanted: bool) -> ProgressBar:
        """Return a bar that prints lines, if wanted in `progress_lines`, and shows nothing in a terminal."""
        return cls(None, wanted and _wants_lines.get() and not sys.stderr.isatty())

    @property
    def visible(self) -> bool:
        """Whether anybody sees the progress."""
        return self._bars is not None or self._lines

    def start(self, description: str, total: int | None = None, unit: str = "", scale: float = 1) -> None:
        """Start the next stage.

        Args:
            description: The name of the stage.
            total: The amount of work; None if unknown.
            unit: The unit of the rate, as in `"MB"`.
            scale: The amount of work in one unit.
        """
        self._description, self._total, self._unit, self._scale = description, total, unit, scale
        self._begin, self._done, self._first = clock(), 0, None
        if self._bars is None:
            return
        for task in self._bars.task_ids:
            self._bars.remove_task(task)
        self._bars.add_task(description, total=total, note="")

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        """Report progress.

        Args:
            done: The amount of work done in this stage.
            total: The amount of work in this stage, if it is known only now.
            note: Text to show after the rate.
        """
        self._done = done
        self._total = self._total if total is None else total
        if self._lines:
            self._print(note)
        if self._bars is None:
            return
        task = self._bars.tasks[-1]
        rate = f"{task.speed / self._scale:,.0f} {self._unit}/s" if task.speed else ""
        read = "" if self._total is not None else f"{self._amount(done)} {self._unit}"
        note = ", ".join(filter(None, (read, rate, note)))
        self._bars.update(task.id, completed=done, total=total, note=note)

    def advance(self, amount: int) -> None:
        """Report more work done."""
        self.update(self._done + amount)

    def _print(self, note: str) -> None:
        now = clock()
        # What a resumed run finds done does not count as speed.
        first, measured = self._first = self._first or (self._done, now)
        if now - self._printed < _LINE_SECONDS:
            return
        self._printed = now
        rate = (
            f"{self._amount((self._done - first) / (now - measured))} {self._unit}/s"
            if now > measured
            else ""
        )
        total = "" if self._total is None else f" of {self._amount(self._total)}"
        done, seconds = f"{self._amount(self._done)}{total} {self._unit}", f"{now - self._begin:,.0f} s"
        facts = ", ".join(filter(None, (done, rate, note, seconds)))
        print(f"{self._description}: {facts}", file=sys.stderr, flush=True)

    def _amount(self, work: float) -> str:
        units = work / self._scale
        return f"{units:,.{0 if units >= 10 or self._scale == 1 else 2}f}"
