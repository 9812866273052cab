"""Counts and encodes on Spark, https://spark.apache.org/docs/latest/api/python/."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from bpe_tokenizer.corpus.manifest import UnitRecord
from bpe_tokenizer.corpus.options import UnitArguments, UnitOptions
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus
from bpe_tokenizer.corpus.run_report import OnEvent
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.shards import ShardFormatName
from bpe_tokenizer.distributed.arrow import (
    CountSettings,
    collect_counts,
    count_texts,
    encode_texts,
    sum_counts,
)
from bpe_tokenizer.distributed.count_files import (
    UnitCounts,
    count_batches,
    count_to_files,
)
from bpe_tokenizer.distributed.count_units import (
    DEFAULT_RANGE,
    CountWork,
    count_options,
    count_unit_batch,
    count_units,
)
from bpe_tokenizer.distributed.shards import ShardWork, is_column, tokenize_units, write_partition
from bpe_tokenizer.distributed.spark_tasks import SparkTasks, own_errors
from bpe_tokenizer.distributed.tasks import Sent
from bpe_tokenizer.errors import CorpusError, shorten
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import MemoryLimits, pick, takes
from bpe_tokenizer.readers import DocumentEnd, InputFormat, OnError, ReadOptions
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.piece_counts import PieceCounts, merged_counts

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["count_with_spark", "encode_with_spark", "tokenize_with_spark"]

# Maximum size of a batch of counts for Spark, whose columns of bytes end at 2 GB.
_MAX_BYTES = 64 << 20


def count_with_spark(
    source: Any,
    settings: CountSettings,
    column: str = "text",
    range_bytes: int = DEFAULT_RANGE,
    session: Any = None,
    *,
    output: PathLike | None = None,
    partitions: int | None = None,
    max_memory: int | str | None = None,
    input_format: InputFormat | None = None,
    documents: DocumentEnd = "file",
    separator: str | None = None,
    on_error: OnError = "stop",
) -> PieceCounts:
    """Count the pieces of a corpus on a Spark cluster, with the result of one machine.

    A task counts each partition of a DataFrame, or a range of the files. Spark's `groupBy`, which spills to
    the disk, adds the counts up, and the sums arrive in this process batch by batch.

    With `output`, a task writes one sorted file, and the counts are added up by ranges of pieces: no process
    holds all of them, and no count passes through the engine. A killed run over files resumes.

    Args:
        source: Files of all kinds, patterns and URLs as in `PieceCounts.add`, which all machines see by the
            same names; or a DataFrame whose rows are documents. (`spark.read.text` removes line ends.)
        settings: How to split documents, as from `CountSettings.of(tokenizer)`.
        column: The column of documents, or the field of JSON Lines: strings, or binary in UTF-8.
        partitions: Number of files in `output`; None for one for each 8 MB of the units' counts, 64 at most.
        range_bytes: The stored bytes of files that a task counts.
        output: A directory for sorted files of counts, which all machines see by the same name. None for
            counts that pass through Spark's shuffle.
        max_memory: Memory limit of each task, and of the counts that are returned, as in `PieceCounts`.
        input_format: As in `BPETokenizer.train`.
        documents: Whether a document of a text file is a `"line"` or the `"file"`.
        separator: Text that separates the documents of a text file instead.
        on_error: `"stop"` at or `"skip"` a bad row of a file; `skipped.jsonl` in `output` lists skipped rows.
        session: The SparkSession for files; None for the active one.

    Returns:
        The counts. With `output`, they are read from its files when they are needed.

    Raises:
        CorpusError: A file or the column does not exist, a document is null or not UTF-8, or a count exceeds
            64 (without `output`: 63) bits.
        MissingDependencyError: Spark, or a library that a format needs, is not installed.
        OptionError: An option is out of its range, or `output` holds other files.
        WriteError: Another run writes into `output`, or a file cannot be written.

    `examples/count_with_spark.py` runs it.
    """
    import_library("pyspark.sql", "spark")
    is_frame = hasattr(source, "mapInArrow")
    read = count_options(input_format, documents, separator, column, on_error, output)
    tasks = SparkTasks(source.sparkSession if is_frame and session is None else session)
    if output is not None:
        counted = count_to_files(
            tasks,
            partial(_count_partitions, source, column) if is_frame else source,
            settings,
            output,
            read=read,
            unit_bytes=range_bytes,
            partitions=partitions,
            max_memory=max_memory,
        )
        return merged_counts(counted.paths, MemoryLimits(max_memory))
    if is_frame:
        rows = _column(source, column)
        count = partial(count_texts, settings=settings, column=column)
    else:
        work, units = count_units(source, settings, read, range_bytes, max_memory)
        # One number a partition: Spark does not distribute rows evenly.
        rows = tasks.session.range(0, len(units), 1, max(1, len(units)))
        count = partial(count_unit_batch, work=work, units=units)
    with own_errors():
        return collect_counts(_summed(rows, count), settings, max_memory=max_memory)


def _summed(rows: Any, count: Callable[[Any], Any]) -> Iterator[Any]:
    """Count in tasks, add the rows of each piece up in a shuffle, and yield the sums."""
    functions = import_library("pyspark.sql.functions", "spark")
    counted = rows.mapInArrow(partial(_counted, count=count), "piece binary, n bigint")
    # try_sum gives null on overflow; without ANSI mode, sum wraps around.
    summed = counted.groupBy("piece").agg(functions.try_sum("n").alias("n"))
    packed = summed.mapInArrow(_packed, "batch binary")
    return _unpacked(packed.toLocalIterator(prefetchPartitions=True))


def _count_partitions(frame: Any, column: str, work: CountWork) -> Iterator[UnitCounts]:
    """Count each partition of a DataFrame, and write a file for each."""
    return _results(_column(frame, column), partial(count_batches, work, column=column))


def _results(frame: Any, work: Callable[[Iterable[Any]], Iterator[Any]]) -> Iterator[Any]:
    """Call a function with the batches of each partition, and yield its results at the end."""
    called = frame.mapInArrow(partial(_pickled, work=work), "result binary")
    with own_errors():
        rows = called.collect()
    for (result,) in rows:
        yield pickle.loads(result)


def _pickled(batches: Iterable[Any], work: Callable[[Iterable[Any]], Iterator[Any]]) -> Iterator[Any]:
    pyarrow = import_library("pyarrow")
    for result in work(batches):
        made = pyarrow.array([pickle.dumps(result)], pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([made], names=["result"])


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


@takes(ReadOptions, UnitOptions)
def tokenize_with_spark(
    inputs: Any,
    output: PathLike,
    tokenizer: BPETokenizer,
    format: ShardFormatName = "nanogpt",  # noqa: A002 (the usual name)
    *,
    unit_bytes: int | str = "1GB",
    threads: int = 1,
    verify: bool = False,
    verbose: bool = True,
    on_event: OnEvent | None = None,
    session: Any = None,
    **options: Unpack[UnitArguments],
) -> TokenizedCorpus:
    """Turn a corpus into shards on a Spark cluster: those of `tokenize_corpus(part=i, of=n)`, byte for byte.

    A task writes the shards of a unit and commits them. So a task that is killed and repeated, or runs twice,
    changes nothing, and a killed run over files goes on where it was. At the end this process writes the
    manifest.

    Args:
        inputs: Files and URLs as in `tokenize_corpus`, which all machines see by the same names; or a
            DataFrame whose column `field` holds the documents: each partition is a unit.
        output: The output directory of `tokenize_corpus`, which all machines see by the same name.
        tokenizer: Encodes the documents; each process loads it once.
        format: As in `tokenize_corpus`.
        unit_bytes: The size of a unit of files in stored bytes.
        threads: Number of threads of a task; set `spark.task.cpus` to the same number.
        verify: As in `tokenize_corpus`, for files.
        verbose: Whether to show a progress bar on standard error, if that is a terminal.
        on_event: As in `tokenize_corpus`.
        session: The SparkSession for files; None for the active one.

    Returns:
        The files, with the numbers of documents and tokens.

    Raises:
        CorpusError: A file cannot be read, a row is bad, or the corpus has no text.
        MissingDependencyError: Spark, or a library that a format needs, is not installed.
        OptionError: An option is unknown or out of range, or the directory holds other files.
        SpecialTokenError: `eos_token` or a token of `allowed_special` is unknown.
        WriteError: A file cannot be written.

    `examples/count_with_spark.py` runs it.
    """
    is_frame = hasattr(inputs, "mapInArrow")
    tasks = SparkTasks(inputs.sparkSession if is_frame and session is None else session)
    read = pick(ReadOptions, options)
    settings = CorpusSettings.of(tokenizer, read, format, **vars(pick(UnitOptions, options)))
    if is_frame:
        is_one = is_column(read.field) and settings.read.id_field is None
        rows = _column(inputs, read.field) if is_one else inputs
        inputs = partial(_write_shards, rows)
    return tokenize_units(
        tasks,
        inputs,
        output,
        tokenizer,
        settings,
        unit_bytes=unit_bytes,
        threads=threads,
        verify=verify,
        verbose=verbose,
        on_event=on_event,
    )


def _write_shards(frame: Any, work: ShardWork) -> Iterator[UnitRecord]:
    """Write the partitions of a DataFrame as shards."""
    return _results(frame, partial(_write_partition, write=write_partition, sent=Sent(work)))


def _write_partition(
    batches: Iterable[Any], write: Callable[..., UnitRecord], sent: Sent[ShardWork]
) -> Iterator[UnitRecord]:
    number = import_library("pyspark", "spark").TaskContext.get().partitionId()
    yield write(sent.load(), number, batches)


def _column(frame: Any, column: str) -> Any:
    if column not in frame.columns:
        names = ", ".join(map(repr, frame.columns[:10])) or "none"
        raise CorpusError(f"no column {shorten(column)}; the columns are {names[:150]}")
    return frame.select(frame[column])


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
