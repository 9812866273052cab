"""Shuffles documents by a seed, in bounded memory.

Each document has a key: a hash of the seed and of the document's number in the corpus. The shuffled order
is the order of the keys, so it depends on nothing else. Documents are scattered into buckets by the leading
bits of their keys; then each bucket is sorted in memory. A bucket that is too large for that is scattered
again, by the next bits. This is an external distribution sort.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.atomic import write_errors
from bpe_tokenizer.columns.texts import cuts
from bpe_tokenizer.corpus.batch_encoder import EncodedBatch
from bpe_tokenizer.corpus.shards import TokenType
from bpe_tokenizer.corpus.validation import GOLDEN_GAMMA, mixed
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.readers import BadRow

__all__ = ["document_keys", "join_names", "part_names", "shuffle_documents"]

# Buckets of a level, and bits of a key that choose one.
_BUCKETS, _BITS = 64, 6
_MAX_LEVEL = 64 // _BITS - 1
# Bytes of documents that a level holds in memory until it writes them, and of a bucket that is sorted there.
_BUFFER_BYTES = 32 << 20
_SORTED_BYTES = 64 << 20
# Ids of a batch of shuffled documents.
_BATCH_IDS = 1 << 20
_HEADER = struct.Struct("<QQ")
# The bit of a key that tells whether the document is for validation, if documents are divided.
_VALIDATION = np.uint64(1)
# An origin is the index of the input and the row.
_ROW_BITS = 40
# Bytes of the size of a name.
_SIZE_BYTES = 4


class _Documents(NamedTuple):
    """Documents with their keys, lengths, origins and ids, which may be stored in 16 bits."""

    keys: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.int64]
    origins: npt.NDArray[np.int64]
    ids: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def take(self, order: npt.NDArray[np.intp]) -> _Documents:
        """Return some documents, in this order."""
        starts = np.cumsum(self.lengths) - self.lengths
        lengths = self.lengths[order]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        # Where each id is: its place in the result, moved by the distance of its document.
        places = np.arange(total) + np.repeat(starts[order] - (ends - lengths), lengths)
        return _Documents(self.keys[order], lengths, self.origins[order], self.ids[places])


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
        batches: The documents in their own order.
        seed: The seed of the keys.
        directory: Where temporary files go. They have no name, so nothing is left of a killed run.
        dtype: The type of an id in these files.
        skip: Number of documents to leave out at the beginning.

    Raises:
        WriteError: A temporary file cannot be written.
    """
    with closing(_Buckets(directory, np.dtype(dtype), 0)) as buckets:
        bad, read = _scatter(batches, seed, buckets)
        for found in buckets.in_order():
            count = len(found.lengths)
            dropped = min(skip, count)
            skip -= dropped
            offsets = np.zeros(count - dropped + 1, dtype=np.int64)
            np.cumsum(found.lengths[dropped:], out=offsets[1:])
            ids = found.ids[int(found.lengths[:dropped].sum()) :].astype(np.uint32, copy=False)
            validation = (found.keys[dropped:] & _VALIDATION).astype(np.bool_)
            rows = np.zeros(count - dropped, dtype=np.int64)
            origins = np.stack(np.divmod(found.origins[dropped:], 1 << _ROW_BITS), axis=1)
            yield EncodedBatch(0, ids, offsets, rows, (), read, validation, origins)
    nothing = np.zeros(0, dtype=np.int64)
    yield EncodedBatch(
        0, np.zeros(0, dtype=np.uint32), np.zeros(1, dtype=np.int64), nothing, tuple(bad), read
    )


def _scatter(batches: Iterable[EncodedBatch], seed: int, buckets: _Buckets) -> tuple[list[BadRow], int]:
    """Add all documents to buckets, and return the rows that were skipped, and the stored bytes read."""
    bad: list[BadRow] = []
    number = read = 0
    for batch in batches:
        lengths, read = np.diff(batch.offsets), batch.bytes_read
        bad.extend(batch.bad)
        if len(lengths):
            keys = document_keys(seed, number, len(lengths))
            if batch.validation is not None:
                keys = keys & ~_VALIDATION | batch.validation
            origins = batch.rows | np.int64(batch.input << _ROW_BITS)
            buckets.add(_Documents(keys, lengths, origins, batch.ids))
        number += len(lengths)
    return bad, read


def join_names(batch: EncodedBatch) -> EncodedBatch:
    """Return documents whose names follow their ids, byte by byte, so that both are shuffled."""
    names = [name.encode() for name in ([] if batch.names is None else batch.names)]
    tails = [np.frombuffer(name + len(name).to_bytes(_SIZE_BYTES, "little"), np.uint8) for name in names]
    documents = (batch.ids[start:end] for start, end in pairwise(batch.offsets.tolist()))
    parts = chain.from_iterable(zip(documents, tails, strict=True))
    return batch._replace(
        ids=np.concatenate([np.zeros(0, np.uint32), *parts]),
        offsets=batch.offsets + np.cumsum([0, *map(len, tails)]),
    )


