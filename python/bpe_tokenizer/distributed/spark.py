"""Counts and encodes on Spark, https://spark.apache.org/docs/latest/api/python/."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from bpe_tokenizer import errors
from bpe_tokenizer.columns.mapper import check_column, with_column
from bpe_tokenizer.corpus.options import UnitOptions
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus
from bpe_tokenizer.corpus.shards import ShardFormatName
from bpe_tokenizer.distributed.arrow import CountSettings, encode_texts
from bpe_tokenizer.distributed.count_files import CountArguments, CountOptions, count_on_engine
from bpe_tokenizer.distributed.shards import EngineArguments, EngineOptions, tokenize_on_engine
from bpe_tokenizer.distributed.tasks import only_column
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import ReadOptions, takes
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.piece_counts import PieceCounts

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["count_with_spark", "encode_with_spark", "tokenize_with_spark"]

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

# An error of this package in the traceback of a task.
_OUR_ERROR = re.compile(r"^bpe_tokenizer\.errors\.(\w+): (.*)$", re.MULTILINE)


@takes(ReadOptions, CountOptions)
def count_with_spark(
    source: Any,
    settings: CountSettings,
    *,
    output: PathLike | None = None,
    session: Any = None,
    **options: Unpack[CountArguments],
) -> PieceCounts:
    """Count the pieces of a corpus on a Spark cluster, with the result of one machine.

    A task counts each partition of a DataFrame, or a unit of the files.

    With `output`, a task writes one sorted file, and other tasks add the files up by ranges of pieces: no
    process holds all of them. A killed run over files resumes.

    Args:
        source: Files of all kinds, patterns and URLs as in `PieceCounts.add`, which all machines see by the
            same names; or a DataFrame whose column `field` holds the documents: strings, or binary in UTF-8.
            (`spark.read.text` removes line ends.)
        settings: How to split documents, as from `CountSettings.of(tokenizer)`.
        output: A directory for sorted files of counts, which all machines see by the same name. None to send
            the counts of each task to this process, which adds them up.
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
    return count_on_engine(SparkTasks(session, source), source, settings, output, options)


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
    check_column(column, frame.columns)

    def encode(batches: Iterator[Any]) -> Iterator[Any]:
        pyarrow = import_library("pyarrow")
        for batch in batches:
            made = encode_texts(batch, tokenizer, column, ids_column, add_special_tokens, allowed_special)
            signed = made.column(ids_column).cast(pyarrow.list_(pyarrow.int32()))
            yield with_column(made, ids_column, signed)

    ids = types.StructField(ids_column, types.ArrayType(types.IntegerType(), False), False)
    fields = [ids if field.name == ids_column else field for field in frame.schema.fields]
    schema = types.StructType(fields if ids in fields else [*fields, ids])
    return frame.mapInArrow(encode, schema)


@takes(ReadOptions, UnitOptions, EngineOptions)
def tokenize_with_spark(
    inputs: Any,
    output: PathLike,
    tokenizer: BPETokenizer,
    format: ShardFormatName = "nanogpt",  # noqa: A002 (the usual name)
    *,
    session: Any = None,
    **options: Unpack[EngineArguments],
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
    return tokenize_on_engine(SparkTasks(session, inputs), inputs, output, tokenizer, format, options)


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
