"""Ends a corpus at a number of documents or of ids."""

from __future__ import annotations

from collections.abc import Generator, Iterable

import numpy as np

from bpe_tokenizer.corpus.batch_encoder import EncodedBatch

__all__ = ["limited"]


def limited(
    batches: Iterable[EncodedBatch],
    documents: int | None,
    tokens: int | None,
    taken: Iterable[tuple[int, int]],
) -> Generator[EncodedBatch, None, None]:
    """Yield batches up to the first document that is beyond a limit.

    Args:
        batches: The documents.
        documents: Maximum number of documents; None for no limit.
        tokens: Maximum number of ids; None for no limit.
        taken: Numbers of documents and ids that were taken before.
    """
    held_documents, held_tokens = map(sum, zip((0, 0), *taken, strict=True))
    for batch in batches:
        end = count = len(batch.rows)
        if documents is not None:
            end = min(end, documents - held_documents)
        if tokens is not None:
            end = min(end, int(np.searchsorted(batch.offsets, tokens - held_tokens, side="right")) - 1)
        if end < count:
            yield batch.head(end)
            return
        held_documents += count
        held_tokens += len(batch.ids)
        yield batch
