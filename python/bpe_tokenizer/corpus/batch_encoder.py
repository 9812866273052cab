"""Encodes batches of documents."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.arguments import processors_for, thread_count
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.validation import is_validation
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
    """

    input: int
    ids: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    bad: tuple[BadRow, ...]
    bytes_read: int
    validation: npt.NDArray[np.bool_] | None = None


class BatchEncoder:
    """Encodes batches, in several threads at the same time.

    Args:
        tokenizer: The tokenizer.
        settings: The settings of the run.
        threads: Number of threads in all; None for all processors.
    """

    def __init__(self, tokenizer: BPETokenizer, settings: CorpusSettings, threads: int | None) -> None:
        compiled = tokenizer._compiled()
        allowed: Any = settings.allowed_special
        if not isinstance(allowed, str):
            allowed = set(allowed)
        self._encoder = compiled.encoder
        self._special = resolve_allowed_special(compiled, (), allowed)
        self._suffix = () if settings.eos_id is None else (settings.eos_id,)
        self._val_fraction = settings.val_fraction
        self.threads = threads
        self._threads = thread_count(threads)
        processors = processors_for(threads)
        self.calls = min(processors, _MAX_CALLS)
        self._threads_of_call = -(-processors // self.calls)

    def is_large(self, batch: DocumentBatch) -> bool:
        """Return whether a batch is encoded on all processors."""
        return batch.data.nbytes > _LARGE

    def encode(self, batch: DocumentBatch) -> EncodedBatch:
        """Encode a batch."""
        threads = self._threads if self.is_large(batch) else self._threads_of_call
        found = self._encoder.encode_rows(
            batch.data, batch.offsets, self._special, threads, ((), self._suffix)
        )
        validation = None
        if self._val_fraction is not None:
            validation = is_validation(batch.data, batch.offsets, self._val_fraction)
        return EncodedBatch(batch.input, *found, batch.rows, batch.bad, batch.bytes_read, validation)
