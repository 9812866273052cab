"""Reads, encodes and writes documents at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing

from bpe_tokenizer.corpus.encoded import BatchEncoder, EncodedBatch
from bpe_tokenizer.corpus.packer import ShardPacker
from bpe_tokenizer.corpus.run_report import RunReport
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.shard_store import ShardStore
from bpe_tokenizer.corpus.shuffle import shuffle_documents
from bpe_tokenizer.corpus.stages import ordered_map
from bpe_tokenizer.readers import BadRow, DocumentBatch, Input, Position, read_batches

__all__ = ["write_shards"]

# Bytes of the texts that are encoded or wait for it, for each call; and of the ids that wait for the writer.
_TEXT_BYTES = 8 << 20
_ID_BYTES = 8 << 20


def write_shards(
    inputs: Sequence[Input],
    ranges: Sequence[tuple[int, int] | None] | None,
    settings: CorpusSettings,
    encoder: BatchEncoder,
    store: ShardStore,
    start: Position,
    report: RunReport,
) -> list[BadRow]:
    """Write the documents of files into shards.

    The files are read by threads of `read_batches`. Threads encode several batches, and one thread packs,
    converts, hashes and writes. At most a few batches wait between two stages.

    Args:
        inputs: The files.
        ranges: The part of each file to read; None for whole files.
        settings: The settings of the run.
        encoder: Encodes the documents.
        store: Where the shards go.
        start: The position after the finished shards of the store.
        report: Reports the progress.

    Returns:
        The rows that were skipped after the last shard.

    Raises:
        CorpusError: A file is broken, a row is bad, or a document is too long for the format.
        WriteError: A shard cannot be written.
    """
    seed = settings.shuffle
    # The order of shuffled documents is known when all are read.
    position = start if seed is None else Position()
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
                    closing(shuffle_documents(encoded, seed, store.directory, settings.dtype, kept))
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
