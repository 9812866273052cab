"""Counts and encodes on Ray Data, https://docs.ray.io/en/latest/data/data.html."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bpe_tokenizer.distributed.arrow import (
    CountSettings,
    collect_counts,
    count_ranges,
    count_texts,
    encode_texts,
    file_ranges,
    sum_counts,
)
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.piece_counts import PieceCounts

__all__ = ["count_with_ray", "encode_with_ray"]


def count_with_ray(
    source: Any,
    settings: CountSettings,
    column: str = "text",
    partitions: int = 64,
    range_bytes: int = 128 << 20,
) -> PieceCounts:
    """Count the pieces of a corpus on a Ray cluster, with the result of one machine.

    A task counts each block of the dataset, or each range of a file. The counts are partitioned by a hash of
    the piece, and a task adds up each partition. The sums arrive in this process block by block. Tasks are
    deterministic, so Ray can repeat lost ones.

    Args:
        source: A `ray.data.Dataset` whose rows are documents; or one or more paths of UTF-8 files, each a
            document, which all machines see by the same names.
        settings: How to split documents, as from `CountSettings.of(tokenizer)`.
        column: The dataset's column of documents: strings, or binary in UTF-8.
        partitions: Number of partitions of the counts; each must fit into the memory of a task.
        range_bytes: Size of the ranges of files, in bytes.

    Raises:
        CorpusError: A file or the column does not exist, a document is null or not UTF-8, or a count exceeds
            63 bits.
        MissingDependencyError: Ray is not installed.

    `examples/count_with_ray.py` runs it.
    """
    data = import_library("ray.data", "ray")
    if isinstance(source, data.Dataset):
        counted = _counted(source, partial(count_texts, settings=settings, column=column))
    else:
        counted = _counted(_ranges(data, source, range_bytes), partial(count_ranges, settings=settings))
    context = counted.context
    before = context.shuffle_strategy
    # Tasks, not actors: an actor would count the rows of a repeated task twice.
    context.shuffle_strategy = data.context.ShuffleStrategy.SHUFFLE_V2
    try:
        divided = counted.repartition(partitions, keys=["piece"])
        summed = divided.map_batches(_summed, batch_format="pyarrow", batch_size=None)
        tables = summed.iter_batches(batch_format="pyarrow", batch_size=None)
        return collect_counts((batch for table in tables for batch in table.to_batches()), settings)
    except TokenizerError as error:
        # Ray raises a subclass of our error, but its message is the traceback of the task.
        raise getattr(error, "cause", error) from None
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


def _encoded(table: Any, encode: Callable[[Any], Any]) -> Iterator[Any]:
    yield from map(_table, map(encode, table.to_batches()))


def _ranges(data: Any, paths: Any, range_bytes: int) -> Any:
    """Return a dataset of ranges of files, one block for each task."""
    tasks = file_ranges(paths, range_bytes)
    return data.from_arrow([_table(task) for task in tasks])


def _counted(dataset: Any, count: Callable[[Any], Any]) -> Any:
    """Return a dataset of counts, one block for each block."""
    return dataset.map_batches(partial(_summed, count=count), batch_format="pyarrow", batch_size=None)


def _summed(table: Any, count: Callable[[Any], Any] | None = None) -> Iterator[Any]:
    batches = table.to_batches()
    yield from map(_table, sum_counts(batches if count is None else map(count, batches)))


def _table(batch: Any) -> Any:
    return import_library("pyarrow").Table.from_batches([batch])
