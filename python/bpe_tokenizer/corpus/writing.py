"""Reads, encodes and writes documents at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from bpe_tokenizer.corpus.batch_encoder import BatchEncoder, EncodedBatch
from bpe_tokenizer.corpus.index import csv_field
from bpe_tokenizer.corpus.manifest import Files
from bpe_tokenizer.corpus.packer import ShardPacker
from bpe_tokenizer.corpus.plan import Plan, Unit
from bpe_tokenizer.corpus.run_report import RunReport
from bpe_tokenizer.corpus.selection import limited
from bpe_tokenizer.corpus.shuffle import shuffle_documents
from bpe_tokenizer.corpus.stages import ordered_map
from bpe_tokenizer.corpus.unit_shards import FullShard, UnitShards
from bpe_tokenizer.readers import BadRow, DocumentBatch, Position, read_batches

__all__ = ["write_shards"]

# Bytes of the texts that are encoded or wait for it, for each call; and of the ids that wait for the writer.
_TEXT_BYTES = 8 << 20
_ID_BYTES = 8 << 20


def write_shards(
    plan: Plan, unit: Unit, encoder: BatchEncoder, store: UnitShards, report: RunReport
) -> list[BadRow]:
    """Write the documents of a unit into shards, after those that are finished.

    The files are read by threads of `read_batches`. Threads encode several batches, one thread packs and
    writes, and others flush and hash the shards that are full. At most a few batches wait between stages.

    Args:
        plan: The plan.
        unit: The unit.
        encoder: Encodes the documents.
        store: The shards of the unit.
        report: Reports the progress.

    Returns:
        The rows that were skipped after the last shard.

    Raises:
        CorpusError: A file is broken, a row is bad, or a document is too long for the format.
        WriteError: A shard cannot be written.
    """
    settings = plan.settings
    inputs = plan.inputs[unit.first : unit.first + unit.inputs]
    ranges = None if unit.start is None or unit.end is None else [(unit.start, unit.end)]
    seed = settings.shuffle
    # The order of shuffled documents is known when all are read.
    position = store.end if seed is None else Position()
    kept = sum(shard.documents for shard in store.shards)
    kept_tokens = sum(shard.tokens for shard in store.shards)
    sources = None
    if settings.index:
        # The rows of a part of a file count from its beginning.
        place = f"@{unit.start}" if unit.kind == "bytes" else ""
        names = plan.names[unit.first : unit.first + unit.inputs]
        sources = [csv_field(f"{name}{place}") for name in names]
    packer = ShardPacker(store, settings, [each.name for each in inputs], position, sources)
    with ExitStack() as stack:
        # After success nothing is unfinished, so this does nothing.
        stack.callback(store.abandon)
        stack.callback(packer.abandon)
        batches = read_batches(inputs, settings.read, position, threads=encoder.threads, byte_ranges=ranges)
        stack.callback(getattr(batches, "close", _nothing))
        encoded = stack.enter_context(
            closing(
                ordered_map(
                    encoder.encode,
                    batches,
                    workers=encoder.calls,
                    size=_text_bytes,
                    limit=_TEXT_BYTES * encoder.calls,
                    inline=encoder.is_large,
                )
            )
        )
        taken = (kept, kept_tokens) if seed is None else (0, 0)
        encoded = stack.enter_context(closing(limited(encoded, settings.limit, settings.max_tokens, taken)))
        if seed is not None:
            encoded = stack.enter_context(
                closing(shuffle_documents(encoded, seed, store.directory.scratch, settings.dtype, kept))
            )
        packed = ordered_map(packer.add, encoded, workers=1, size=_id_bytes, limit=_ID_BYTES)
        stack.enter_context(closing(packed))

        def full_shards() -> Iterator[list[FullShard]]:
            for read, skipped, full in packed:
                report.skipped(inputs, skipped)
                report.progress(unit.number, read, packer.documents, packer.tokens)
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
            for shard, listed in shards:
                report.shard(store.add(shard, listed))
                store.save()
        last, skipped = packer.finish()
        for shard in last:
            report.shard(store.add(shard, shard.complete()))
        return skipped


def _complete(shards: Sequence[FullShard]) -> list[tuple[FullShard, Files]]:
    return [(shard, shard.complete()) for shard in shards]


def _text_bytes(batch: DocumentBatch) -> int:
    return batch.data.nbytes + batch.offsets.nbytes + batch.rows.nbytes


def _id_bytes(batch: EncodedBatch) -> int:
    return batch.ids.nbytes + batch.offsets.nbytes + batch.rows.nbytes


def _nothing() -> None:
    pass
