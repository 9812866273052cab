"""Counting and encoding on Spark, https://spark.apache.org/docs/latest/api/python/."""

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

# Counts go to Spark in batches of at most so many bytes: its own columns of bytes end at 2 GB.
_MOST_BYTES = 64 << 20
# How a task's traceback shows an error of this package.
_OUR_ERROR = re.compile(r"^bpe_tokenizer\.errors\.(\w+): (.*)$", re.MULTILINE)


def count_with_spark(
    source: Any,
    settings: CountSettings,
    column: str = "text",
    range_bytes: int = 128 << 20,
    session: Any = None,
) -> PieceCounts:
    """Count the pieces of a corpus on a Spark cluster: exactly what one machine counts.

    Each partition, or range of a file, is counted by a task; `groupBy` adds up the counts of each piece, and
    spills to disk what does not fit into memory. The sums come to this process a batch at a time.

    Args:
        source: A DataFrame whose rows are documents; or a path, or several, of text in UTF-8, each file a
            document, which all machines see by that name. (`spark.read.text` takes the line ends off.)
        settings: What cuts the documents; `CountSettings.of(tokenizer)`.
        column: The DataFrame's column of documents: strings, or binary in UTF-8.
        range_bytes: Size of the ranges of files, in bytes.
        session: The SparkSession for files; None for the active one.

    Raises:
        CorpusError: There is no such file or column, a document is null or not UTF-8, or a count is beyond
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
        # Partitions with a number each, for rows cannot be dealt out evenly.
        rows = (session or sql.SparkSession.active()).range(0, len(tasks), 1, max(1, len(tasks)))
        count = partial(_count_tasks, tasks=tasks, settings=settings)
    counted = rows.mapInArrow(partial(_counted, count=count), "piece binary, n bigint")
    # try_sum is null where sum may wrap around, as it does without ANSI mode.
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
        tokenizer: Encodes them; it is sent to the tasks once.
        column: The column of documents: strings, or binary in UTF-8.
        ids_column: The column that is added, or put in the place of one of that name: array<int>, for Spark
            has no unsigned numbers.
        add_special_tokens: Put the model's special tokens around each document.
        allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.

    Returns:
        The DataFrame with the ids; nothing runs before its rows are asked for.

    Raises:
        CorpusError: There is no such column.
        MissingDependencyError: Spark is not installed.

    `examples/count_with_spark.py` runs it.
    """
    types = import_library("pyspark.sql.types", "spark")
    _column(frame, column)
    encode = partial(
        encode_texts,
        tokenizer=tokenizer,
        column=column,
        ids_column=ids_column,
        add_special_tokens=add_special_tokens,
        allowed_special=allowed_special,
    )
    ids = types.StructField(ids_column, types.ArrayType(types.IntegerType(), False), False)
    fields = [ids if field.name == ids_column else field for field in frame.schema.fields]
    schema = types.StructType(fields if ids in fields else [*fields, ids])
    return frame.mapInArrow(partial(_encoded, encode=encode, ids_column=ids_column), schema)


def _column(frame: Any, column: str) -> Any:
    if column not in frame.columns:
        names = ", ".join(map(repr, frame.columns))
        raise CorpusError(f"there is no column {column!r}; there are {names}")
    return frame.select(frame[column])


def _count_tasks(batch: Any, tasks: Sequence[Any], settings: CountSettings) -> Any:
    ranges = [tasks[number] for number in batch.column("id").to_pylist()]
    return count_ranges(import_library("pyarrow").concat_batches(ranges), settings)


def _counted(batches: Iterable[Any], count: Callable[[Any], Any]) -> Iterator[Any]:
    """Count what a task gets, and add it up before it is sent to others."""
    pyarrow = import_library("pyarrow")
    kinds = pyarrow.schema([("piece", pyarrow.binary()), ("n", pyarrow.int64())])
    for total in sum_counts(map(count, batches)):
        for part in _parts(total):
            yield part.cast(kinds)


def _parts(batch: Any) -> Iterator[Any]:
    """Halve a batch until each part is small enough."""
    if batch.num_rows <= 1 or batch.nbytes <= _MOST_BYTES:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _parts(batch.slice(0, middle))
    yield from _parts(batch.slice(middle))


def _packed(batches: Iterable[Any]) -> Iterator[Any]:
    """Turn batches into rows, for that is what comes out of Spark some at a time."""
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
    """Raise the error of this package that made a task fail, in the place of Spark's."""
    try:
        yield
    except Exception as error:  # Spark's, or that of its connection to Java
        found = _OUR_ERROR.search(str(error))
        if found is None:
            raise
        raise getattr(errors, found[1])(found[2]) from None
