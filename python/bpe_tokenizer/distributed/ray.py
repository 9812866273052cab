"""Counts and encodes on Ray: its core tasks, and the datasets of Ray Data (https://docs.ray.io)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from bpe_tokenizer.corpus.options import UnitOptions
from bpe_tokenizer.corpus.result import PathLike, TokenizedCorpus
from bpe_tokenizer.corpus.shards import ShardFormatName
from bpe_tokenizer.distributed.arrow import CountSettings, encode_texts
from bpe_tokenizer.distributed.count_files import CountArguments, CountOptions, count_on_engine
from bpe_tokenizer.distributed.shards import EngineArguments, EngineOptions, tokenize_on_engine
from bpe_tokenizer.distributed.tasks import only_column
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.libraries import import_library
from bpe_tokenizer.options import ReadOptions, takes
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.piece_counts import PieceCounts

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["count_with_ray", "encode_with_ray", "tokenize_with_ray"]

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

# Tasks that wait or run at the same time, for each processor of the cluster, and at least.
_SUBMITTED_PER_PROCESSOR = 2
_MIN_SUBMITTED = 16
# What Ray Data appends to the message of an error.
_APPENDED = "\nFailed to apply UDF transform"


@takes(ReadOptions, CountOptions)
def count_with_ray(
    source: Any,
    settings: CountSettings,
    *,
    output: PathLike | None = None,
    task_options: Mapping[str, Any] | None = None,
    **options: Unpack[CountArguments],
) -> PieceCounts:
    """Count the pieces of a corpus on a Ray cluster, with the result of one machine.

    A task counts each block of a dataset, or a unit of the files. Tasks are deterministic, so Ray can repeat
    lost ones.

    With `output`, a task writes one sorted file, and other tasks add the files up by ranges of pieces: no
    process holds all of them. A killed run over files resumes.

    Args:
        source: Files of all kinds, patterns and URLs as in `PieceCounts.add`, which all machines see by the
            same names; or a `ray.data.Dataset` whose column `field` holds the documents: strings, or binary
            in UTF-8.
        settings: How to split documents, as from `CountSettings.of(tokenizer)`.
        output: A directory for sorted files of counts, which all machines see by the same name. None to send
            the counts of each task to this process, which adds them up.
        task_options: The options of the tasks over files, as of `ray.remote`: `{"memory": 4 << 30}`.

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
    return count_on_engine(RayTasks(task_options), source, settings, output, options)


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

    def encode(table: Any) -> Iterator[Any]:
        for batch in table.to_batches():
            made = encode_texts(batch, tokenizer, column, ids_column, add_special_tokens, allowed_special)
            yield import_library("pyarrow").Table.from_batches([made])

    return dataset.map_batches(encode, batch_format="pyarrow", batch_size=None)


@takes(ReadOptions, UnitOptions, EngineOptions)
def tokenize_with_ray(
    inputs: Any,
    output: PathLike,
    tokenizer: BPETokenizer,
    format: ShardFormatName = "nanogpt",  # noqa: A002 (the usual name)
    *,
    task_options: Mapping[str, Any] | None = None,
    **options: Unpack[EngineArguments],
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
    tasks = RayTasks({"num_cpus": options.get("threads", 1), **(task_options or {})})
    return tokenize_on_engine(tasks, inputs, output, tokenizer, format, options)


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
        task = ray.remote(_call).options(**self.options)
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
        raise type(cause)(str(cause).partition(_APPENDED)[0]) from None
