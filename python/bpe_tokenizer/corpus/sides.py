"""The files of a shard: those of its format, an index and a mask beside them, for each side of a division."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import BinaryIO

from bpe_tokenizer.corpus.contents import LOSS_BIT
from bpe_tokenizer.corpus.document_ends import DocumentIndex
from bpe_tokenizer.corpus.documents import Counts, Flags, Ids, select_documents
from bpe_tokenizer.corpus.shards import ShardFormat, TokenType

__all__ = ["INDEX_SUFFIX", "MASK_SUFFIX", "ShardLayout", "SideWriter", "csv_field", "write_sides"]

INDEX_SUFFIX, MASK_SUFFIX = ".index.csv.gz", ".label_mask"


@dataclass(frozen=True)
class ShardLayout:
    """What files a shard has.

    Args:
        form: The format of the files with the ids.
        index: The suffix of the index of the documents; "" for none.
        mask: The suffix of the mask of what counts for the loss; "" for none.
        sides: What is before the suffixes of each side of a division, training first.

    >>> from bpe_tokenizer.corpus.shards import FORMATS
    >>> ShardLayout(FORMATS["megatron"], sides=(".train", ".val")).suffixes
    ['.train.bin', '.train.idx', '.val.bin', '.val.idx']
    """

    form: ShardFormat
    index: str = ""
    mask: str = ""
    sides: tuple[str, ...] = ("",)

    @property
    def suffixes(self) -> list[str]:
        """The suffix of each file."""
        of_side = [*self.form.suffixes, *filter(None, (self.index, self.mask))]
        return [f"{side}{suffix}" for side in self.sides for suffix in of_side]

    def open(self, files: Sequence[BinaryIO], dtype: TokenType) -> list[SideWriter]:
        """Return the writer of each side, given the empty files of a shard and the type of an id."""
        count = len(files) // len(self.sides)
        starts = range(0, len(files), count)
        return [SideWriter(self, files[start : start + count], dtype) for start in starts]


class SideWriter:
    """Writes documents to the files of a side.

    The index has the columns of https://github.com/allenai/dolma, python/dolma/tokenizer/memmap_writer.py:
    `start,end,id,src,loc`. The mask has a byte for each id, 1 if it counts for the loss: an array of
    `label_mask_paths` of https://github.com/allenai/OLMo-core, src/olmo_core/data/numpy_dataset.py, without
    a header.

    Args:
        layout: What files there are.
        files: The files.
        dtype: The type of an id.
    """

    def __init__(self, layout: ShardLayout, files: Sequence[BinaryIO], dtype: TokenType) -> None:
        own = len(layout.form.suffixes)
        beside = iter(files[own:])
        self._shard = layout.form.open(files[:own], dtype)
        self._index = DocumentIndex(next(beside)) if layout.index else None
        self._mask = next(beside) if layout.mask else None
        self.tokens = 0
        self.abandon = self._shard.abandon

    def write(self, ids: Ids, lengths: Counts, origins: Iterable[str]) -> None:
        """Add documents.

        Args:
            ids: The ids of all documents, in sequence. With a mask, those that count have `LOSS_BIT`.
            lengths: The number of ids of each document.
            origins: The columns `,id,src,loc` of each document, for an index.
        """
        self.tokens += len(ids)
        if self._mask is not None:
            self._mask.write((ids >= LOSS_BIT).tobytes())
            ids = ids & ~LOSS_BIT
        self._shard.write(ids, lengths)
        if self._index is not None:
            self._index.write(lengths, origins)

    def finish(self) -> None:
        """Write the end of the files."""
        self._shard.finish()
        if self._index is not None:
            self._index.finish()


def write_sides(
    sides: Sequence[SideWriter],
    ids: Ids,
    lengths: Counts,
    validation: Flags | None,
    origins: Sequence[str] = (),
) -> None:
    """Write documents to their sides.

    Args:
        sides: The writer for training, and with a division the one for validation.
        ids: The ids of all documents, in sequence.
        lengths: The number of ids of each document.
        validation: Which of them are for validation; None for none.
        origins: As in `SideWriter.write`.
    """
    if len(sides) == 1 or validation is None or not validation.any():
        sides[0].write(ids, lengths, origins)
        return
    for side, chosen in zip(sides, (~validation, validation), strict=True):
        side.write(*select_documents(ids, lengths, chosen), compress(origins, chosen))


def csv_field(text: str) -> str:
    r"""Return a field of CSV.

    >>> csv_field("a.jsonl"), csv_field('a "b", c')
    ('a.jsonl', '"a ""b"", c"')
    """
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in ',"\r\n') else text
