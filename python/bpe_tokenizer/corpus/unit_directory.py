"""The output directory of a run in parts: the plan, and the shards of each unit with their record.

Processes on many machines share the directory, and nothing else. A unit is committed by its record, which is
renamed into place after the unit's shards. Two attempts of a unit write the same bytes under temporary names
that no other attempt has, so either may finish first, and both may finish.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import (
    AtomicFile,
    flush_directory,
    is_temporary,
    make_directory,
    remove_abandoned,
    write_errors,
)
from bpe_tokenizer.corpus.checksums import checksum, is_intact
from bpe_tokenizer.corpus.input_list import run_changes
from bpe_tokenizer.corpus.manifest import MANIFEST, Shard, count_of, read_json
from bpe_tokenizer.corpus.plan import Plan, Unit
from bpe_tokenizer.corpus.shard_store import ShardFile
from bpe_tokenizer.corpus.skipped_rows import skipped_line
from bpe_tokenizer.errors import OptionError, WriteError
from bpe_tokenizer.readers import BadRow, Position

__all__ = ["PLAN", "UnitDirectory", "UnitRecord", "UnitShards", "refuse_parts"]

PLAN = "plan.json"
_VERSION = 1
_SKIPPED_NAME = re.compile(r"skipped-\d{5,}\.jsonl")


@dataclass(frozen=True)
class UnitRecord:
    """What a committed unit has.

    Args:
        unit: The number of the unit.
        plan: The SHA-256 of the plan.
        shards: The shards, in order.
        skipped: Number of bad rows that were skipped.
        skipped_file: The name, size and SHA-256 of the list of these rows; None without such rows.
    """

    unit: int
    plan: str
    shards: tuple[Shard, ...]
    skipped: int = 0
    skipped_file: tuple[str, int, str] | None = None

    @property
    def documents(self) -> int:
        """Number of documents."""
        return sum(shard.documents for shard in self.shards)

    @property
    def tokens(self) -> int:
        """Number of ids."""
        return sum(shard.tokens for shard in self.shards)

    def files(self) -> dict[str, tuple[int, str]]:
        """Return the size and the SHA-256 of all files, by name."""
        found = {name: each for shard in self.shards for name, each in shard.files.items()}
        if self.skipped_file is not None:
            found[self.skipped_file[0]] = self.skipped_file[1:]
        return found

    def to_bytes(self) -> bytes:
        """Return the contents of the record's file."""
        content = {
            "version": _VERSION,
            "unit": self.unit,
            "plan": self.plan,
            "documents": self.documents,
            "tokens": self.tokens,
            "skipped": self.skipped,
            "skipped_file": self.skipped_file,
            "shards": [shard.to_json() for shard in self.shards],
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    def damaged(self, path: Path, verify: bool) -> list[str]:
        """Return the names of the unit's files that are missing or changed.

        Args:
            path: The record's file.
            verify: Compare the hashes of all files too.

        Raises:
            CorpusError: A file cannot be read.
        """
        with write_errors(path):
            listed = path.stat().st_mtime_ns
        return [
            name
            for name, (size, sha256) in self.files().items()
            if not is_intact(path.parent / name, size, sha256, listed, verify)
        ]

    @classmethod
    def read(cls, path: Path, unit: int, plan: str) -> UnitRecord | None:
        """Read the record of a unit; None if there is none of this unit and plan."""
        if not path.exists():
            return None
        try:
            record = cls.from_json(read_json(path))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return record if (record.unit, record.plan) == (unit, plan) else None

    @classmethod
    def from_json(cls, value: Any) -> UnitRecord:
        """Return the record of a JSON value.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: It is not that of a record.
        """
        if value["version"] != _VERSION or not isinstance(value["plan"], str):
            raise ValueError
        skipped_file = value["skipped_file"]
        if skipped_file is not None:
            name, size, sha256 = skipped_file
            if not _SKIPPED_NAME.fullmatch(name) or not isinstance(sha256, str):
                raise ValueError
            skipped_file = (name, count_of(size), sha256)
        shards = tuple(map(Shard.from_json, value["shards"]))
        return cls(count_of(value["unit"]), value["plan"], shards, count_of(value["skipped"]), skipped_file)


class UnitDirectory:
    """The output directory of a run in parts.

    Args:
        directory: The directory; it is created if it does not exist.
        plan: The plan of this process. The first process writes it into the directory.

    Raises:
        CorpusError: The plan of the directory cannot be read.
        OptionError: The directory has another plan, or other files.
        WriteError: It cannot be written.
    """

    def __init__(self, directory: Path, plan: Plan) -> None:
        self.directory = directory
        self.plan = plan
        make_directory(directory)
        path = directory / PLAN
        data = plan.data
        with write_errors(directory):
            if not path.exists():
                _check_empty(directory)
                _write_plan(path, data)
        _check_plan(path, data)

    def record_path(self, unit: Unit) -> Path:
        """Return the file of a unit's record."""
        return self.directory / f"unit-{self.plan.stem(unit)}.json"

    def record(self, unit: Unit) -> UnitRecord | None:
        """Return the record of a unit, whatever has become of its shards; None if it is not committed."""
        return UnitRecord.read(self.record_path(unit), unit.number, self.plan.digest)

    def committed(self, unit: Unit, verify: bool = False) -> UnitRecord | None:
        """Return the record of a unit whose files are all as it lists them; None for another unit.

        Args:
            unit: The unit.
            verify: Compare the hashes of all files too.

        Raises:
            CorpusError: A file cannot be read.
        """
        record = self.record(unit)
        if record is None or record.damaged(self.record_path(unit), verify):
            return None
        return record

    def remove_abandoned(self) -> None:
        """Remove the temporary files of killed processes."""
        with write_errors(self.directory):
            remove_abandoned(self.directory)


class UnitShards:
    """The shards of a unit in work: a store of shards, until they are committed.

    Args:
        output: The output directory.
        unit: The unit.
    """

    def __init__(self, output: UnitDirectory, unit: Unit) -> None:
        self.directory = output.directory
        self.shards: list[Shard] = []
        self._output = output
        self._unit = unit
        self._skipped: AtomicFile | None = None
        self._skipped_rows = 0

    def names(self, index: int, suffixes: Sequence[str]) -> list[Path]:
        """Return the files of a shard."""
        stem = self._output.plan.stem(self._unit)
        return [self.directory / f"tokens-{stem}-{index:05d}{suffix}" for suffix in suffixes]

    def add(
        self,
        files: Sequence[ShardFile],
        sizes: Sequence[int],
        documents: int,
        tokens: int,
        end: Position,
        skipped: Sequence[BadRow],
    ) -> None:
        """Move the files of a shard into place. As `ShardStore.add`."""
        listed = {
            file.path.name: file.complete(size, documents, tokens)
            for file, size in zip(files, sizes, strict=True)
        }
        for file in files:
            self._move(file, listed[file.path.name])
        self.shards.append(Shard(listed, documents, tokens))
        self.skip(skipped)

    def skip(self, rows: Sequence[BadRow]) -> None:
        """List rows that were skipped."""
        if not rows:
            return
        plan = self._output.plan
        # The rows of row groups count from the beginning of their file.
        start = self._unit.start if self._unit.kind == "bytes" else None
        if self._skipped is None:
            self._skipped = AtomicFile(self.directory / f"skipped-{plan.stem(self._unit)}.jsonl")
        for row in rows:
            name = plan.names[self._unit.first + row.input]
            self._skipped.write(skipped_line(name, row, start))
        self._skipped_rows += len(rows)

    def commit(self) -> UnitRecord:
        """Write the record of the unit.

        Raises:
            WriteError: It cannot be written, or another attempt has committed other shards.
        """
        skipped_file: tuple[str, int, str] | None = None
        if self._skipped is not None:
            file = self._skipped
            file.finish()
            with write_errors(file.path):
                size, sha256 = file.temporary.stat().st_size, checksum(file.temporary)
            skipped_file = (file.path.name, size, sha256)
            self._move(file, (size, sha256))
        record = UnitRecord(
            self._unit.number,
            self._output.plan.digest,
            tuple(self.shards),
            self._skipped_rows,
            skipped_file,
        )
        path = self._output.record_path(self._unit)
        # The shards are on disk before the record.
        flush_directory(self.directory)
        with AtomicFile(path) as file:
            file.write(record.to_bytes())
        return record

    def abandon(self) -> None:
        """Remove the temporary files."""
        if self._skipped is not None:
            self._skipped.abandon()

    def _move(self, file: AtomicFile, listed: tuple[int, str]) -> None:
        """Move a file into place, unless another attempt has committed the unit with this file."""
        record = self._output.record(self._unit)
        theirs = record.files().get(file.path.name) if record is not None else None
        if theirs is not None and theirs != listed:
            raise WriteError(
                f"{file.path}: another attempt of unit {self._unit.number} has committed other bytes; run "
                "all parts with the same versions of the libraries",
                filename=file.path,
            )
        if theirs is not None and is_intact(file.path, *theirs, listed=0, verify=True):
            file.abandon()
        else:
            file.replace()
            file.close()


def refuse_parts(directory: Path) -> None:
    """Refuse a directory that holds a run in parts.

    Raises:
        OptionError: It does.
    """
    if (directory / PLAN).exists():
        raise OptionError(
            f"{directory} holds a run in parts ({PLAN}); write to another directory, or run its parts"
        )


def _check_empty(directory: Path) -> None:
    others = sorted(path.name for path in directory.iterdir() if not is_temporary(path))
    # Another process may have written the plan, and more, by now.
    if others and PLAN not in others:
        kind = "a run without parts" if MANIFEST in others else "other files"
        raise OptionError(
            f"{directory} holds {kind} ({', '.join(others[:5])}); write the parts to a new directory"
        )


def _write_plan(path: Path, data: bytes) -> None:
    file = AtomicFile(path)
    try:
        file.write(data)
        file.finish()
        file.create()
    except WriteError:
        if not path.exists():  # Another process may have been faster.
            raise
    finally:
        file.abandon()
    flush_directory(path.parent)


def _check_plan(path: Path, data: bytes) -> None:
    """Compare the plan of the directory with that of this process."""
    with write_errors(path):
        if path.read_bytes() == data:
            return
    found, own = read_json(path), json.loads(data)
    try:
        theirs, mine = (
            {**plan["settings"], "unit_bytes": plan["unit_bytes"], "inputs": plan["inputs"]}
            for plan in (found, own)
        )
        differing = run_changes(theirs, mine, theirs["inputs"], mine["inputs"]) or "version"
    except (ValueError, KeyError, TypeError, AttributeError):
        raise OptionError(
            f"{path} is not the plan of a run of this version; write to a new directory"
        ) from None
    raise OptionError(
        f"{path.parent} holds the parts of another run (it differs in: {differing[:200]}); write to another "
        "directory"
    )
