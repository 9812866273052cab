"""Makes corpora arrive in small batches, whatever size the readers choose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bpe_tokenizer.corpus import writing
from bpe_tokenizer.readers import DocumentBatch, read_batches


def patch_batches(documents: int, patch: pytest.MonkeyPatch | None = None) -> None:
    """Let batches have at most some documents; without a patch, to the end of the process."""

    def read(*arguments: Any, **options: Any) -> Iterator[DocumentBatch]:
        for batch in read_batches(*arguments, **options):
            yield from sliced(batch, documents)

    (patch or pytest.MonkeyPatch()).setattr(writing, "read_batches", read)


def sliced(batch: DocumentBatch, documents: int) -> Iterator[DocumentBatch]:
    count = len(batch.rows)
    bad = list(batch.bad)
    for start in range(0, count, documents) or [0]:
        end = min(start + documents, count)
        now = [row for row in bad if end == count or row.row < batch.rows[end - 1]]
        bad = bad[len(now) :]
        offsets = batch.offsets[start : end + 1]
        yield batch._replace(
            data=batch.data[int(offsets[0]) : int(offsets[-1])],
            offsets=offsets - offsets[0],
            rows=batch.rows[start:end],
            bad=tuple(now),
            names=None if batch.names is None else batch.names[start:end],
        )
