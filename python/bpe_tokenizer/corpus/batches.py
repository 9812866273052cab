"""Reads the documents of all inputs in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

from bpe_tokenizer.corpus.inputs import Input, open_input
from bpe_tokenizer.corpus.readers import RowReader
from bpe_tokenizer.corpus.shard_directory import Position
from bpe_tokenizer.errors import CorpusError

__all__ = ["Batch", "BatchReader", "OnError"]

OnError: TypeAlias = Literal["stop", "skip"]

# A batch ends when it reaches either limit.
_BATCH_CHARACTERS = 4_000_000
_BATCH_DOCUMENTS = 50_000


class Batch(NamedTuple):
    """Documents with their positions in the inputs."""

    texts: list[str]
    positions: list[Position]


class BatchReader:
    """Reads the documents after a position, once.

    Args:
        sources: The inputs.
        reader: Reads the rows of an input.
        on_error: Whether to `"stop"` at a bad row or to `"skip"` it.
        start: The end of an earlier run.
    """

    def __init__(
        self, sources: Sequence[Input], reader: RowReader, on_error: OnError, start: Position
    ) -> None:
        self._sources = sources
        self._reader = reader
        self._on_error = on_error
        self._stored: BinaryIO | None = None
        self._bytes_before = sum(source.size for source in sources[: start.input])
        self.position = start

    @property
    def bytes_read(self) -> int:
        """The number of stored (compressed) bytes read so far, without standard input."""
        return self._bytes_before + (self._stored.tell() if self._stored is not None else 0)

    def batches(self) -> Iterator[Batch]:
        """Yield all batches, in order.

        Raises:
            CorpusError: A file is broken, or a row is bad and `on_error` is `"stop"`.
        """
        batch, characters = Batch([], []), 0
        for text in self._texts():
            batch.texts.append(text)
            batch.positions.append(self.position)
            characters += len(text)
            if characters >= _BATCH_CHARACTERS or len(batch.texts) >= _BATCH_DOCUMENTS:
                yield batch
                batch, characters = Batch([], []), 0
        if batch.texts:
            yield batch

    def _texts(self) -> Iterator[str]:
        start = self.position
        for number, source in enumerate(self._sources[start.input :], start.input):
            if number > start.input:
                self.position = Position(number, 0, self.position.skipped)
            with open_input(source) as (stream, stored):
                self._stored = stored if source.path is not None else None
                yield from self._texts_of(source, stream)
            self._stored = None
            self._bytes_before += source.size

    def _texts_of(self, source: Input, stream: BinaryIO) -> Iterator[str]:
        for row in self._reader.rows(source, stream, self.position.row):
            number, _, skipped = self.position
            if row.text is None and self._on_error == "stop":
                raise CorpusError(
                    f"{source.name}, row {row.number} {row.problem}; to skip such rows, use on_error='skip' "
                    "(on the command line: --on-error skip)"
                )
            self.position = Position(number, row.number, skipped + (row.text is None))
            if row.text is not None:
                yield row.text
