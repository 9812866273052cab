"""Tasks of Spark, as functions of Arrow record batches."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from bpe_tokenizer import errors
from bpe_tokenizer.distributed.tasks import Sent
from bpe_tokenizer.libraries import import_library

__all__ = ["SparkTasks", "own_errors"]

_Shared = TypeVar("_Shared")
_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

# An error of this package in the traceback of a task.
_OUR_ERROR = re.compile(r"^bpe_tokenizer\.errors\.(\w+): (.*)$", re.MULTILINE)


class SparkTasks:
    """Runs functions as the tasks of a Spark job.

    They run in `mapInArrow`, which Spark Connect has too, and not on RDDs.

    Args:
        session: The SparkSession; None for the active one.

    Raises:
        MissingDependencyError: Spark is not installed.
    """

    def __init__(self, session: Any = None) -> None:
        sql = import_library("pyspark.sql", "spark")
        self.session = session or sql.SparkSession.active()

    def run(
        self,
        work: Callable[[_Shared, _Argument], _Result],
        shared: _Shared,
        arguments: Sequence[_Argument],
    ) -> Iterator[tuple[int, _Result]]:
        """Call a function with each argument. As `Tasks.run`; the results arrive at the end."""
        if not arguments:
            return
        sent = Sent((shared, list(arguments)))
        # One number a partition: Spark does not distribute rows evenly.
        numbers = self.session.range(0, len(arguments), 1, len(arguments))
        called = numbers.mapInArrow(partial(_call, work=work, sent=sent), "task bigint, result binary")
        with own_errors():
            rows = called.collect()
        for task, result in rows:
            yield task, pickle.loads(result)


def _call(
    batches: Iterable[Any],
    work: Callable[[_Shared, _Argument], _Result],
    sent: Sent[tuple[_Shared, list[_Argument]]],
) -> Iterator[Any]:
    pyarrow = import_library("pyarrow")
    for batch in batches:
        for task in batch.column("id").to_pylist():
            shared, arguments = sent.load()
            result = pickle.dumps(work(shared, arguments[task]))
            arrays = [pyarrow.array([task], pyarrow.int64()), pyarrow.array([result], pyarrow.binary())]
            yield pyarrow.RecordBatch.from_arrays(arrays, names=["task", "result"])


@contextmanager
def own_errors() -> Iterator[None]:
    """Replace Spark's error by the error of this package that made a task fail."""
    try:
        yield
    except Exception as error:  # Spark and its Java connection have no common error class.
        found = _OUR_ERROR.search(str(error))
        if found is None:
            raise
        raise getattr(errors, found[1])(found[2]) from None
