"""How far a training run is, on a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

__all__ = ["TrainingProgress"]


class TrainingProgress:
    """A bar on stderr where that is a terminal, with rate and remaining time; otherwise nothing."""

    def __init__(self, bars: RichProgress | None) -> None:
        self._bars = bars

    @classmethod
    @contextlib.contextmanager
    def shown(cls, wanted: bool) -> Iterator[TrainingProgress]:
        """Show progress, if wanted, while the context lasts."""
        if not wanted or not sys.stderr.isatty():
            yield cls(None)
            return
        from rich.console import Console
        from rich.progress import Progress, TextColumn, TimeElapsedColumn

        columns = (*Progress.get_default_columns(), TextColumn("{task.fields[rate]}"), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
            yield cls(bars)

    @property
    def visible(self) -> bool:
        """Whether anybody sees it."""
        return self._bars is not None

    def start(self, description: str, total: int | None = None, unit: str = "", scale: float = 1) -> None:
        """Begin the next stage.

        Args:
            description: What is done.
            total: How much there is to do; None if nobody knows.
            unit: What the rate counts, as in `"MB"`.
            scale: How much of the stage one of that is.
        """
        if self._bars is None:
            return
        for task in self._bars.task_ids:
            self._bars.remove_task(task)
        self._bars.add_task(description, total=total, unit=unit, scale=scale, rate="")

    def update(self, done: int, total: int | None = None) -> None:
        """Report how much of the stage is done, and how much there is to do if that is known by now."""
        if self._bars is None:
            return
        task = self._bars.tasks[-1]
        speed = task.speed or 0
        rate = f"{speed / task.fields['scale']:,.0f} {task.fields['unit']}/s" if speed else ""
        self._bars.update(task.id, completed=done, total=total, rate=rate)
