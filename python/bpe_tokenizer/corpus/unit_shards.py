"""The shards of a unit in work: files move into place, and then into the record of the unit."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bpe_tokenizer.atomic import AtomicFile, write_errors
from bpe_tokenizer.corpus.checksums import HashingFile
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.manifest import Files, Shard, UnitRecord
from bpe_tokenizer.corpus.plan import Plan, Unit
from bpe_tokenizer.corpus.skipped_rows import skipped_line
from bpe_tokenizer.errors import WriteError
from bpe_tokenizer.readers import BadRow, Position

__all__ = ["ShardFile", "UnitShards"]


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


class UnitShards:
    """The shards of a unit in work.

    Args:
        directory: The output directory.
        plan: The plan.
        unit: The unit.
        record: What is finished.
    """

    def __init__(self, directory: CorpusDirectory, plan: Plan, unit: Unit, record: UnitRecord) -> None:
        self.directory = directory
        self.shards = list(record.shards)
        self._plan = plan
        self._unit = unit

    @property
    def end(self) -> Position:
        """The position in the inputs of the unit after the finished shards."""
        return self.shards[-1].end if self.shards else Position()

    def names(self, suffixes: Sequence[str]) -> list[Path]:
        """Return the files of the next shard."""
        stem = "" if self._plan.unit_bytes is None else f"{self._plan.stem(self._unit)}-"
        return [self.directory.path / f"tokens-{stem}{len(self.shards):05d}{suffix}" for suffix in suffixes]

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

        Raises:
            WriteError: The shard cannot be written or its size is wrong, another run has taken over the
                directory, or another attempt has committed other bytes.
        """
        self.directory.check()
        listed = {
            file.path.name: file.complete(size, documents, tokens)
            for file, size in zip(files, sizes, strict=True)
        }
        # Again, as flushing takes time.
        self.directory.check()
        for file in files:
            self._place(file, listed[file.path.name])
        self.shards.append(Shard(listed, documents, tokens, end, self._list(skipped)))

    def save(self) -> None:
        """Write down which shards are finished."""
        self.directory.save(self._record(None, {}))

    def commit(self, skipped: Sequence[BadRow]) -> UnitRecord:
        """Write the record of the unit.

        Args:
            skipped: The rows that were skipped after the last shard.

        Raises:
            WriteError: As in `add`.
        """
        record = self._record(self.end.skipped + len(skipped), self._list(skipped))
        self.directory.save(record)
        return record

    def _record(self, skipped: int | None, rest: Files) -> UnitRecord:
        return UnitRecord(self._unit.number, self.directory.digest, tuple(self.shards), skipped, rest)

    def _list(self, rows: Sequence[BadRow]) -> Files:
        """Write a list of skipped rows."""
        if not rows:
            return {}
        plan, unit = self._plan, self._unit
        # The rows of row groups count from the beginning of their file.
        start = unit.start if unit.kind == "bytes" else None
        lines = [skipped_line(plan.names[unit.first + row.input], row, start) for row in rows]
        with ExitStack() as stack:
            path = self.directory.path / f"skipped-{plan.stem(unit)}-{len(self.shards):05d}.jsonl"
            file = ShardFile(path)
            stack.callback(file.abandon)
            with write_errors(path):
                file.hashing.write(b"".join(lines))
            listed = file.complete(sum(map(len, lines)), 0, 0)
            self._place(file, listed)
        return {path.name: listed}

    def _place(self, file: ShardFile, listed: tuple[int, str]) -> None:
        """Move a file into place, unless another attempt has committed the unit with other bytes."""
        record = self.directory.committed(self._unit.number) if self.directory.lock is None else None
        for shard in record.shards if record is not None else ():
            if shard.files.get(file.path.name, listed) != listed:
                raise WriteError(
                    f"{file.path}: another attempt of unit {self._unit.number} has committed other bytes; "
                    "run all parts with the same versions of the libraries",
                    filename=file.path,
                )
        file.replace()
        file.close()
