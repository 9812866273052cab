"""Shuffles documents by a seed, in bounded memory.

Each document has a key: a hash of the seed and of the document's number in the corpus. The shuffled order
is the order of the keys, so it depends on nothing else. Documents are scattered into buckets by the leading
bits of their keys; then each bucket is sorted in memory. A bucket that is too large for that is scattered
again, by the next bits. This is an external distribution sort.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.atomic import write_errors
from bpe_tokenizer.columns.texts import cuts
from bpe_tokenizer.corpus.batch_encoder import EncodedBatch
from bpe_tokenizer.corpus.documents import Counts, Ids, offsets_of, take_documents
from bpe_tokenizer.corpus.shards import TokenType
from bpe_tokenizer.corpus.validation import GOLDEN_GAMMA, mixed
from bpe_tokenizer.readers import BadRow

__all__ = ["document_keys", "shuffle_documents"]

# Buckets of a level, and bits of a key that choose one.
_BUCKETS, _BITS = 64, 6
_MAX_LEVEL = 64 // _BITS - 1
# Bytes of documents that a level holds in memory until it writes them, and of a bucket that is sorted there.
_BUFFER_BYTES = 32 << 20
_SORTED_BYTES = 64 << 20
# Ids of a batch of shuffled documents.
_BATCH_IDS = 1 << 20
# The bit of a key that tells whether the document is for validation, if documents are divided.
_VALIDATION = np.uint64(1)
# An origin is the index of the input and the row.
_ROW_BITS = 40
# Bytes of the size of a name.
_SIZE_BYTES = 4


class _Documents(NamedTuple):
    """Documents with their keys, lengths, origins and ids, which may be stored in 16 bits."""

    keys: npt.NDArray[np.uint64]
    lengths: Counts
    origins: Counts
    ids: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def take(self, order: npt.NDArray[np.intp]) -> _Documents:
        """Return some documents, in this order."""
        ids, lengths = take_documents(self.ids, self.lengths, order)
        return _Documents(self.keys[order], lengths, self.origins[order], ids)

    def between(self, first: int, end: int, offsets: Counts) -> _Documents:
        """Return successive documents, given where the ids of each start."""
        ids = self.ids[offsets[first] : offsets[end]]
        return _Documents(self.keys[first:end], self.lengths[first:end], self.origins[first:end], ids)


def document_keys(seed: int, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Return the keys of documents: distinct numbers, by a bijective hash of the document's number.

    The hash is SplitMix64's finalizer, twice, with the hashed seed in between.

    Args:
        seed: The seed, from 0 to 2**64 - 1.
        first: The number of the first document.
        count: The number of documents.

    >>> keys = document_keys(1, 0, 1000)
    >>> len(set(keys.tolist())), bool((keys == document_keys(2, 0, 1000)).any())
    (1000, False)
    """
    numbers = np.arange(first, first + count, dtype=np.uint64)
    hashed_seed = mixed(np.array([seed], dtype=np.uint64) + GOLDEN_GAMMA)
    return mixed(mixed(numbers) ^ hashed_seed)


def shuffle_documents(
    batches: Iterable[EncodedBatch], seed: int, directory: Path, dtype: TokenType, skip: int = 0
) -> Generator[EncodedBatch, None, None]:
    """Yield all documents in the order of their keys. The rows that were skipped come last.

    Args:
        batches: The documents in their own order: all of them with names, or none.
        seed: The seed of the keys.
        directory: Where temporary files go. They have no name, so nothing is left of a killed run.
        dtype: The type of an id in these files.
        skip: Number of documents to leave out at the beginning.

    Raises:
        WriteError: A temporary file cannot be written.
    """
    bad: list[BadRow] = []
    number = read = 0
    has_names = False

    def keyed() -> Iterator[_Documents]:
        nonlocal number, read, has_names
        for batch in batches:
            bad.extend(batch.bad)
            read, has_names = batch.bytes_read, has_names or batch.names is not None
            keys = document_keys(seed, number, len(batch.rows))
            number += len(keys)
            if batch.validation is not None:
                keys = keys & ~_VALIDATION | batch.validation
            origins = batch.rows | np.int64(batch.input << _ROW_BITS)
            ids, offsets = _with_names(batch)
            yield _Documents(keys, np.diff(offsets), origins, ids.astype(dtype, copy=False))

    nothing = np.zeros(0, dtype=np.int64)
    with closing(_in_order(keyed(), directory, 0)) as documents:
        for found in documents:
            batch = EncodedBatch(
                input=0,
                ids=found.ids.astype(np.uint32, copy=False),
                offsets=offsets_of(found.lengths),
                rows=np.zeros(len(found.lengths), dtype=np.int64),
                bad=(),
                bytes_read=read,
                validation=(found.keys & _VALIDATION).astype(np.bool_),
                origins=np.stack(np.divmod(found.origins, 1 << _ROW_BITS), axis=1),
            )
            dropped = min(skip, len(batch.rows))
            skip -= dropped
            if dropped:
                batch = batch.take(np.arange(len(batch.rows)) >= dropped)
            yield _without_names(batch) if has_names else batch
    yield EncodedBatch(0, np.zeros(0, dtype=np.uint32), offsets_of(nothing), nothing, tuple(bad), read)


