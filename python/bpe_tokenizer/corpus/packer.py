"""Packs batches of documents into shards, and encodes one batch while the next is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.atomic import AtomicFile, write_errors
from bpe_tokenizer.corpus.batches import Batch, BatchReader
from bpe_tokenizer.corpus.shard_directory import ShardDirectory
from bpe_tokenizer.corpus.shard_limits import documents_that_fit
from bpe_tokenizer.corpus.shards import ShardFormat, ShardWriter, TokenType
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.readers.positions import Position

__all__ = ["Encode", "Encoded", "ShardPacker"]

# The ids of texts, and the start of each text and the end of the last in them.
Encoded: TypeAlias = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]
Encode: TypeAlias = Callable[[Sequence[str]], Encoded]


class ShardPacker:
    """Fills a directory with shards.

    Args:
        output: The directory; new shards follow its finished ones.
        shard_format: The format of the shards.
        dtype: The type of an id.
        shard_tokens: Maximum number of ids in a shard with several documents.
    """

    def __init__(
        self, output: ShardDirectory, shard_format: ShardFormat, dtype: TokenType, shard_tokens: int
    ) -> None:
        self._output = output
        self._format = shard_format
        self._dtype = dtype
        self._limit = shard_tokens
        self._tokens_before = sum(shard.tokens for shard in output.shards)
        self._writer: ShardWriter | None = None
        self._files: list[AtomicFile] = []
        self._documents = 0
        self._tokens = 0
        self._end = Position()

    def run(self, documents: BatchReader, encode: Encode, report: Callable[[int, int], None]) -> None:
        """Write all documents.

        Args:
            documents: The documents.
            encode: Returns the ids of texts; called in another thread.
            report: Called after each batch with the bytes read and the number of ids.

        Raises:
            CorpusError: The corpus has no text, or a document is too long for the format.
            WriteError: A shard cannot be written, or another run has taken over the directory.
        """
        try:
            for batch, (ids, offsets) in _encoded(documents.batches(), encode):
                self._add(batch, ids, offsets)
                report(documents.bytes_read, self._tokens_before + self._tokens)
            if self._tokens_before + self._tokens == 0:
                raise CorpusError("the corpus is empty: its documents have no text")
            self._finish_shard()
        finally:
            # After success no shard is unfinished, so this does nothing.
            self._abandon_shard()

    def _add(self, batch: Batch, ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]) -> None:
        lengths = np.diff(offsets)
        self._check_lengths(batch, lengths)
        start = 0
        while start < len(lengths):
            end = documents_that_fit(offsets, start, self._tokens, self._limit)
            if end > start:
                self._write(ids[offsets[start] : offsets[end]], lengths[start:end])
                self._end = batch.positions[end - 1]
            if end < len(lengths):
                self._finish_shard()
            start = end

    def _check_lengths(self, batch: Batch, lengths: npt.NDArray[np.int64]) -> None:
        longest = int(lengths.argmax())
        if lengths[longest] > self._format.max_tokens:
            position = batch.positions[longest]
            raise CorpusError(
                f"the document of row {position.row} of input {position.input + 1} has {lengths[longest]:,} "
                f"ids, and the format holds at most {self._format.max_tokens:,}"
            )

    def _write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        with write_errors(self._output.directory):
            if self._writer is None:
                for path in self._output.names(len(self._output.shards), self._format.suffixes):
                    self._files.append(AtomicFile(path))
                self._writer = self._format.open([file.stream for file in self._files], self._dtype)
            self._writer.write(ids, lengths)
        self._documents += len(lengths)
        self._tokens += len(ids)

    def _finish_shard(self) -> None:
        if self._writer is None:
            return
        with write_errors(self._output.directory):
            self._writer.finish()
        sizes = self._writer.sizes(self._documents, self._tokens)
        self._output.add(self._files, sizes, self._documents, self._tokens, self._end)
        self._tokens_before += self._tokens
        self._writer, self._files, self._documents, self._tokens = None, [], 0, 0

    def _abandon_shard(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
        for file in self._files:
            file.abandon()


def _encoded(batches: Iterable[Batch], encode: Encode) -> Iterator[tuple[Batch, Encoded]]:
    """Encode batches in order, one batch ahead of the consumer if the system gives a thread."""
    pending: deque[tuple[Batch, Callable[[], Encoded]]] = deque()
    has_thread = True
    with ThreadPoolExecutor(max_workers=1) as pool:
        for batch in batches:
            result: Callable[[], Encoded] = partial(encode, batch.texts)
            if has_thread:
                try:
                    result = pool.submit(encode, batch.texts).result
                except RuntimeError:  # no thread can start
                    has_thread = False
            pending.append((batch, result))
            if len(pending) > 1:
                first, result = pending.popleft()
                yield first, result()
        for batch, result in pending:
            yield batch, result()
