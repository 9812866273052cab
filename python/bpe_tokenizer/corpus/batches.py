"""The documents of all inputs, in batches, and where each of them stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, Literal, NamedTuple, TypeAlias

from bpe_tokenizer.corpus.inputs import Input, opened
from bpe_tokenizer.corpus.output import Position
from bpe_tokenizer.corpus.readers import Reader
from bpe_tokenizer.errors import CorpusError

__all__ = ["Batch", "Documents", "OnError"]

OnError: TypeAlias = Literal["stop", "skip"]

# A batch ends with the document that gives it so many characters, or so many documents.
_CHARACTERS = 4_000_000
_DOCUMENTS = 50_000


class Batch(NamedTuple):
    """Documents, and where each stands in the inputs."""

    texts: list[str]
    positions: list[Position]


class Documents:
    """The documents from a position on; can be read once.

    Args:
        sources: The inputs.
        reader: How documents stand in them.
        on_error: What to do about a bad row: `"stop"` or `"skip"`.
        start: Where an earlier run ended.
    """

    def __init__(self, sources: Sequence[Input], reader: Reader, on_error: OnError, start: Position) -> None:
        self._sources = sources
        self._reader = reader
        self._on_error = on_error
        self._stored: BinaryIO | None = None
        self._bytes_before = sum(source.size for source in sources[: start.input])
        self.position = start

    @property
    def bytes_read(self) -> int:
        """How much of the inputs has been read, as they are stored; standard input counts nothing."""
        return self._bytes_before + (self._stored.tell() if self._stored is not None else 0)

    def batches(self) -> Iterator[Batch]:
        """Read everything, in order.

        Raises:
            CorpusError: A file is broken, or a row is bad and `on_error` is `"stop"`.
        """
        batch, characters = Batch([], []), 0
        for text in self._texts():
            batch.texts.append(text)
            batch.positions.append(self.position)
            characters += len(text)
            if characters >= _CHARACTERS or len(batch.texts) >= _DOCUMENTS:
                yield batch
                batch, characters = Batch([], []), 0
        if batch.texts:
            yield batch

    def _texts(self) -> Iterator[str]:
        start = self.position
        for number, source in enumerate(self._sources[start.input :], start.input):
            if number > start.input:
                self.position = Position(number, 0, self.position.skipped)
            with opened(source) as (stream, stored):
                self._stored = stored if source.path is not None else None
                yield from self._texts_of(source, stream)
            self._stored = None
            self._bytes_before += source.size

    def _texts_of(self, source: Input, stream: BinaryIO) -> Iterator[str]:
        for row in self._reader.rows(source, stream, self.position.row):
            number, _, skipped = self.position
            if row.text is None and self._on_error == "stop":
                raise CorpusError(
                    f"{source.name}, row {row.number} {row.problem} (on_error='skip', at a prompt "
                    "--on-error skip, leaves such rows out)"
                )
            self.position = Position(number, row.number, skipped + (row.text is None))
            if row.text is not None:
                yield row.text