def part_names(batch: EncodedBatch) -> EncodedBatch:
    """Return the documents of `join_names`, and their names."""
    names: list[str] = []
    documents: list[npt.NDArray[np.uint32]] = []
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

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self.held: list[_Documents] = []
        self.file: IO[bytes] | None = None
        self.documents = 0
        self.nbytes = 0
        self._dtype = dtype

    def write(self, directory: Path) -> None:
        if self.file is None:
            self.file = tempfile.TemporaryFile(dir=directory, prefix=".shuffle-")  # noqa: SIM115
        for each in self.held:
            self.file.write(_HEADER.pack(len(each.keys), len(each.ids)))
            for array in each:
                self.file.write(array.data)
        self.held = []

    def blocks(self) -> Iterator[_Documents]:
        if self.file is not None:
            self.file.seek(0)
            while header := self.file.read(_HEADER.size):
                documents, ids = _HEADER.unpack(header)
                yield _Documents(
                    self._read(np.uint64, documents),
                    self._read(np.int64, documents),
                    self._read(np.int64, documents),
                    self._read(self._dtype, ids),
                )
        yield from self.held

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
        self.held = []

    def _read(self, dtype: Any, count: int) -> Any:
        assert self.file is not None
        data = self.file.read(count * np.dtype(dtype).itemsize)
        if len(data) < count * np.dtype(dtype).itemsize:
            raise CorpusError("a temporary file of the shuffle has become shorter; start the run again")
        return np.frombuffer(data, dtype)


class _Buckets:
    """Documents, scattered by some bits of their keys."""

    def __init__(self, directory: Path, dtype: npt.DTypeLike, level: int) -> None:
        self._directory = directory
        self._dtype = dtype
        self._level = level
        self._buckets = [_Bucket(dtype) for _ in range(_BUCKETS)]
        self._held = 0

    def close(self) -> None:
        for bucket in self._buckets:
            bucket.close()

    def add(self, documents: _Documents) -> None:
        documents = documents._replace(ids=documents.ids.astype(self._dtype, copy=False))
        shift = np.uint64(64 - _BITS * (self._level + 1))
        chosen = ((documents.keys >> shift) & np.uint64(_BUCKETS - 1)).astype(np.intp)
        order = np.argsort(chosen, kind="stable")
        scattered = documents.take(order)
        counts = np.bincount(chosen, minlength=_BUCKETS)
        ends = np.cumsum(counts)
        id_ends = np.concatenate([[0], np.cumsum(scattered.lengths)])
        for number in np.flatnonzero(counts):
            first, end = int(ends[number] - counts[number]), int(ends[number])
            part = _Documents(
                scattered.keys[first:end],
                scattered.lengths[first:end],
                scattered.origins[first:end],
                scattered.ids[id_ends[first] : id_ends[end]],
            )
            bucket = self._buckets[number]
            bucket.held.append(part)
            bucket.documents += end - first
            bucket.nbytes += part.nbytes
        self._held += documents.nbytes
        if self._held > _BUFFER_BYTES:
            with write_errors(self._directory):
                for bucket in self._buckets:
                    bucket.write(self._directory)
            self._held = 0

    def in_order(self) -> Iterator[_Documents]:
        for bucket in self._buckets:
            with write_errors(self._directory):
                is_large = bucket.nbytes > _SORTED_BYTES and bucket.documents > 1
                if is_large and self._level < _MAX_LEVEL:
                    with closing(_Buckets(self._directory, self._dtype, self._level + 1)) as divided:
                        for block in bucket.blocks():
                            divided.add(block)
                        bucket.close()
                        yield from divided.in_order()
                else:
                    yield from _sorted(list(bucket.blocks()))
            bucket.close()


def _sorted(blocks: list[_Documents]) -> Iterator[_Documents]:
    """Yield documents by key, in batches."""
    if not blocks:
        return
    whole = blocks[0]
    if len(blocks) > 1:
        whole = _Documents(*(np.concatenate(arrays) for arrays in zip(*blocks, strict=True)))
    blocks.clear()
    order = np.argsort(whole.keys, kind="stable")
    starts = np.cumsum(whole.lengths) - whole.lengths
    for first, end in cuts(np.cumsum(whole.lengths[order]), _BATCH_IDS):
        chosen = order[first:end]
        if len(chosen) == 1:
            begin, length = int(starts[chosen[0]]), int(whole.lengths[chosen[0]])
            ids = whole.ids[begin : begin + length]
            yield _Documents(whole.keys[chosen], whole.lengths[chosen], whole.origins[chosen], ids)
        else:
            yield whole.take(chosen)
