"""Shards of packed sequences, with the borders of their documents."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.contents import LOSS_BIT
from bpe_tokenizer.corpus.documents import Counts, Ids, positions_in
from bpe_tokenizer.corpus.flat import ArrayFile, npy_header
from bpe_tokenizer.corpus.packing import BestFitPacker, ConcatPacker, PackedIds, PackStrategy
from bpe_tokenizer.corpus.parquet import TableShard
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormat, ShardFormatName, TokenType
from bpe_tokenizer.corpus.streaming import MdsShard, mds_columns
from bpe_tokenizer.errors import CorpusError

__all__ = ["PackedSequences", "packed_format"]

_BORDERS, _LENGTHS, _LOSS_MASK = ".cu_seqlens.npy", ".lengths.npy", ".loss_mask.npy"
# The label of an id that does not count for the loss, as PyTorch's cross entropy has it.
_NO_LABEL = -100
# The maximum of ids in a row group with several sequences.
_ROW_GROUP_TOKENS = 1 << 20


def packed_format(
    name: ShardFormatName,
    size: int,
    strategy: PackStrategy = "concat",
    pad_id: int = 0,
    has_loss: bool = False,
) -> ShardFormat:
    """Return the format of shards of packed sequences.

    Args:
        name: `"npy"`, `"parquet"` or `"mds"`.
        size: The number of ids of a sequence.
        strategy: `"concat"` cuts the concatenated documents every `size` ids; `"best-fit"` keeps documents
            whole where they fit.
        pad_id: Fills the sequences of `"npy"` that are shorter.
        has_loss: Whether to write which ids count for the loss, those with `LOSS_BIT`.

    >>> packed_format("npy", 2048).suffixes
    ('.npy', '.cu_seqlens.npy', '.lengths.npy')
    """
    found = FORMATS[name]
    if name == "npy":
        found = found._replace(suffixes=(".npy", _BORDERS, _LENGTHS, *([_LOSS_MASK] if has_loss else [])))

    def open_shard(files: Sequence[BinaryIO], dtype: TokenType) -> PackingShard:
        packer = ConcatPacker(size) if strategy == "concat" else BestFitPacker(size)
        sequences: _Sequences
        if name == "npy":
            sequences = _NumpySequences(files, dtype, size, pad_id)
        elif name == "mds":
            sequences = _MdsSequences(files, dtype, has_loss)
        else:
            sequences = _ParquetSequences(files, dtype, size, has_loss)
        return PackingShard(packer, sequences)

    return found._replace(open=open_shard)


class PackingShard:
    """Packs documents into sequences.

    Args:
        packer: Packs the documents.
        sequences: Writes the sequences.
    """

    def __init__(self, packer: ConcatPacker | BestFitPacker, sequences: _Sequences) -> None:
        self._packer = packer
        self._sequences = sequences
        self.abandon = sequences.abandon

    def write(self, ids: Ids, lengths: Counts) -> None:
        """Add documents."""
        for packed in self._packer.add(ids, lengths):
            self._sequences.add(packed)

    def finish(self) -> None:
        """Write the last sequences, and the end of the files."""
        for packed in self._packer.finish():
            self._sequences.add(packed)
        self._sequences.finish()


class _NumpySequences:
    """Writes sequences to `.npy`, an array of `size` columns, and their borders to two more arrays.

    `PackedSequences` reads them. `.cu_seqlens.npy` has the borders of all pieces and of all sequences, as
    positions in the flattened array, int64. `.lengths.npy` has the number of ids of each sequence, int32; the
    rest of its row is padding. A fourth file, `.loss_mask.npy`, has which ids count for the loss.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str, size: int, pad_id: int) -> None:
        self._size = size
        self._pad_id = pad_id
        header = partial(npy_header, columns=size)
        self._ids = ArrayFile(files[0], dtype, header)
        self._borders = ArrayFile(files[1], "int64")
        self._lengths = ArrayFile(files[2], "int32")
        # Of conversations.
        self._loss = [ArrayFile(file, "bool", header) for file in files[3:]]
        self._borders.write(np.zeros(1, dtype=np.int64))

    def add(self, packed: PackedIds) -> None:
        lengths, before = packed.lengths, self._ids.items * self._size
        rows = np.full((len(lengths), self._size), self._pad_id, dtype=np.uint32)
        is_used = np.arange(self._size) < lengths[:, None]
        rows[is_used] = packed.ids
        for file in self._loss:
            file.write(is_used & (rows >= LOSS_BIT))
            rows &= ~LOSS_BIT
        self._ids.write(rows)
        self._lengths.write(lengths)
        # Padding before a sequence moves its pieces.
        padding = np.cumsum(self._size - lengths) - (self._size - lengths)
        ends = np.cumsum(packed.pieces) + np.repeat(padding, packed.counts)
        sequence_ends = self._size * np.arange(1, len(lengths) + 1)
        self._borders.write(np.union1d(ends, sequence_ends) + before)

    def finish(self) -> None:
        for array in (self._ids, self._borders, self._lengths, *self._loss):
            array.finish()

    def abandon(self) -> None:
        pass


