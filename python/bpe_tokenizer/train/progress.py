"""The progress bar of all long-running work."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bpe_tokenizer.arguments import check_flag

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["ProgressBar"]


class ProgressBar:
    """A bar on stderr with rate and remaining time. It shows nothing if stderr is not a terminal."""

    def __init__(self, bars: Progress | None) -> None:
        self._bars = bars

    @classmethod
    @contextlib.contextmanager
    def shown(cls, wanted: bool = True) -> Iterator[ProgressBar]:
        """Show a bar, if wanted, while the context lasts."""
        if not check_flag("verbose", wanted) or not sys.stderr.isatty():
            yield cls(None)
            return
        from rich.progress import Progress, TextColumn, TimeElapsedColumn

        from bpe_tokenizer.console import can_start_thread, new_console

        columns = (*Progress.get_default_columns(), TextColumn("{task.fields[note]}"), TimeElapsedColumn())
        console = new_console(stderr=True)
        with Progress(*columns, console=console, transient=True, auto_refresh=can_start_thread()) as bars:
            yield cls(bars)

    @property
    def visible(self) -> bool:
        """Whether anybody sees the bar."""
        return self._bars is not None

    def start(self, description: str, total: int | None = None, unit: str = "", scale: float = 1) -> None:
        """Start the next stage.

        Args:
            description: The name of the stage.
            total: The amount of work; None if unknown.
            unit: The unit of the rate, as in `"MB"`.
            scale: The amount of work in one unit.
        """
        if self._bars is None:
            return
        for task in self._bars.task_ids:
            self._bars.remove_task(task)
        self._bars.add_task(description, total=total, unit=unit, scale=scale, note="")

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        """Report progress.

        Args:
            done: The amount of work done in this stage.
            total: The amount of work in this stage, if it is known only now.
            note: Text to show after the rate.
        """
        if self._bars is None:
            return
        task = self._bars.tasks[-1]
        rate = f"{task.speed / task.fields['scale']:,.0f} {task.fields['unit']}/s" if task.speed else ""
        note = ", ".join(filter(None, (rate, note)))
        self._bars.update(task.id, completed=done, total=total, note=note)

    def advance(self, amount: int) -> None:
        """Report more work done."""
        if self._bars is not None:
            self.update(int(self._bars.tasks[-1].completed) + amount)
