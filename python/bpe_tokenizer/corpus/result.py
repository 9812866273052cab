"""The result of tokenizing a corpus."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from bpe_tokenizer.corpus.joining import join_shards, write_training_name
from bpe_tokenizer.corpus.manifest import Manifest, Shard
from bpe_tokenizer.corpus.shards import TokenType
from bpe_tokenizer.errors import shorten

__all__ = ["PathLike", "TokenizedCorpus"]

PathLike: TypeAlias = str | os.PathLike[str]


class TokenizedCorpus(NamedTuple):
    """The result of `tokenize_corpus`.

    Args:
        files: The token files, in the order of the documents; with `val_fraction` those that the training
            program reads.
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
    def of(cls, directory: Path, manifest: Manifest, kept: int) -> TokenizedCorpus:
        """Return the result of a complete manifest. Joins its shards, if the format needs that.

        Raises:
            CorpusError: The documents cannot be divided, or a shard cannot be read.
            WriteError: A joined file cannot be written.
        """
        files = files_of(directory, manifest.shards)
        if manifest.settings.get("val_fraction") is not None:
            names = [path.name for path in files]
            files = join_shards(directory, names, manifest.settings["format"], manifest.settings["dtype"])
        elif manifest.settings["format"] == "nanogpt" and len(files) == 1:
            write_training_name(files[0])
        return cls(
            files,
            manifest.documents,
            manifest.tokens,
            manifest.skipped or 0,
            manifest.settings["dtype"],
            kept,
        )


def files_of(directory: Path, shards: Iterable[Shard]) -> list[Path]:
    """Return the files of shards, in order."""
    return [directory / name for shard in shards for name in shard.files]
