"""Tasks of Spark, as functions of Arrow record batches."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from bpe_tokenizer import errors
from bpe_tokenizer.distributed.tasks import Sent, only_column
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import ReadOptions

__all__ = ["SparkTasks"]

_Shared = TypeVar("_Shared")
_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

# An error of this package in the traceback of a task.
_OUR_ERROR = re.compile(r"^bpe_tokenizer\.errors\.(\w+): (.*)$", re.MULTILINE)


class SparkTasks:
    """Runs functions as the tasks of a Spark job.

    They run in `mapInArrow`, which Spark Connect has too, and not on RDDs.

    Args:
        session: The SparkSession; None for that of a DataFrame, or the active one.
        source: The DataFrame, or files.

    Raises:
        MissingDependencyError: Spark is not installed.
    """

    def __init__(self, session: Any, source: Any) -> None:
        sql = import_library("pyspark.sql", "spark")
        self.session = session or getattr(source, "sparkSession", None) or sql.SparkSession.active()

    def run(
        self,
        work: Callable[[_Shared, _Argument], _Result],
        shared: _Shared,
        arguments: Sequence[_Argument],
    ) -> Iterator[tuple[int, _Result]]:
        """Call a function with each argument. As `Tasks.run`; the results arrive at the end."""
        # One number a partition: Spark does not distribute rows evenly.
        numbers = self.session.range(0, len(arguments), 1, max(1, len(arguments)))
        return self.map_rows(partial(_run, work=work), numbers, (shared, list(arguments)))

    def rows(self, source: Any, read: ReadOptions) -> Any:
        """Return a DataFrame. As `Tasks.rows`."""
        if not hasattr(source, "mapInArrow"):
            return None
        column = only_column(read, source.columns)
        return source if column is None else source.select(source[column])

    def map_rows(
        self, work: Callable[[_Shared, Iterator[Any]], Iterator[_Result]], rows: Any, shared: _Shared
    ) -> Iterator[_Result]:
        """Call a function with the record batches of each partition. As `Tasks.map_rows`."""
        called = rows.mapInArrow(partial(_call, work=work, sent=Sent(shared)), "part int, result binary")
        with _own_errors():
            # All tasks run for the shuffle: without it, they would run one by one, as the results are read.
            # By number, so that the other result of a repeated task replaces the first.
            for _, result in called.repartition("part").toLocalIterator(prefetchPartitions=True):
                yield pickle.loads(result)

    def write_rows(
        self, write: Callable[[_Shared, int, Iterator[Any]], _Result], rows: Any, shared: _Shared
    ) -> Iterator[_Result]:
        """Call a function with the record batches of each partition. As `Tasks.write_rows`."""
        return self.map_rows(partial(_write, write=write), rows, shared)


def _run(
    shared: tuple[_Shared, list[_Argument]],
    batches: Iterator[Any],
    work: Callable[[_Shared, _Argument], _Result],
) -> Iterator[tuple[int, _Result]]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield number, work(shared[0], shared[1][number])


def _write(
    shared: _Shared, batches: Iterator[Any], write: Callable[[_Shared, int, Iterator[Any]], _Result]
) -> Iterator[_Result]:
    yield write(shared, _number(), batches)


def _call(
    batches: Iterator[Any],
    work: Callable[[_Shared, Iterator[Any]], Iterator[_Result]],
    sent: Sent[_Shared],
) -> Iterator[Any]:
    pyarrow = import_library("pyarrow")
    for result in work(sent.load(), batches):
        row = [pyarrow.array([_number()], pyarrow.int32()), pyarrow.array([pickle.dumps(result)])]
        yield pyarrow.RecordBatch.from_arrays(row, names=["part", "result"])


def _number() -> int:
    """Return the number of the partition of this task."""
    number: int = import_library("pyspark", "spark").TaskContext.get().partitionId()
    return number


@contextmanager
def _own_errors() -> Iterator[None]:
    """Replace Spark's error by the error of this package that made a task fail."""
    try:
        yield
    except Exception as error:  # Spark and its Java connection have no common error class.
        found = _OUR_ERROR.search(str(error))
        if found is None:
            raise
        raise getattr(errors, found[1])(found[2]) from None
