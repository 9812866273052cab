"""Encodes batches of documents."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.arguments import processors_for, thread_count
from bpe_tokenizer.corpus.contents import ValueEncoder
from bpe_tokenizer.corpus.documents import Counts, Flags, Ids, offsets_of, select_documents
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.validation import is_sampled, is_validation
from bpe_tokenizer.encoding import resolve_allowed_special
from bpe_tokenizer.readers import BadRow, DocumentBatch
from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["BatchEncoder", "EncodedBatch"]

# Calls at the same time; each has some of the processors.
_MAX_CALLS = 8
# A batch of more bytes, which holds a long document, is encoded on all processors.
_LARGE = 16 << 20


class EncodedBatch(NamedTuple):
    """The ids of documents.

    Args:
        input: Index of the input.
        ids: The ids of all documents, in sequence.
        offsets: The start of each document, and the end of the last, in ids.
        rows: The row number of each document.
        bad: The rows that were skipped.
        bytes_read: The number of stored bytes read so far.
        validation: Which documents are for validation; None for no division.
        origins: The input and the row of each document, two columns, where `shuffle_documents` has mixed
            those of several inputs.
        names: The own id of each document, a str; None if it is not read.
    """

    input: int
    ids: Ids
    offsets: Counts
    rows: Counts
    bad: tuple[BadRow, ...]
    bytes_read: int
    validation: Flags | None = None
    origins: Counts | None = None
    names: npt.NDArray[np.object_] | None = None

    def places(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Return the input and the row of some documents."""
        if self.origins is not None:
            return map(tuple, self.origins[start:end].tolist())
        return zip(repeat(self.input), self.rows[start:end].tolist(), strict=False)

    def take(self, chosen: Flags) -> EncodedBatch:
        """Return some documents, with all rows that were skipped."""
        ids, lengths = select_documents(self.ids, np.diff(self.offsets), chosen)
        return self._replace(
            ids=ids,
            offsets=offsets_of(lengths),
            rows=self.rows[chosen],
            validation=_chosen(self.validation, chosen),
            origins=_chosen(self.origins, chosen),
            names=_chosen(self.names, chosen),
        )

    def head(self, count: int) -> EncodedBatch:
        """Return the first documents, and the rows that were skipped before the next one."""
        place = (self.input, int(self.rows[count]))
        bad = tuple(row for row in self.bad if row[:2] < place)
        return self.take(np.arange(len(self.rows)) < count)._replace(bad=bad)


class BatchEncoder:
    """Encodes batches, in several threads at the same time.

    Args:
        tokenizer: The tokenizer.
        settings: The settings of the run.
        threads: Number of threads in all; None for all processors.
    """

    def __init__(self, tokenizer: BPETokenizer, settings: CorpusSettings, threads: int | None) -> None:
        compiled = tokenizer._compiled()
        self._encoder = compiled.encoder
        allowed: Any = settings.allowed_special
        self._special = resolve_allowed_special(compiled, (), allowed)
        self._added = (_as_ids(settings.bos_id), _as_ids(settings.eos_id))
        self._settings = settings
        self._values: ValueEncoder | None = None
        if settings.content != "text":
            largest, skips = int(np.iinfo(settings.dtype).max), settings.read.on_error == "skip"
            self._values = ValueEncoder(
                tokenizer, settings.content, settings.chat_template, largest, self._added, skips
            )
        self.threads = threads
        self._threads = thread_count(threads)
        processors = processors_for(threads)
        self.calls = min(processors, _MAX_CALLS)
        self._threads_of_call = -(-processors // self.calls)

    def is_large(self, batch: DocumentBatch) -> bool:
        """Return whether a batch is encoded on all processors."""
        return batch.data.nbytes > _LARGE

    def encode(self, batch: DocumentBatch, fraction: float = 1.0, name: str = "") -> EncodedBatch:
        """Encode a batch, without the documents that the settings leave out.

        Args:
            batch: The documents.
            fraction: The part of them to take, of which `settings.sample` takes a part.
            name: The name of their file, for messages.
        """
        settings = self._settings
        fraction *= settings.sample or 1.0
        if fraction < 1:
            chosen = is_sampled(batch.data, batch.offsets, fraction)
            data, lengths = select_documents(batch.data, np.diff(batch.offsets), chosen)
            rows, names = batch.rows[chosen], _chosen(batch.names, chosen)
            batch = batch._replace(data=data, offsets=offsets_of(lengths), rows=rows, names=names)
        validation, names = None, batch.names
        if settings.val_fraction is not None:
            validation = is_validation(batch.data, batch.offsets, settings.val_fraction)
        if self._values is None:
            threads = self._threads if self.is_large(batch) else self._threads_of_call
            found = self._encoder.encode_rows(batch.data, batch.offsets, self._special, threads, self._added)
            ids, offsets, rows, bad = *found, batch.rows, batch.bad
        else:
            ids, offsets, rows, bad = self._values.encode(batch, name)
            good = np.isin(batch.rows, rows)
            validation, names = _chosen(validation, good), _chosen(names, good)
        encoded = EncodedBatch(
            batch.input, ids, offsets, rows, bad, batch.bytes_read, validation, names=names
        )
        return self._of_good_length(encoded)

    def _of_good_length(self, batch: EncodedBatch) -> EncodedBatch:
        """Skip the documents that have too few ids or too many, as bad rows are skipped."""
        least, most = self._settings.min_document_tokens, self._settings.max_document_tokens
        own = np.diff(batch.offsets) - sum(map(len, self._added))
        chosen = (own >= (least or 0)) & (own <= (most or own))
        if chosen.all():
            return batch
        skipped = [
            BadRow(batch.input, row, _wrong_length(count, least, most))
            for row, count in zip(batch.rows[~chosen].tolist(), own[~chosen].tolist(), strict=True)
        ]
        return batch.take(chosen)._replace(bad=tuple(sorted([*batch.bad, *skipped])))


def _wrong_length(count: int, least: int | None, most: int | None) -> str:
    name, limit = ("min", least) if least is not None and count < least else ("max", most)
    return f"has a length of {count:,} in tokens, and {name}_document_tokens is {limit:,}"


def _chosen(values: Any, chosen: Flags) -> Any:
    return None if values is None else values[chosen]


def _as_ids(token: int | None) -> tuple[int, ...]:
    return () if token is None else (token,)
