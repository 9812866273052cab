"""Core tasks of Ray, https://docs.ray.io/en/latest/ray-core/tasks.html."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from bpe_tokenizer.distributed.tasks import only_column
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import ReadOptions

__all__ = ["RayTasks"]

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

# Tasks that wait or run at the same time, for each processor of the cluster, and at least.
_SUBMITTED_PER_PROCESSOR = 2
_MIN_SUBMITTED = 16
# What Ray Data appends to the message of an error.
_APPENDED = "\nFailed to apply UDF transform"


class RayTasks:
    """Runs functions as Ray's core tasks. Ray starts on this machine unless it runs.

    Args:
        options: The options of the tasks, as of `ray.remote`: `{"num_cpus": 2, "memory": 4 << 30}`.

    Raises:
        MissingDependencyError: Ray is not installed.
    """

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.ray = import_library("ray", "ray")
        self.options = dict(options or {})

    def run(self, work: Callable[[_Argument], _Result], arguments: Sequence[_Argument]) -> Iterator[_Result]:
        """Call a function with each argument. As `Tasks.run`.

        After an error, the submitted tasks run to their end, and nobody waits for them: `ray.cancel` of a
        task that completes at the same time ends the process of Ray 2.60 ("Check failed: it !=
        submissible_tasks_.end()"). So only a few are submitted at a time.
        """
        ray = self.ray
        task = ray.remote(_call)
        if self.options:
            task = task.options(**self.options)
        sent = ray.put(work)
        left = iter(arguments)
        running: list[Any] = []
        while True:
            free = max(self._most_submitted() - len(running), 0)
            running += [task.remote(sent, argument) for argument in islice(left, free)]
            if not running:
                return
            done, running = ray.wait(running)
            with _own_errors(ray):
                results = ray.get(done)
            yield from results

    def _most_submitted(self) -> int:
        """Return how many tasks may wait or run. A cluster grows while tasks wait."""
        processors = self.ray.cluster_resources().get("CPU", 0)
        return max(int(_SUBMITTED_PER_PROCESSOR * processors), _MIN_SUBMITTED)

    def rows(self, source: Any, read: ReadOptions) -> Any:
        """Return a dataset. As `Tasks.rows`."""
        if not isinstance(source, import_library("ray.data", "ray").Dataset):
            return None
        names = source.columns(fetch_if_missing=False)
        column = None if names is None else only_column(read, names)
        return source if column is None else source.select_columns([column])

    def map_rows(self, work: Callable[[Iterator[Any]], _Result], rows: Any) -> Iterator[_Result]:
        """Call a function with the record batches of each block. As `Tasks.map_rows`."""

        # A generator, whose errors Ray raises with their types.
        def call(table: Any) -> Iterator[Any]:
            result = pickle.dumps(work(iter(table.to_batches())))
            yield import_library("pyarrow").table({"result": [result]})

        called = rows.map_batches(call, batch_format="pyarrow", batch_size=None)
        with _own_errors(self.ray):
            for table in called.iter_batches(batch_format="pyarrow", batch_size=None):
                yield from map(pickle.loads, table.column("result").to_pylist())

    def write_rows(self, work: Callable[[int, Iterator[Any]], _Result], rows: Any) -> Iterator[_Result]:
        """Call a function with the record batches of each write task. As `Tasks.write_rows`."""
        sink = _sink(work)
        with _own_errors(self.ray):
            rows.write_datasink(sink, ray_remote_args=self.options)
        yield from sink.written


def _call(work: Callable[[_Argument], _Result], argument: _Argument) -> _Result:
    return work(argument)


def _sink(work: Callable[[int, Iterator[Any]], _Result]) -> Any:
    """Return a `ray.data.Datasink` that writes the blocks of each task; its `written` are the results."""
    data, block = import_library("ray.data", "ray"), import_library("ray.data.block", "ray")

    class ShardDatasink(data.Datasink):  # type: ignore[misc, name-defined]
        """https://docs.ray.io/en/latest/data/api/doc/ray.data.Datasink.html."""

        written: Sequence[Any] = ()

        def write(self, blocks: Any, ctx: Any) -> Any:
            tables = (block.BlockAccessor.for_block(each).to_arrow() for each in blocks)
            return work(ctx.task_idx, (batch for table in tables for batch in table.to_batches()))

        def on_write_complete(self, write_result: Any) -> None:
            self.written = write_result.write_returns

    return ShardDatasink()


@contextmanager
def _own_errors(ray: Any) -> Iterator[None]:
    """Replace Ray's error, whose message is the traceback of a task, by the error of this package in it."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if not isinstance(cause, TokenizerError):
            raise
        message, appended, _ = str(cause).partition(_APPENDED)
        raise (type(cause)(message) if appended else cause) from None