def _with_names(batch: EncodedBatch) -> tuple[Ids, Counts]:
    """Return the ids of documents, each followed by the bytes of its name, and their offsets."""
    if batch.names is None:
        return batch.ids, batch.offsets
    names = [name.encode() for name in batch.names]
    tails = [np.frombuffer(name + len(name).to_bytes(_SIZE_BYTES, "little"), np.uint8) for name in names]
    documents = np.split(batch.ids, batch.offsets[1:-1])
    parts = chain.from_iterable(zip(documents, tails, strict=False))
    ids = np.concatenate([np.zeros(0, np.uint32), *parts])
    return ids, batch.offsets + np.cumsum([0, *map(len, tails)])


def _without_names(batch: EncodedBatch) -> EncodedBatch:
    """Return the documents of `_with_names`, and their names."""
    names: list[str] = []
    documents: list[Ids] = []
    for start, end in pairwise(batch.offsets.tolist()):
        last = end - _SIZE_BYTES
        first = last - int.from_bytes(batch.ids[last:end].astype(np.uint8).tobytes(), "little")
        names.append(batch.ids[first:last].astype(np.uint8).tobytes().decode())
        documents.append(batch.ids[start:first])
    return batch._replace(
        ids=np.concatenate([np.zeros(0, np.uint32), *documents]),
        offsets=np.cumsum([0, *map(len, documents)]),
        names=np.array(names, object),
    )


class _Bucket:
    """Documents whose keys have the same leading bits: some in memory, some in a file."""

    def __init__(self) -> None:
        self.documents = 0
        self.nbytes = 0
        self._held: list[_Documents] = []
        self._file: IO[bytes] | None = None
        self._written = 0

    def add(self, documents: _Documents) -> None:
        self.documents += len(documents.keys)
        self.nbytes += documents.nbytes
        self._held.append(documents)

    def write(self, directory: Path) -> None:
        """Move what is in memory to the file."""
        if not self._held:
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=directory, prefix=".shuffle-")  # noqa: SIM115
        for array in _joined(self._held):
            np.save(self._file, array, allow_pickle=False)
        self._written += 1
        self._held = []

    def taken(self) -> Iterator[_Documents]:
        """Yield the documents, and free their memory and file."""
        if self._file is not None:
            self._file.seek(0)
            for _ in range(self._written):
                yield _Documents(*(np.load(self._file) for _ in _Documents._fields))
        yield from self._held
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._held = []


def _in_order(blocks: Iterable[_Documents], directory: Path, level: int) -> Generator[_Documents, None, None]:
    """Yield documents by key, scattered into buckets by the bits of a level."""
    buckets = [_Bucket() for _ in range(_BUCKETS)]
    with ExitStack() as stack:
        for bucket in buckets:
            stack.callback(bucket.close)
        held = 0
        for block in blocks:
            _scatter(block, buckets, level)
            held += block.nbytes
            if held > _BUFFER_BYTES:
                held = 0
                with write_errors(directory):
                    for bucket in buckets:
                        bucket.write(directory)
        for bucket in buckets:
            with write_errors(directory):
                is_large = bucket.nbytes > _SORTED_BYTES and bucket.documents > 1
                if is_large and level < _MAX_LEVEL:
                    yield from _in_order(bucket.taken(), directory, level + 1)
                else:
                    yield from _sorted(list(bucket.taken()))


def _scatter(documents: _Documents, buckets: Sequence[_Bucket], level: int) -> None:
    """Add documents to the buckets that the bits of a level choose."""
    shift = np.uint64(64 - _BITS * (level + 1))
    chosen = ((documents.keys >> shift) & np.uint64(_BUCKETS - 1)).astype(np.intp)
    scattered = documents.take(np.argsort(chosen, kind="stable"))
    ends = np.cumsum(np.bincount(chosen, minlength=_BUCKETS))
    starts, offsets = offsets_of(np.diff(ends, prepend=0)), offsets_of(scattered.lengths)
    for number in np.flatnonzero(np.diff(starts)).tolist():
        buckets[number].add(scattered.between(starts[number], starts[number + 1], offsets))


def _joined(blocks: Sequence[_Documents]) -> _Documents:
    if len(blocks) == 1:
        return blocks[0]
    return _Documents(*(np.concatenate(arrays) for arrays in zip(*blocks, strict=True)))


def _sorted(blocks: list[_Documents]) -> Iterator[_Documents]:
    """Yield documents by key, in batches."""
    if not blocks:
        return
    whole = _joined(blocks)
    blocks.clear()
    order = np.argsort(whole.keys, kind="stable")
    offsets = offsets_of(whole.lengths)
    for first, end in cuts(np.cumsum(whole.lengths[order]), _BATCH_IDS):
        if end - first == 1:  # perhaps a long document, which is not copied
            yield whole.between(order[first], order[first] + 1, offsets)
        else:
            yield whole.take(order[first:end])
