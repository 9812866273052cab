"""Where finished shards go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bpe_tokenizer.atomic import AtomicFile, write_errors
from bpe_tokenizer.corpus.checksums import HashingFile
from bpe_tokenizer.corpus.manifest import Shard
from bpe_tokenizer.errors import WriteError
from bpe_tokenizer.readers import BadRow, Position

__all__ = ["ShardFile", "ShardStore"]


class ShardFile(AtomicFile):
    """A file of a shard, which is hashed while it is written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.hashing = HashingFile(self.stream)

    def complete(self, size: int, documents: int, tokens: int) -> tuple[int, str]:
        """Flush the file to the disk, check its size, and return the size and the SHA-256.

        Args:
            size: The size that the file must have.
            documents: Number of documents of the shard, for messages.
            tokens: Number of ids of the shard, for messages.

        Raises:
            WriteError: It cannot be written, or has another size.
        """
        self.finish()
        with write_errors(self.path):
            found = self.temporary.stat().st_size
            if found != size:
                raise WriteError(
                    f"{self.path}: {documents:,} documents with {tokens:,} ids take {size:,} bytes, but "
                    f"{found:,} were written; another program has changed the file. Start the run again",
                    filename=self.path,
                )
            return size, self.hashing.checksum(self.temporary)


class ShardStore(Protocol):
    """The finished shards of a run or of a unit."""

    @property
    def directory(self) -> Path:
        """The directory of the shards."""

    @property
    def shards(self) -> list[Shard]:
        """The finished shards, in order."""

    def names(self, index: int, suffixes: Sequence[str]) -> list[Path]:
        """Return the files of a shard."""

    def add(
        self,
        files: Sequence[ShardFile],
        sizes: Sequence[int],
        documents: int,
        tokens: int,
        end: Position,
        skipped: Sequence[BadRow],
    ) -> None:
        """Move the files of a shard into place.

        Args:
            files: The files, in the order of `names`.
            sizes: The size that each must have.
            documents: Number of documents.
            tokens: Number of ids.
            end: The position of its last document in the inputs.
            skipped: The rows that were skipped since the shard before.
        """
