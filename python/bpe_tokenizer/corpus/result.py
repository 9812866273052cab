"""The result of tokenizing a corpus."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bpe_tokenizer.corpus.manifest import UnitRecord, totals
from bpe_tokenizer.corpus.shards import TokenType
from bpe_tokenizer.corpus.sides import INDEX_SUFFIX
from bpe_tokenizer.errors import shorten

__all__ = ["PathLike", "TokenizedCorpus"]

PathLike: TypeAlias = str | os.PathLike[str]


class TokenizedCorpus(NamedTuple):
    """The result of `tokenize_corpus`.

    Args:
        files: The token files, in the order of the documents; with `val_fraction` those that the training
            program reads. Of an output at a URL, `str` gives theirs.
        documents: Number of documents.
        tokens: Number of ids, with those of EOS.
        skipped: Number of bad rows that were skipped.
        dtype: The type of an id in the files.
        kept: Number of shards that an earlier run had finished.
    """

    files: list[Path]
    documents: int
    tokens: int
    skipped: int
    dtype: TokenType
    kept: int

    def __repr__(self) -> str:
        files = shorten([str(file) for file in self.files])
        return (
            f"{type(self).__name__}(files={files}, documents={self.documents}, tokens={self.tokens}, "
            f"skipped={self.skipped}, dtype={self.dtype!r}, kept={self.kept})"
        )

    @classmethod
    def of(
        cls, directory: Path, records: Sequence[UnitRecord], dtype: TokenType, kept: int
    ) -> TokenizedCorpus:
        """Return the result of units.

        Args:
            directory: The output directory.
            records: The records of the units, in order.
            dtype: The type of an id.
            kept: Number of shards that an earlier run had finished.
        """
        names = chain.from_iterable(shard.files for record in records for shard in record.shards)
        files = [directory / name for name in names if not name.endswith(INDEX_SUFFIX)]
        return cls(files, **totals(records), dtype=dtype, kept=kept)
