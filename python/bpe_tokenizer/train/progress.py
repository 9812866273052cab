"""The progress of long work: a bar in a terminal, lines in a log, calls of a program's function."""

from __future__ import annotations

import contextlib
import datetime
import logging
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bpe_tokenizer.arguments import check_flag
from bpe_tokenizer.errors import ArgumentTypeError

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import Task

__all__ = ["OnProgress", "Progress", "ProgressBar", "progress_lines", "report_progress", "say"]

_LINE_SECONDS = 30.0
# A narrower terminal shows the numbers without the bar: rich would cut all columns to a few characters.
_MIN_BAR_WIDTH = 60
_LOGGER = logging.getLogger("bpe_tokenizer")
_wants_lines: ContextVar[bool] = ContextVar("wants_lines", default=False)
_on_progress: ContextVar[OnProgress | None] = ContextVar("on_progress", default=None)
# Tests replace it.
clock = time.monotonic


@dataclass(frozen=True)
class Progress:
    """How far a stage of long work is.

    Args:
        stage: Its name, such as `"Counting pieces"`.
        done: The work that is done.
        total: All of the work; None if it is unknown.
        unit: The unit of both, such as `"MB"` or `"merges"`.
    """

    stage: str
    done: float
    total: float | None
    unit: str


class OnProgress(Protocol):
    """A function that `report_progress` calls."""

    def __call__(self, progress: Progress, /) -> object:
        """Take the progress; the result is ignored."""


@contextlib.contextmanager
def report_progress(to: OnProgress) -> Iterator[None]:
    """Call a function with the progress of training, counting and tokenizing, while the context lasts.

    Args:
        to: The function. It is called in the thread of the work, often, so it should be fast. What it raises
            ends the work. Work that another thread begins is not reported.

    Raises:
        ArgumentTypeError: `to` cannot be called.

    >>> from bpe_tokenizer import BPETokenizer, report_progress
    >>> seen = []
    >>> with report_progress(seen.append):
    ...     _ = BPETokenizer().train("low low lower lowest", 258, verbose=False)
    >>> seen[-1]
    Progress(stage='Learning merges', done=2.0, total=2.0, unit='merges')
    """
    if not callable(to):
        raise ArgumentTypeError(f"report_progress takes a function, not {type(to).__name__}")
    token = _on_progress.set(to)
    try:
        yield
    finally:
        _on_progress.reset(token)


def say(message: str) -> None:
    """Report a fact: to the logger `bpe_tokenizer` where a program logs the level INFO, else on stderr."""
    if _is_logged():
        _LOGGER.info(message)
    else:
        print(message, file=sys.stderr, flush=True)


def _is_logged() -> bool:
    return _LOGGER.isEnabledFor(logging.INFO) and _LOGGER.hasHandlers()


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
        lines: Whether to say a line for every 30 seconds of work.
        to: The function of `report_progress`.
    """

    def __init__(self, bars: Bars | None, lines: bool = False, to: OnProgress | None = None) -> None:
        self._bars = bars
        self._lines = lines
        self._to = to
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
            from rich.progress import Progress as Bars
            from rich.progress import TextColumn, TimeElapsedColumn
        except ImportError:  # of the extra `cli`
            has_rich = False
        else:
            has_rich = True
        if not has_rich:  # not above: an error of the work would be one that the import caused
            yield cls(None, True, _on_progress.get())
            return

        from bpe_tokenizer.console import can_start_thread, new_console

        console = new_console(stderr=True)
        note = TextColumn("{task.fields[note]}")
        columns = (*Bars.get_default_columns(), note, TimeElapsedColumn())
        if console.width < _MIN_BAR_WIDTH:
            columns = (TextColumn("{task.description} {task.fields[note]}"),)
        with Bars(*columns, console=console, transient=True, auto_refresh=can_start_thread()) as bars:
            yield cls(bars, to=_on_progress.get())

    @classmethod
    def without_terminal(cls, wanted: bool) -> ProgressBar:
        """Return a bar that says lines, if wanted, to a log or in `progress_lines`; none in a terminal."""
        lines = wanted and (_wants_lines.get() or _is_logged()) and not sys.stderr.isatty()
        return cls(None, lines, _on_progress.get())

    @property
    def visible(self) -> bool:
        """Whether anybody sees the progress."""
        return self._bars is not None or self._lines or self._to is not None

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
        if self._to is not None:
            whole = None if self._total is None else self._total / self._scale
            self._to(Progress(self._description, done / self._scale, whole, self._unit))
        if self._lines:
            self._say_line(note)
        if self._bars is None:
            return
        task = self._bars.tasks[-1]
        rate = f"{task.speed / self._scale:,.0f} {self._unit}/s" if task.speed else ""
        read = "" if self._total is not None else f"{self._amount(done)} {self._unit}"
        note = ", ".join(filter(None, (*self._share(task), read, rate, note)))
        self._bars.update(task.id, completed=done, total=total, note=note)

    def _share(self, task: Task) -> Iterator[str]:
        """Yield, where no bar shows them, the percentage and the remaining time."""
        assert self._bars is not None
        if self._total and self._bars.console.width < _MIN_BAR_WIDTH:
            yield f"{100 * self._done // self._total}%"
            if task.time_remaining:
                yield f"{datetime.timedelta(seconds=task.time_remaining)} left"

    def end(self, done: int) -> None:
        """Report the end of a stage, which may come before its total."""
        if self.visible and (self._done, self._total) != (done, done):
            self.update(done, done)

    def advance(self, amount: int) -> None:
        """Report more work done."""
        self.update(self._done + amount)

    def _say_line(self, note: str) -> None:
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
        say(f"{self._description}: {facts}")

    def _amount(self, work: float) -> str:
        units = work / self._scale
        return f"{units:,.{0 if units >= 10 or self._scale == 1 else 2}f}"
