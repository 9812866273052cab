"""Counts and encodes on Spark, https://spark.apache.org/docs/latest/api/python/."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from bpe_tokenizer import errors
from bpe_tokenizer.distributed.arrow import (
    CountSettings,
    collect_counts,
    count_ranges,
    count_texts,
    encode_texts,
    file_ranges,
    sum_counts,
)
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.piece_counts import PieceCounts

__all__ = ["count_with_spark", "encode_with_spark"]

# Maximum size of a batch of counts for Spark, whose columns of bytes end at 2 GB.
_MAX_BYTES = 64 << 20
# An error of this package in the traceback of a task.
_OUR_ERROR = re.compile(r"^bpe_tokenizer\.errors\.(\w+): (.*)$", re.MULTILINE)


def count_with_spark(
    source: Any,
    settings: CountSettings,
    column: str = "text",
    range_bytes: int = 128 << 20,
    session: Any = None,
) -> PieceCounts:
    """Count the pieces of a corpus on a Spark cluster, with the result of one machine.

    A task counts each partition, or each range of a file. `groupBy` adds up the counts of each piece, and
    spills to disk if they do not fit into memory. The sums arrive in this process batch by batch.

    Args:
        source: A DataFrame whose rows are documents; or one or more paths of UTF-8 files, each a document,
            which all machines see by the same names. (`spark.read.text` removes line ends.)
        settings: How to split documents, as from `CountSettings.of(tokenizer)`.
        column: The DataFrame's column of documents: strings, or binary in UTF-8.
        range_bytes: Size of the ranges of files, in bytes.
        session: The SparkSession for files; None for the active one.

    Raises:
        CorpusError: A file or the column does not exist, a document is null or not UTF-8, or a count exceeds
            63 bits.
        MissingDependencyError: Spark is not installed.

    `examples/count_with_spark.py` runs it.
    """
    sql = import_library("pyspark.sql", "spark")
    functions = import_library("pyspark.sql.functions", "spark")
    if hasattr(source, "mapInArrow"):
        rows = _column(source, column)
        count = partial(count_texts, settings=settings, column=column)
    else:
        tasks = file_ranges(source, range_bytes)
        # One number a partition: Spark does not distribute rows evenly.
        rows = (session or sql.SparkSession.active()).range(0, len(tasks), 1, max(1, len(tasks)))
        count = partial(_count_tasks, tasks=tasks, settings=settings)
    counted = rows.mapInArrow(partial(_counted, count=count), "piece binary, n bigint")
    # try_sum gives null on overflow; without ANSI mode, sum wraps around.
    summed = counted.groupBy("piece").agg(functions.try_sum("n").alias("n"))
    packed = summed.mapInArrow(_packed, "batch binary")
    with _own_errors():
        return collect_counts(_unpacked(packed.toLocalIterator(prefetchPartitions=True)), settings)


def encode_with_spark(
    frame: Any,
    tokenizer: BPETokenizer,
    column: str = "text",
    ids_column: str = "input_ids",
    add_special_tokens: bool = False,
    allowed_special: AllowedSpecial = "none",
) -> Any:
    """Encode a DataFrame on a Spark cluster.

    Args:
        frame: A DataFrame whose rows are documents.
        tokenizer: The tokenizer; it is sent to the tasks once.
        column: The column of documents: strings, or binary in UTF-8.
        ids_column: The column to add or replace: array<int>, because Spark has no unsigned numbers.
        add_special_tokens: Whether to add the model's special tokens to each document.
        allowed_special: The special tokens to recognise: `"none"`, `"all"` or a set.

    Returns:
        The DataFrame with the ids, evaluated lazily.

    Raises:
        CorpusError: The column does not exist.
        MissingDependencyError: Spark is not installed.

    `examples/count_with_spark.py` runs it.
    """
    types = import_library("pyspark.sql.types", "spark")
    _column(frame, column)

    def encode(batch: Any) -> Any:
        return encode_texts(batch, tokenizer, column, ids_column, add_special_tokens, allowed_special)

    ids = types.StructField(ids_column, types.ArrayType(types.IntegerType(), False), False)
    fields = [ids if field.name == ids_column else field for field in frame.schema.fields]
    schema = types.StructType(fields if ids in fields else [*fields, ids])
    return frame.mapInArrow(partial(_encoded, encode=encode, ids_column=ids_column), schema)


def _column(frame: Any, column: str) -> Any:
    if column not in frame.columns:
        names = ", ".join(map(repr, frame.columns))
        raise CorpusError(f"no column {column!r}; the columns are {names}")
    return frame.select(frame[column])


def _count_tasks(batch: Any, tasks: Sequence[Any], settings: CountSettings) -> Any:
    ranges = [tasks[number] for number in batch.column("id").to_pylist()]
    return count_ranges(import_library("pyarrow").concat_batches(ranges), settings)


def _counted(batches: Iterable[Any], count: Callable[[Any], Any]) -> Iterator[Any]:
    """Count the batches of a task, and add up the counts before they are sent to other tasks."""
    pyarrow = import_library("pyarrow")
    kinds = pyarrow.schema([("piece", pyarrow.binary()), ("n", pyarrow.int64())])
    for total in sum_counts(map(count, batches)):
        for part in _halves(total):
            yield part.cast(kinds)


def _halves(batch: Any) -> Iterator[Any]:
    """Halve a batch until each part is small enough."""
    if batch.num_rows <= 1 or batch.nbytes <= _MAX_BYTES:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _halves(batch.slice(0, middle))
    yield from _halves(batch.slice(middle))


def _packed(batches: Iterable[Any]) -> Iterator[Any]:
    """Turn batches into rows, because Spark returns rows incrementally, not batches."""
    pyarrow, ipc = import_library("pyarrow"), import_library("pyarrow.ipc")
    for batch in batches:
        sink = pyarrow.BufferOutputStream()
        with ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        packed = pyarrow.array([sink.getvalue().to_pybytes()], pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([packed], names=["batch"])


def _unpacked(rows: Iterable[Any]) -> Iterator[Any]:
    ipc = import_library("pyarrow.ipc")
    for (packed,) in rows:
        yield from ipc.open_stream(packed)


def _encoded(batches: Iterable[Any], encode: Callable[[Any], Any], ids_column: str) -> Iterator[Any]:
    pyarrow = import_library("pyarrow")
    signed = pyarrow.list_(pyarrow.int32())
    for batch in map(encode, batches):
        index = batch.schema.names.index(ids_column)
        yield batch.set_column(index, ids_column, batch.column(index).cast(signed))


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
