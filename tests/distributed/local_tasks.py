"""An engine in this process that repeats, doubles and breaks off its tasks, in a random order."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bpe_tokenizer.atomic import AtomicFile


class TaskKilledError(BaseException):
    """A task that ends in the middle of its work."""


class LocalTasks:
    """Runs tasks as an engine with failures does.

    Args:
        seed: Of the order and of the failures.
        failures: The probability that an attempt ends before or after it moves a file into place.
    """

    def __init__(self, seed: int = 0, failures: float = 0.0) -> None:
        self._random = random.Random(seed)
        self._failures = failures
        self.attempts = 0

    def run(self, work: Callable[[Any], Any], arguments: Sequence[Any]) -> Iterator[Any]:
        """Call a function with each argument. As `Tasks.run`."""
        order = list(arguments)
        self._random.shuffle(order)
        for argument in order:
            for _ in range(self._random.choice([1, 1, 2])):
                result = self._until_it_works(work, pickle.dumps(argument))
            yield pickle.loads(pickle.dumps(result))

    def rows(self, source: Any, read: Any) -> Any:
        """Return a list of partitions, each a list of record batches; None for anything else."""
        is_partitions = isinstance(source, list) and all(isinstance(each, list) for each in source)
        return source if source and is_partitions else None

    def map_rows(self, work: Callable[[Iterator[Any]], Any], rows: Any) -> Iterator[Any]:
        """Call a function with each partition. As `Tasks.map_rows`."""
        return self.run(lambda part: work(iter(part)), rows)

    def write_rows(self, work: Callable[[int, Iterator[Any]], Any], rows: Any) -> Iterator[Any]:
        """Call a function with each partition. As `Tasks.write_rows`."""
        return self.run(lambda part: work(part[0], iter(part[1])), list(enumerate(rows)))

    def _until_it_works(self, work: Callable[[Any], Any], argument: bytes) -> Any:
        while True:
            self.attempts += 1
            replace = AtomicFile.replace
            AtomicFile.replace = self._failing(replace)  # type: ignore[method-assign, assignment]
            try:
                return work(pickle.loads(argument))
            except TaskKilledError:
                continue
            finally:
                AtomicFile.replace = replace  # type: ignore[method-assign]

    def _failing(self, replace: Callable[[AtomicFile], None]) -> Callable[[AtomicFile], None]:
        def fails(file: AtomicFile) -> None:
            if self._random.random() < self._failures / 2:
                raise TaskKilledError
            replace(file)
            if self._random.random() < self._failures / 2:
                raise TaskKilledError

        return fails
