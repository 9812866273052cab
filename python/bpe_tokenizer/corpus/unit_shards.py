"""The shards of a unit in work: files move into place, and then into the record of the unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from bpe_tokenizer.atomic import AtomicFile, write_errors
from bpe_tokenizer.corpus.checksums import checksum
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.manifest import Files, Shard, UnitRecord, skipped_line
from bpe_tokenizer.corpus.plan import Plan, Unit
from bpe_tokenizer.errors import WriteError
from bpe_tokenizer.readers import BadRow, Position

__all__ = ["FullShard", "UnitShards"]


class FullShard(NamedTuple):
    """A shard whose files are written, and not in place yet.

    Args:
        files: The files.
        sizes: The size that each must have.
        shard: What is in it; its files are listed when they are complete.
        skipped: The rows that were skipped since the shard before.
    """

    files: Sequence[AtomicFile]
    sizes: Sequence[int]
    shard: Shard
    skipped: Sequence[BadRow]

    def complete(self) -> FullShard:
        """Flush the files to the disk, check their sizes, and list them in the shard, with the SHA-256.

        Raises:
            WriteError: A file cannot be written, or has another size.
        """
        what = f"{self.shard.documents:,} documents with {self.shard.tokens:,} ids"
        sized = zip(self.files, self.sizes, strict=True)
        files = {file.path.name: _complete(file, size, what) for file, size in sized}
        return self._replace(shard=replace(self.shard, files=files))


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
        self.plan = plan
        self.unit = unit
        self.shards = list(record.shards)
        self._opened = len(self.shards)
        self._unplaced: list[AtomicFile] = []

    @property
    def end(self) -> Position:
        """The position in the inputs of the unit after the finished shards."""
        return self.shards[-1].end if self.shards else Position()

    def open(self, suffixes: Sequence[str]) -> list[AtomicFile]:
        """Return the files of the next shard, empty.

        Raises:
            WriteError: A file cannot be created.
        """
        stem = "" if self.plan.unit_bytes is None else f"{self.plan.stem(self.unit)}-"
        files: list[AtomicFile] = []
        for suffix in suffixes:
            files.append(AtomicFile(self.directory.path / f"tokens-{stem}{self._opened:05d}{suffix}"))
            self._unplaced.append(files[-1])
        self._opened += 1
        return files

    def drop(self, files: Iterable[AtomicFile]) -> None:
        """Remove files of a shard, which it does not need."""
        for file in files:
            file.abandon()
            self._unplaced.remove(file)

    def add(self, full: FullShard) -> Shard:
        """Move the files of a complete shard into place, and return it.

        Args:
            full: The shard after those that are in place.

        Raises:
            WriteError: A file cannot be moved, another run has taken over the directory, or another attempt
                has committed other bytes.
        """
        self.directory.check()
        for file in full.files:
            self._place(file, full.shard.files[file.path.name])
        self.shards.append(replace(full.shard, skipped=self._list(full.skipped)))
        return self.shards[-1]

    def abandon(self) -> None:
        """Remove the files that are not in place."""
        for file in self._unplaced:
            file.abandon()

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
        return UnitRecord(self.unit.number, self.directory.digest, tuple(self.shards), skipped, rest)

    def _list(self, rows: Sequence[BadRow]) -> Files:
        """Write a list of skipped rows."""
        if not rows:
            return {}
        plan, unit = self.plan, self.unit
        # The rows of row groups count from the beginning of their file.
        start = unit.start if unit.kind == "bytes" else None
        _, names = plan.inputs_of(unit)
        lines = [skipped_line(names[row.input], row, start) for row in rows]
        file = AtomicFile(self.directory.path / f"skipped-{plan.stem(unit)}-{len(self.shards):05d}.jsonl")
        self._unplaced.append(file)
        file.write(b"".join(lines))
        listed = _complete(file, sum(map(len, lines)), f"{len(lines):,} rows")
        self._place(file, listed)
        return {file.path.name: listed}

    def _place(self, file: AtomicFile, listed: tuple[int, str]) -> None:
        """Move a file into place, unless another attempt has committed the unit with other bytes."""
        record = self.directory.committed(self.unit.number) if self.directory.lock is None else None
        for shard in record.shards if record is not None else ():
            if shard.files.get(file.path.name, listed) != listed:
                raise WriteError(
                    f"{file.path}: another attempt of unit {self.unit.number} has committed other bytes; "
                    "run all parts with the same versions of the libraries",
                    filename=file.path,
                )
        file.replace()
        file.close()
        self._unplaced.remove(file)


def _complete(file: AtomicFile, size: int, what: str) -> tuple[int, str]:
    """Flush a file to the disk, check its size, and return the size and the SHA-256."""
    file.finish()
    with write_errors(file.path):
        found = file.temporary.stat().st_size
        if found != size:
            raise WriteError(
                f"{file.path}: {what} take {size:,} bytes, but {found:,} were written; another program has "
                "changed the file. Start the run again",
                filename=file.path,
            )
        return size, checksum(file.temporary)
