"""Packs encoded documents into shards."""

from __future__ import annotations

from itertools import compress, repeat
from typing import TypeAlias

import numpy as np

from bpe_tokenizer.atomic import AtomicFile, write_errors
from bpe_tokenizer.corpus.batch_encoder import EncodedBatch
from bpe_tokenizer.corpus.documents import Counts, documents_that_fit
from bpe_tokenizer.corpus.manifest import Shard
from bpe_tokenizer.corpus.sides import SideWriter, csv_field, write_sides
from bpe_tokenizer.corpus.unit_shards import FullShard, UnitShards
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.readers import BadRow, Position

__all__ = ["Packed", "ShardPacker"]


# The stored bytes that are read, the rows of a batch that were skipped, and the shards that it has filled.
Packed: TypeAlias = tuple[int, tuple[BadRow, ...], list[FullShard]]


class ShardPacker:
    """Fills the shards of a unit.

    Args:
        store: Where finished shards go; new ones follow those that are there.
        start: The position of the last document of the finished shards.
    """

    def __init__(self, store: UnitShards, start: Position) -> None:
        settings, unit = store.plan.settings, store.unit
        inputs, names = store.plan.inputs_of(unit)
        self._store = store
        self._layout = settings.shard_format
        self._dtype = settings.dtype
        self._limit = settings.shard_tokens
        self._names = [each.name for each in inputs]
        self._index_names: list[str] | None = None
        if settings.index:
            # The rows of a part of a file count from its beginning.
            place = f"@{unit.start}" if unit.kind == "bytes" else ""
            self._index_names = [csv_field(f"{name}{place}") for name in names]
        # The source of each input of a mixture, and what the shard has of each source.
        sizes = [source.inputs for source in settings.sources]
        self._members = np.repeat(np.arange(len(sizes)), sizes)[unit.first :]
        self._source_names = [source.name for source in settings.sources]
        self._of_sources = np.zeros((len(sizes), 2), dtype=np.int64)
        self._sides: list[SideWriter] = []
        self._files: list[AtomicFile] = []
        self._documents = 0
        self._tokens = 0
        # The input and the row of the last document, and the rows that were skipped in the shards before.
        self._end = start[:2]
        self._skipped_before = start.skipped
        self._skipped: list[BadRow] = []
        self.documents = sum(shard.documents for shard in store.shards)
        self.tokens = sum(shard.tokens for shard in store.shards)

    def add(self, batch: EncodedBatch) -> Packed:
        """Write documents.

        Args:
            batch: The documents, after those of the batches before.

        Raises:
            CorpusError: A document is too long for the format.
            WriteError: A shard cannot be written.
        """
        lengths = np.diff(batch.offsets)
        self._check_lengths(batch, lengths)
        self._skipped += batch.bad
        full: list[FullShard] = []
        start = 0
        while start < len(lengths):
            end = documents_that_fit(batch.offsets, start, self._tokens, self._limit)
            if end > start:
                self._write(batch, lengths, start, end)
                self._end = (batch.input, int(batch.rows[end - 1]))
            if end < len(lengths):
                full += self._finish_shard()
            start = end
        return batch.bytes_read, batch.bad, full

    def finish(self) -> tuple[list[FullShard], list[BadRow]]:
        """Finish the last shard, unless it has no ids.

        Returns:
            The last shard, and the rows that were skipped after the last document.
        """
        full = self._finish_shard() if self._tokens else []
        return full, self._skipped

    def abandon(self) -> None:
        """Give up the unfinished shard, if any."""
        for side in self._sides:
            side.abandon()

    def _check_lengths(self, batch: EncodedBatch, lengths: Counts) -> None:
        limit = self._layout.form.max_document_tokens
        if len(lengths) == 0 or len(batch.ids) <= limit:
            return
        longest = int(lengths.argmax())
        if lengths[longest] > limit:
            raise CorpusError(
                f"{self._names[batch.input]}, row {batch.rows[longest]} has {lengths[longest]:,} ids, and "
                f"the format holds at most {limit:,}"
            )

    def _write(self, batch: EncodedBatch, lengths: Counts, start: int, end: int) -> None:
        ids, lengths = batch.ids[batch.offsets[start] : batch.offsets[end]], lengths[start:end]
        validation = None if batch.validation is None else batch.validation[start:end]
        origins: list[str] = []
        if self._index_names is not None:
            names = repeat("") if batch.names is None else map(csv_field, batch.names[start:end])
            places = zip(names, batch.places(start, end), strict=False)
            origins = [f",{name},{self._index_names[place]},{row}" for name, (place, row) in places]
        if self._source_names:
            sources = self._members[[place for place, _ in batch.places(start, end)]]
            np.add.at(self._of_sources, sources, np.stack([np.ones_like(lengths), lengths], axis=1))
        with write_errors(self._store.directory.path):
            if not self._sides:
                self._files = self._store.open(self._layout.suffixes)
                self._sides = self._layout.open([file.stream for file in self._files], self._dtype)
            write_sides(self._sides, ids, lengths, validation, origins)
        self._documents += len(lengths)
        self._tokens += len(ids)
        self.documents += len(lengths)
        self.tokens += len(ids)

    def _finish_shard(self) -> list[FullShard]:
        if not self._sides:
            return []
        with write_errors(self._store.directory.path):
            for side in self._sides:
                side.finish()
            # Training programs map files, and an empty one cannot be mapped.
            has_ids = np.repeat(
                [side.tokens > 0 for side in self._sides], len(self._files) // len(self._sides)
            )
            self._store.drop(compress(self._files, ~has_ids))
            files = list(compress(self._files, has_ids))
            sizes = [file.stream.tell() for file in files]
        skipped = [row for row in self._skipped if row[:2] < self._end]
        self._skipped_before += len(skipped)
        end = Position(*self._end, self._skipped_before)
        counts = zip(self._source_names, self._of_sources.tolist(), strict=True)
        sources = {name: (documents, tokens) for name, (documents, tokens) in counts if documents}
        shard = Shard({}, self._documents, self._tokens, end, sources=sources)
        full = FullShard(files, sizes, shard, skipped)
        self._of_sources[:] = 0
        self._skipped = self._skipped[len(skipped) :]
        self._sides, self._files, self._documents, self._tokens = [], [], 0, 0
        return [full]
