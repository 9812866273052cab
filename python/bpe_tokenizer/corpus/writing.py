"""Reads, encodes and writes documents at the same time."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import accumulate
from typing import Any

import numpy as np

from bpe_tokenizer.corpus.batch_encoder import BatchEncoder, EncodedBatch
from bpe_tokenizer.corpus.manifest import Shard
from bpe_tokenizer.corpus.mixture import fractions
from bpe_tokenizer.corpus.packer import ShardPacker
from bpe_tokenizer.corpus.run_report import RunReport
from bpe_tokenizer.corpus.shuffle import shuffle_documents
from bpe_tokenizer.corpus.stages import ordered_map
from bpe_tokenizer.corpus.unit_shards import FullShard, UnitShards
from bpe_tokenizer.readers import BadRow, DocumentBatch, Position, read_batches
from bpe_tokenizer.readers.batches import arrow_batches

__all__ = ["write_shards"]

# Bytes of the texts that are encoded or wait for it, for each call; and of the ids that wait for the writer.
_TEXT_BYTES = 8 << 20
_ID_BYTES = 8 << 20


def write_shards(
    store: UnitShards, encoder: BatchEncoder, report: RunReport, rows: Iterable[Any] | None = None
) -> list[BadRow]:
    """Write the documents of a unit into shards, after those that are finished.

    The files are read by threads of `read_batches`. Threads encode several batches, one thread packs and
    writes, and others flush and hash the shards that are full. At most a few batches wait between stages.

    Args:
        store: The shards of the unit.
        encoder: Encodes the documents.
        report: Reports the progress.
        rows: The rows of a unit without inputs, as Arrow record batches.

    Returns:
        The rows that were skipped after the last shard.

    Raises:
        CorpusError: A file is broken, a row is bad, or a document is too long for the format.
        WriteError: A shard cannot be written.
    """
    settings, number = store.plan.settings, store.unit.number
    inputs, _ = store.plan.inputs_of(store.unit)
    # The order of shuffled documents is known when all are read.
    is_shuffled = settings.shuffle is not None
    position, kept = (Position(), []) if is_shuffled else (store.end, list(store.shards))
    packer = ShardPacker(store, position)
    with ExitStack() as stack:
        # After success nothing is unfinished, so this does nothing.
        stack.callback(store.abandon)
        stack.callback(packer.abandon)
        taken = _taken(store, encoder, position, kept, rows)
        encoded: Iterable[EncodedBatch] = stack.enter_context(closing(taken))
        if settings.shuffle is not None:
            scratch, dtype = store.directory.scratch, settings.dtype_in_memory
            shuffled = shuffle_documents(encoded, settings.shuffle, scratch, dtype, packer.documents)
            encoded = stack.enter_context(closing(shuffled))
        packed = ordered_map(packer.add, encoded, workers=1, size=_nbytes, limit=_ID_BYTES)
        stack.enter_context(closing(packed))

        def full_shards() -> Iterator[list[FullShard]]:
            for read, skipped, full in packed:
                report.skipped(inputs, skipped)
                report.progress(number, read, packer.documents, packer.tokens)
                yield full

        completed = ordered_map(
            _complete,
            full_shards(),
            workers=encoder.calls,
            size=len,
            limit=encoder.calls,
            inline=lambda full: not full,
        )
        for shards in stack.enter_context(closing(completed)):
            for shard in shards:
                report.shard(store.add(shard))
                store.save()
        last, skipped = packer.finish()
        for shard in last:
            report.shard(store.add(shard.complete()))
        return skipped


def _taken(
    store: UnitShards,
    encoder: BatchEncoder,
    position: Position,
    kept: Sequence[Shard],
    rows: Iterable[Any] | None,
) -> Generator[EncodedBatch, None, None]:
    """Yield the documents of a unit that the settings take, encoded.

    Args:
        store: The shards of the unit.
        encoder: Encodes the documents.
        position: Where to begin.
        kept: The shards before it.
        rows: As in `write_shards`.
    """
    plan, unit = store.plan, store.unit
    settings = plan.settings
    ranges = None if unit.start is None or unit.end is None else [(unit.start, unit.end)]
    inputs, _ = plan.inputs_of(unit)
    of_inputs = fractions(settings.sources)[unit.first :]

    def encode(batch: DocumentBatch) -> EncodedBatch:
        fraction = of_inputs[batch.input] if of_inputs else 1.0
        return encoder.encode(batch, fraction, inputs[batch.input].name)

    # The inputs, the limits of documents and ids, and what the shards before have of them.
    before = [(each.documents, each.tokens) for each in kept]
    spans = [(0, len(inputs), settings.limit, settings.max_tokens, before)]
    if any(source.tokens is not None for source in settings.sources):
        ends = accumulate(source.inputs for source in settings.sources)
        spans.clear()
        for source, end in zip(settings.sources, ends, strict=True):
            before = [each.sources.get(source.name, (0, 0)) for each in kept]
            spans.append((end - source.inputs, end, None, source.tokens, before))
    for first, end, documents, tokens, before in spans:
        if position.input >= end:
            continue
        start = max(position, Position(first))
        with ExitStack() as stack:
            if rows is None:
                batches = read_batches(
                    inputs[:end], settings.read, start, threads=encoder.threads, byte_ranges=ranges
                )
            else:
                batches = arrow_batches(inputs[0], rows, settings.read)
            stack.enter_context(closing(batches))
            encoded = ordered_map(
                encode,
                batches,
                workers=encoder.calls,
                size=_nbytes,
                limit=_TEXT_BYTES * encoder.calls,
                inline=encoder.is_large,
            )
            stack.enter_context(closing(encoded))
            yield from _limited(encoded, documents, tokens, before)


def _limited(
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


def _complete(shards: Sequence[FullShard]) -> list[FullShard]:
    return [shard.complete() for shard in shards]


def _nbytes(batch: DocumentBatch | EncodedBatch) -> int:
    return sum(each.nbytes for each in batch if isinstance(each, np.ndarray))