class _ParquetSequences(TableShard):
    """Writes a row for each sequence, without padding.

    The columns are `input_ids`, the lengths of its pieces as `seq_lengths` (which TRL's collator reads), and
    `position_ids` that start at 0 in each piece (which models of transformers read); of conversations also
    `labels`: the ids that count for the loss, and -100.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str, size: int, has_loss: bool) -> None:
        items = {"input_ids": dtype, "seq_lengths": "int32", "position_ids": "int32"}
        super().__init__(
            files[0],
            {**items, "labels": "int32"} if has_loss else items,
            use_dictionary=["input_ids.list.element", "seq_lengths.list.element"],
            # Runs of successive numbers take no space as differences.
            column_encoding={"position_ids.list.element": "DELTA_BINARY_PACKED"},
        )
        self._has_loss = has_loss
        self._rows_of_group = max(_ROW_GROUP_TOKENS // size, 1)
        self._held: list[Any] = []
        self._held_rows = 0

    def add(self, packed: PackedIds) -> None:
        ids, lengths = packed.ids, packed.lengths
        labels = {}
        if self._has_loss:
            ids, found = _ids_and_labels(ids)
            labels["labels"] = (found, lengths)
        rows = self.rows(
            input_ids=(ids, lengths),
            seq_lengths=(packed.pieces, packed.counts),
            position_ids=(positions_in(packed.pieces), lengths),
            **labels,
        )
        self._held.append(rows)
        self._held_rows += len(rows)
        self._write_row_groups(self._rows_of_group)

    def finish(self) -> None:
        self._write_row_groups(1)
        super().finish()

    def _write_row_groups(self, least: int) -> None:
        """Write the rows that are held, as long as there are `least`."""
        while self._held_rows >= least:
            table = self._pyarrow.concat_tables(self._held)
            number = min(self._rows_of_group, self._held_rows)
            self.write_row_group(table.slice(0, number).combine_chunks())
            self._held_rows -= number
            self._held = [table.slice(number)] if self._held_rows else []


class _MdsSequences:
    """Writes a sample for each sequence: `tokens` without padding, and `seq_lengths` of its pieces.

    Samples of conversations also have `labels`, as in Parquet.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str, has_loss: bool) -> None:
        self._samples = MdsShard(files, dtype, mds_columns(True, has_loss))
        self._has_loss = has_loss
        self.finish, self.abandon = self._samples.finish, self._samples.abandon

    def add(self, packed: PackedIds) -> None:
        pieces = np.split(packed.pieces, np.cumsum(packed.counts)[:-1])
        for lengths, ids in zip(pieces, np.split(packed.ids, np.cumsum(packed.lengths)[:-1]), strict=True):
            if self._has_loss:
                tokens, labels = _ids_and_labels(ids)
                self._samples.add(labels, lengths, tokens)
            else:
                self._samples.add(lengths, ids)


# What writes sequences to the files of a shard.
_Sequences: TypeAlias = _NumpySequences | _ParquetSequences | _MdsSequences


