"""Counts and encodes on Ray Data, https://docs.ray.io/en/latest/data/data.html."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
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
    unit_batch,
)
from bpe_tokenizer.distributed.ray_tasks import RayTasks, own_errors, shard_sink
from bpe_tokenizer.distributed.shards import ShardWork, is_column, tokenize_units, write_partition
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import MemoryLimits, pick, takes
from bpe_tokenizer.readers import DocumentEnd, InputFormat, OnError, ReadOptions
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.piece_counts import PieceCounts, merged_counts

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["count_with_ray", "encode_with_ray", "tokenize_with_ray"]

# Partitions of the counts in a shuffle.
_PARTITIONS = 64


def count_with_ray(
    source: Any,
    settings: CountSettings,
    column: str = "text",
    partitions: int | None = None,
    range_bytes: int = DEFAULT_RANGE,
    *,
    output: PathLike | None = None,
    max_memory: int | str | None = None,
    input_format: InputFormat | None = None,
    documents: DocumentEnd = "file",
    separator: str | None = None,
    on_error: OnError = "stop",
    task_options: Mapping[str, Any] | None = None,
) -> PieceCounts:
    """Count the pieces of a corpus on a Ray cluster, with the result of one machine.

    A task counts each block of a dataset, or a range of the files, and other tasks add the counts up. Tasks
    are deterministic, so Ray can repeat lost ones.

    With `output`, a task writes one sorted file, and the counts are added up by ranges of pieces: no process
    holds all of them, and no count passes through the engine. A killed run over files resumes.

    Args:
        source: Files of all kinds, patterns and URLs as in `PieceCounts.add`, which all machines see by the
            same names; or a `ray.data.Dataset` whose rows are documents.
        settings: How to split documents, as from `CountSettings.of(tokenizer)`.
        column: The column of documents, or the field of JSON Lines: strings, or binary in UTF-8.
        partitions: Number of partitions of the counts, or of files in `output`. None for 64, or for one
            for each 8 MB of the units' counts, 64 at most.
        range_bytes: The stored bytes of files that a task counts.
        output: A directory for sorted files of counts, which all machines see by the same name. None for
            counts that pass through Ray's object store; a partition then has to fit into the
            memory of a task.
        max_memory: Memory limit of each task, and of the counts that are returned, as in `PieceCounts`.
        input_format: As in `BPETokenizer.train`.
        documents: Whether a document of a text file is a `"line"` or the `"file"`.
        separator: Text that separates the documents of a text file instead.
        on_error: `"stop"` at or `"skip"` a bad row of a file; `skipped.jsonl` in `output` lists skipped rows.
        task_options: The options of the tasks that write `output`, as of `ray.remote`.

    Returns:
        The counts. With `output`, they are read from its files when they are needed.

    Raises:
        CorpusError: A file or the column does not exist, a document is null or not UTF-8, or a count exceeds
            64 (without `output`: 63) bits.
        MissingDependencyError: Ray, or a library that a format needs, is not installed.
        OptionError: An option is out of its range, or `output` holds other files.
        WriteError: Another run writes into `output`, or a file cannot be written.

    `examples/count_with_ray.py` runs it.
    """
    data = import_library("ray.data", "ray")
    is_dataset = isinstance(source, data.Dataset)
    read = count_options(input_format, documents, separator, column, on_error, output)
    if output is not None:
        tasks = RayTasks(task_options)
        counted = count_to_files(
            tasks,
            partial(_count_blocks, source, column, tasks) if is_dataset else source,
            settings,
            output,
            read=read,
            unit_bytes=range_bytes,
            partitions=partitions,
            max_memory=max_memory,
        )
        return merged_counts(counted.paths, MemoryLimits(max_memory))
    if is_dataset:
        rows = _counted(source, partial(count_texts, settings=settings, column=column))
    else:
        work, units = count_units(source, settings, read, range_bytes, max_memory)
        numbers = [_table(unit_batch(number)) for number in range(len(units))]
        rows = _counted(data.from_arrow(numbers), partial(count_unit_batch, work=work, units=units))
    with closing(_summed_on_ray(data, rows, partitions or _PARTITIONS)) as batches:
        return collect_counts(batches, settings, max_memory=max_memory)


def _count_blocks(dataset: Any, column: str, tasks: RayTasks, work: CountWork) -> Iterator[UnitCounts]:
    """Count each block of a dataset, and write a file for each."""
    written = dataset.map_batches(
        partial(_count_block, work=work, column=column), batch_format="pyarrow", batch_size=None
    )
    with own_errors(tasks.ray):
        for table in written.iter_batches(batch_format="pyarrow", batch_size=None):
            yield from map(pickle.loads, table.column("unit").to_pylist())


def _count_block(table: Any, work: CountWork, column: str) -> Any:
    pyarrow = import_library("pyarrow")
    made = [pickle.dumps(unit) for unit in count_batches(work, table.to_batches(), column)]
    return pyarrow.table({"unit": pyarrow.array(made, pyarrow.binary())})


def _summed_on_ray(data: Any, counted: Any, partitions: int) -> Generator[Any, None, None]:
    """Add the rows of each piece up in a shuffle, and yield the sums."""
    context = counted.context
    before = context.shuffle_strategy
    # Tasks, not actors: an actor would count the rows of a repeated task twice.
    context.shuffle_strategy = data.context.ShuffleStrategy.SHUFFLE_V2
    try:
        with own_errors(import_library("ray", "ray")):
            divided = counted.repartition(partitions, keys=["piece"])
            summed = divided.map_batches(_summed, batch_format="pyarrow", batch_size=None)
            for table in summed.iter_batches(batch_format="pyarrow", batch_size=None):
                yield from table.to_batches()
    finally:
        context.shuffle_strategy = before


def encode_with_ray(
    dataset: Any,
    tokenizer: BPETokenizer,
    column: str = "text",
    ids_column: str = "input_ids",
    add_special_tokens: bool = False,
    allowed_special: AllowedSpecial = "none",
) -> Any:
    """Encode a dataset on a Ray cluster.

    Args:
        dataset: A `ray.data.Dataset` whose rows are documents.
        tokenizer: The tokenizer; it is sent to the tasks once.
        column: The column of documents: strings, or binary in UTF-8.
        ids_column: The column to add or replace: list<uint32>.
        add_special_tokens: Whether to add the model's special tokens to each document.
        allowed_special: The special tokens to recognise: `"none"`, `"all"` or a set.

    Returns:
        The `ray.data.Dataset` with the ids, evaluated lazily.

    Raises:
        MissingDependencyError: Ray is not installed.

    `examples/count_with_ray.py` runs it.
    """
    import_library("ray.data", "ray")

    def encode(batch: Any) -> Any:
        return encode_texts(batch, tokenizer, column, ids_column, add_special_tokens, allowed_special)

    return dataset.map_batches(partial(_encoded, encode=encode), batch_format="pyarrow", batch_size=None)


@takes(ReadOptions, UnitOptions)
def tokenize_with_ray(
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
    task_options: Mapping[str, Any] | None = None,
    **options: Unpack[UnitArguments],
) -> TokenizedCorpus:
    """Turn a corpus into shards on a Ray cluster: those of `tokenize_corpus(part=i, of=n)`, byte for byte.

    A task writes the shards of a unit and commits them. So a task that is killed and repeated, or runs twice,
    changes nothing, and a killed run over files goes on where it was. At the end this process writes the
    manifest.

    Args:
        inputs: Files and URLs as in `tokenize_corpus`, which all machines see by the same names; or a
            `ray.data.Dataset` whose column `field` holds the documents: each write task is a unit.
        output: The output directory of `tokenize_corpus`, which all machines see by the same name.
        tokenizer: Encodes the documents; each process loads it once.
        format: As in `tokenize_corpus`.
        unit_bytes: The size of a unit of files in stored bytes.
        threads: Number of threads of a task.
        verify: As in `tokenize_corpus`, for files.
        verbose: Whether to show a progress bar on standard error, if that is a terminal.
        on_event: As in `tokenize_corpus`.
        task_options: The options of the tasks, as of `ray.remote`: `{"memory": 4 << 30}`.

    Returns:
        The files, with the numbers of documents and tokens.

    Raises:
        CorpusError: A file cannot be read, a row is bad, or the corpus has no text.
        MissingDependencyError: Ray, or a library that a format needs, is not installed.
        OptionError: An option is unknown or out of range, or the directory holds other files.
        SpecialTokenError: `eos_token` or a token of `allowed_special` is unknown.
        WriteError: A file cannot be written.

    `examples/count_with_ray.py` runs it.
    """
    tasks = RayTasks({"num_cpus": threads, **(task_options or {})})
    read = pick(ReadOptions, options)
    settings = CorpusSettings.of(tokenizer, read, format, **vars(pick(UnitOptions, options)))
    if hasattr(inputs, "write_datasink"):
        is_one = is_column(read.field) and settings.read.id_field is None
        rows = inputs.select_columns([read.field]) if is_one else inputs
        inputs = partial(_write_shards, rows, tasks)
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


def _write_shards(dataset: Any, tasks: RayTasks, work: ShardWork) -> list[UnitRecord]:
    """Write the blocks of a dataset as shards, in a datasink."""
    sink = shard_sink(write_partition, work)
    with own_errors(tasks.ray):
        dataset.write_datasink(sink, ray_remote_args=tasks.options)
    records: list[UnitRecord] = sink.written
    return records


def _encoded(table: Any, encode: Callable[[Any], Any]) -> Iterator[Any]:
    yield from map(_table, map(encode, table.to_batches()))


def _counted(dataset: Any, count: Callable[[Any], Any]) -> Any:
    """Return a dataset of counts, one block for each block."""
    return dataset.map_batches(partial(_summed, count=count), batch_format="pyarrow", batch_size=None)


def _summed(table: Any, count: Callable[[Any], Any] | None = None) -> Iterator[Any]:
    batches = table.to_batches()
    yield from map(_table, sum_counts(batches if count is None else map(count, batches)))


def _table(batch: Any) -> Any:
    return import_library("pyarrow").Table.from_batches([batch])
