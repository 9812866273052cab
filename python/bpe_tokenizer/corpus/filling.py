"""Batches of documents to shards: one is encoded on all processors while the next one is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.batches import Batch, Documents
from bpe_tokenizer.corpus.output import Output, Position
from bpe_tokenizer.corpus.portions import fitting
from bpe_tokenizer.corpus.shards import ShardFormat, ShardWriter, TokenType
from bpe_tokenizer.errors import CorpusError

__all__ = ["Encode", "Filling"]

# The ids of texts, and where each text begins there and the last ends.
Encoded: TypeAlias = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]
Encode: TypeAlias = Callable[[Sequence[str]], Encoded]


class Filling:
    """Fills a directory with shards.

    Args:
        output: The directory; the shards follow those that it has.
        shard_format: Of the shards.
        kind: The type of an id in them.
        shard_tokens: Most ids of a shard that has more than one document.
    """

    def __init__(self, output: Output, shard_format: ShardFormat, kind: TokenType, shard_tokens: int) -> None:
        self._output = output
        self._format = shard_format
        self._kind = kind
        self._most = shard_tokens
        self._tokens_before = sum(shard.tokens for shard in output.shards)
        self._writer: ShardWriter | None = None
        self._documents = 0
        self._tokens = 0
        self._end = Position()

    def run(self, documents: Documents, encode: Encode, report: Callable[[int, int], None]) -> None:
        """Write everything.

        Args:
            documents: What to encode.
            encode: Gives the ids of texts; is called in another thread.
            report: Is told the bytes read and the ids there are, now and then.

        Raises:
            CorpusError: There is no text, or a document is too long for the format.
        """
        try:
            for batch, (ids, offsets) in _encoded(documents.batches(), encode):
                self._add(batch, ids, offsets)
                report(documents.bytes_read, self._tokens_before + self._tokens)
            if self._tokens_before + self._tokens == 0:
                raise CorpusError("the corpus is empty: there is no text in its documents")
            self._finish_shard()
        finally:
            # After a success there is no shard any more that is not finished.
            self._abandon_shard()

    def _add(self, batch: Batch, ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64]) -> None:
        lengths = np.diff(offsets)
        self._check_lengths(batch, lengths)
        start = 0
        while start < len(lengths):
            end = fitting(offsets, start, self._tokens, self._most)
            if end > start:
                self._write(ids[offsets[start] : offsets[end]], lengths[start:end])
                self._end = batch.positions[end - 1]
            if end < len(lengths):
                self._finish_shard()
            start = end

    def _check_lengths(self, batch: Batch, lengths: npt.NDArray[np.int64]) -> None:
        longest = int(lengths.argmax())
        if lengths[longest] > self._format.most_tokens:
            position = batch.positions[longest]
            raise CorpusError(
                f"the document of row {position.row} of input {position.input + 1} has {lengths[longest]:,} "
                f"ids, and the format holds {self._format.most_tokens:,}"
            )

    def _write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        if self._writer is None:
            self._writer = self._format.open(self._output.temporary(self._paths), self._kind)
        self._writer.write(ids, lengths)
        self._documents += len(lengths)
        self._tokens += len(ids)

    def _finish_shard(self) -> None:
        if self._writer is None:
            return
        self._writer.finish()
        self._output.add(self._paths, self._documents, self._tokens, self._end)
        self._tokens_before += self._tokens
        self._writer, self._documents, self._tokens = None, 0, 0

    def _abandon_shard(self) -> None:
        if self._writer is None:
            return
        self._writer.abandon()
        for path in self._output.temporary(self._paths):
            path.unlink(missing_ok=True)

    @property
    def _paths(self) -> Sequence[Path]:
        """The files of the shard that is being written."""
        return self._output.names(len(self._output.shards), self._format.suffixes)


def _encoded(batches: Iterable[Batch], encode: Encode) -> Iterator[tuple[Batch, Encoded]]:
    """Encode batches in their order, one ahead of the one that is being used."""
    waiting: deque[tuple[Batch, Future[Encoded]]] = deque()
    with ThreadPoolExecutor(max_workers=1) as pool:
        for batch in batches:
            waiting.append((batch, pool.submit(encode, batch.texts)))
            if len(waiting) > 1:
                first, future = waiting.popleft()
                yield first, future.result()
        for batch, future in waiting:
            yield batch, future.result()
