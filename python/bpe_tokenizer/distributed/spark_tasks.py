"""Tasks of Spark, as functions of Arrow record batches."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from bpe_tokenizer import errors
from bpe_tokenizer.distributed.tasks import only_column
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import ReadOptions

__all__ = ["SparkTasks"]

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

    def run(self, work: Callable[[_Argument], _Result], arguments: Sequence[_Argument]) -> Iterator[_Result]:
        """Call a function with each argument. As `Tasks.run`; the results arrive at the end."""
        if not arguments:
            return
        # Each task gets all of them, and loads one.
        pickled = list(map(pickle.dumps, arguments))

        def call(numbers: Iterator[Any]) -> _Result:
            (number,) = (each for batch in numbers for each in batch.column("id").to_pylist())
            return work(pickle.loads(pickled[number]))

        # One number a partition: Spark does not distribute rows evenly.
        yield from self.map_rows(call, self.session.range(0, len(pickled), 1, len(pickled)))

    def rows(self, source: Any, read: ReadOptions) -> Any:
        """Return a DataFrame. As `Tasks.rows`."""
        if not hasattr(source, "mapInArrow"):
            return None
        column = only_column(read, source.columns)
        return source if column is None else source.select(source[column])

    def map_rows(self, work: Callable[[Iterator[Any]], _Result], rows: Any) -> Iterator[_Result]:
        """Call a function with the record batches of each partition. As `Tasks.map_rows`."""
        return self.write_rows(lambda _, batches: work(batches), rows)

    def write_rows(self, work: Callable[[int, Iterator[Any]], _Result], rows: Any) -> Iterator[_Result]:
        """Call a function with the record batches of each partition. As `Tasks.write_rows`."""

        def call(batches: Iterator[Any]) -> Iterator[Any]:
            number = import_library("pyspark", "spark").TaskContext.get().partitionId()
            row = {"part": [number], "result": [pickle.dumps(work(number, batches))]}
            yield import_library("pyarrow").RecordBatch.from_pydict(row)

        called = rows.mapInArrow(call, "part long, result binary")
        with _own_errors():
            # All tasks run for the shuffle: without it, they would run one by one, as the results are read.
            # By number, so that the other result of a repeated task replaces the first.
            for _, result in called.repartition("part").toLocalIterator(prefetchPartitions=True):
                yield pickle.loads(result)


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
