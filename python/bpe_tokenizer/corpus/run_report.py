"""Reports the progress of a run: a bar for people, and events for programs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from bpe_tokenizer.corpus.manifest import Shard, UnitRecord
from bpe_tokenizer.corpus.result import TokenizedCorpus
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.readers import BadRow, Input
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["Event", "OnEvent", "RunReport"]

Event: TypeAlias = dict[str, Any]
OnEvent: TypeAlias = Callable[[Event], None]

_SECONDS = 10.0
_MAX_WARNINGS = 100


class RunReport:
    """Reports the progress of a run.

    The events are dicts of JSON values with the key `"event"`: `"start"`, `"unit"`, `"shard"`, `"progress"`,
    `"warning"` and `"end"`.

    Args:
        bar: The progress bar.
        on_event: Called with each event, one at a time; None for no events.
        total: Number of stored bytes to read; None if it is unknown.
    """

    def __init__(self, bar: ProgressBar, on_event: OnEvent | None = None, total: int | None = None) -> None:
        self._bar = bar
        self._on_event = on_event
        self._total = total
        self._begin = self._reported = time.monotonic()
        self._read_before: int | None = None
        self._warnings = 0
        # The stored bytes, documents and ids: of all units, and of each that is in work.
        self._totals = (0, 0, 0)
        self._units: dict[int, tuple[int, int, int]] = {}
        self._lock = threading.RLock()
        self._is_stopped = False
        bar.start("Tokenizing", total, "MB", 1e6)

    def event(self, name: str, **values: Any) -> None:
        """Report an event."""
        if self._on_event is not None:
            with self._lock:
                self._on_event({"event": name, **values})

    def stop(self) -> None:
        """Let the units that are in work end, with an error, at their next progress."""
        self._is_stopped = True

    def end(self, made: TokenizedCorpus) -> None:
        """Report the end of the run."""
        self.event("end", **{**made._asdict(), "files": [str(path) for path in made.files]})

    def shard(self, shard: Shard) -> None:
        """Report a finished shard."""
        self.event("shard", files=list(shard.files), documents=shard.documents, tokens=shard.tokens)

    def skipped(self, inputs: Sequence[Input], rows: Sequence[BadRow]) -> None:
        """Warn of skipped rows: the first hundred. The list of skipped rows has them all."""
        for row in rows[: max(_MAX_WARNINGS - self._warnings, 0)]:
            name = inputs[row.input].name
            message = f"{name}, row {row.row} is skipped: it {row.problem}"
            self.event("warning", message=message, file=name, row=row.row, problem=row.problem)
        self._warnings += len(rows)

    def unit(self, record: UnitRecord, read: int, is_kept: bool) -> None:
        """Report a complete unit, and add its totals to those of the next ones.

        Args:
            record: The record of the unit.
            read: Number of its stored bytes.
            is_kept: Whether an earlier run has made it.
        """
        shards = len(record.shards)
        self.event("unit", unit=record.unit, shards=shards, tokens=record.tokens, kept=is_kept)
        self.progress(record.unit, read, record.documents, record.tokens)
        del self._units[record.unit]

    def progress(self, unit: int, read: int, documents: int, tokens: int) -> None:
        """Report progress.

        Args:
            unit: The number of a unit.
            read: Number of its stored bytes that are read.
            documents: Number of its documents.
            tokens: Number of its ids.

        Raises:
            CorpusError: `stop` was called.
        """
        if self._is_stopped:
            raise CorpusError("the run has stopped")
        with self._lock:
            before = self._units.get(unit, (0, 0, 0))
            self._units[unit] = now = (read, documents, tokens)
            read, documents, tokens = (
                sum(each) - old for *each, old in zip(self._totals, now, before, strict=True)
            )
            self._totals = (read, documents, tokens)
            self._show(*self._totals)

    def _show(self, read: int, documents: int, tokens: int) -> None:
        now = time.monotonic()
        if self._read_before is None:
            self._read_before, self._tokens_before, self._begin = read, tokens, now
        seconds = now - self._begin
        rate = (tokens - self._tokens_before) / seconds if seconds > 0 else 0.0
        # As long as a terminal of 80 columns allows, with the other columns of the bar.
        self._bar.update(read, note=f"{_short(tokens)} tokens, {_short(rate)} tokens/s")
        if now - self._reported < _SECONDS or self._on_event is None:
            return
        self._reported = now
        byte_rate = (read - self._read_before) / seconds if seconds > 0 else 0.0
        left = None
        if self._total is not None and byte_rate > 0:
            left = round(max(self._total - read, 0) / byte_rate, 1)
        self.event(
            "progress",
            bytes=read,
            total_bytes=self._total,
            documents=documents,
            tokens=tokens,
            seconds=round(seconds, 1),
            bytes_per_second=round(byte_rate),
            tokens_per_second=round(rate),
            seconds_left=left,
        )


def _short(number: float) -> str:
    """Return a number in three digits.

    >>> [_short(number) for number in (7, 1234, 56_700_000, 8.9e12)]
    ['7', '1.23k', '56.7M', '8.9T']
    """
    for unit in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:,.3g}T"