def _ids_and_labels(ids: Ids) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Return ids without `LOSS_BIT`, and the labels: those that had it, and -100 for the others."""
    plain = ids & ~LOSS_BIT
    return plain, np.where(ids >= LOSS_BIT, plain.astype(np.int32), np.int32(_NO_LABEL))


class PackedSequences(NamedTuple):
    """The packed sequences of a shard in `.npy`, as memory maps.

    A pickle of what `load` returns has the path, not the ids: the files must be there where it is read.

    Args:
        ids: The ids, a sequence a row.
        borders: The borders of all pieces and sequences, as positions in the flattened array.
        lengths: The number of ids of each sequence; the rest of its row is padding.
        loss_mask: Which ids count for the loss; None but for conversations.

    >>> import io
    >>> files = [io.BytesIO() for _ in range(3)]
    >>> shard = packed_format("npy", 4, pad_id=9).open(files, "uint16")
    >>> shard.write(np.arange(6, dtype=np.uint32), np.array([3, 3]))
    >>> shard.finish()
    >>> packed = PackedSequences(*(np.load(io.BytesIO(file.getvalue())) for file in files))
    >>> packed.ids.tolist()
    [[0, 1, 2, 3], [4, 5, 9, 9]]
    >>> packed.cu_seqlens(0, 2).tolist()
    [0, 3, 4, 6, 8]
    >>> packed.document_ids(0, 2).tolist()
    [[0, 0, 0, 1], [0, 0, -1, -1]]
    >>> packed.position_ids(0, 2).tolist()
    [[0, 1, 2, 0], [0, 1, 0, 1]]
    """

    ids: npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
    borders: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.bool_] | None = None

    @classmethod
    def load(cls, path: str | Path) -> PackedSequences:
        """Map the files of a shard.

        Args:
            path: The file of the ids, such as `tokens-00000.npy`.

        Raises:
            CorpusError: A file is missing, or the files are not of one shard.
        """
        path = Path(path)
        files = [path, *(path.with_suffix(suffix) for suffix in (_BORDERS, _LENGTHS, _LOSS_MASK))]
        try:
            ids, borders, lengths, *mask = (
                np.load(file, mmap_mode="r", allow_pickle=False)
                for file in files
                if file != files[3] or file.exists()
            )
        except (OSError, ValueError) as error:
            raise CorpusError(f"{path}: the packed shard cannot be read: {error}") from error
        if ids.ndim != 2 or ids.shape[:1] != lengths.shape or borders.shape < (1,) or borders[-1] != ids.size:
            raise CorpusError(f"{path} and its {_BORDERS} and {_LENGTHS} are not files of one packed shard")
        return cls(ids, borders, lengths, *mask)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a pickle is read: from the files that are mapped, or from arrays of any other origin."""
        path = _mapped_file(self.ids)
        others = zip(self[1:], (_BORDERS, _LENGTHS, _LOSS_MASK), strict=True)
        if path is not None and all(
            array is None or _mapped_file(array) == path.with_suffix(suffix) for array, suffix in others
        ):
            return type(self).load, (path,)
        return type(self), tuple(self)

    def cu_seqlens(self, start: int, stop: int) -> npt.NDArray[np.int32]:
        """Return the borders of the pieces of successive sequences, flattened.

        These are `cu_seqlens` of FlashAttention's `flash_attn_varlen_func`. The padding of a sequence is a
        separate piece.

        Args:
            start: The first sequence.
            stop: The sequence after the last.
        """
        size: int = self.ids.shape[1]
        first, last = np.searchsorted(self.borders, [start * size, stop * size]).tolist()
        return (self.borders[first : last + 1] - start * size).astype(np.int32)

    def position_ids(self, start: int, stop: int) -> npt.NDArray[np.int32]:
        """Return the position of each id in its piece, an array like that of the ids."""
        positions = positions_in(np.diff(self.cu_seqlens(start, stop)))
        return positions.reshape(-1, self.ids.shape[1]).astype(np.int32)

    def document_ids(self, start: int, stop: int) -> npt.NDArray[np.int32]:
        """Return the number of the piece of each id in its sequence, and -1 for padding.

        Two ids of a sequence may attend to each other where these are equal.
        """
        size = self.ids.shape[1]
        pieces = np.zeros((stop - start, size), dtype=np.int32)
        borders = self.cu_seqlens(start, stop)[:-1]
        pieces.reshape(-1)[borders] = borders % size > 0
        pieces = np.cumsum(pieces, axis=1, dtype=np.int32)
        pieces[np.arange(size) >= self.lengths[start:stop, None]] = -1
        return pieces

    def labels(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the ids that count for the loss, and -100 for the others: `labels` of transformers.

        Raises:
            CorpusError: The shard has no mask, as it is not one of conversations.
        """
        if self.loss_mask is None:
            raise CorpusError("the packed shard has no mask of what counts for the loss")
        return np.where(self.loss_mask[start:stop], self.ids[start:stop].astype(np.int64), _NO_LABEL)


def _mapped_file(array: npt.NDArray[Any]) -> Path | None:
    """Return the file that an array maps, read only and whole; None for another array or a view."""
    if isinstance(array, np.memmap) and array.mode == "r" and isinstance(array.base, mmap.mmap):
        return Path(array.filename) if array.filename else None
    return None
