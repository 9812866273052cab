"""Reads, encodes and writes documents at the same time."""

from __future__ import annotations

from contextlib import ExitStack, closing

from bpe_tokenizer.corpus.batch_encoder import BatchEncoder, EncodedBatch
from bpe_tokenizer.corpus.packer import ShardPacker
from bpe_tokenizer.corpus.plan import Plan, Unit
from bpe_tokenizer.corpus.run_report import RunReport
from bpe_tokenizer.corpus.shuffle import shuffle_documents
from bpe_tokenizer.corpus.stages import ordered_map
from bpe_tokenizer.corpus.unit_shards import UnitShards
from bpe_tokenizer.readers import BadRow, DocumentBatch, Position, read_batches

__all__ = ["write_shards"]

# Bytes of the texts that are encoded or wait for it, for each call; and of the ids that wait for the writer.
_TEXT_BYTES = 8 << 20
_ID_BYTES = 8 << 20


def write_shards(
    plan: Plan, unit: Unit, encoder: BatchEncoder, store: UnitShards, report: RunReport
) -> list[BadRow]:
    """Write the documents of a unit into shards, after those that are finished.

    The files are read by threads of `read_batches`. Threads encode several batches, and one thread packs,
    converts, hashes and writes. At most a few batches wait between two stages.

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
    packer = ShardPacker(store, settings, [each.name for each in inputs], position)
    reported = len(store.shards)
    try:
        with ExitStack() as stack:
            batches = read_batches(
                inputs, settings.read, position, threads=encoder.threads, byte_ranges=ranges
            )
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
            if seed is not None:
                encoded = stack.enter_context(
                    closing(shuffle_documents(encoded, seed, store.directory.path, settings.dtype, kept))
                )
            written = ordered_map(packer.add, encoded, workers=1, size=_id_bytes, limit=_ID_BYTES)
            for read, skipped in stack.enter_context(closing(written)):
                report.shards(store.shards[reported:])
                reported = len(store.shards)
                report.skipped(inputs, skipped)
                report.progress(read, packer.documents, packer.tokens)
        left = packer.finish()
        report.shards(store.shards[reported:])
        return left
    finally:
        # After success no shard is unfinished, so this does nothing.
        packer.abandon()


def _text_bytes(batch: DocumentBatch) -> int:
    return batch.data.nbytes + batch.offsets.nbytes + batch.rows.nbytes


def _id_bytes(batch: EncodedBatch) -> int:
    return batch.ids.nbytes + batch.offsets.nbytes + batch.rows.nbytes


def _nothing() -> None:
    pass
