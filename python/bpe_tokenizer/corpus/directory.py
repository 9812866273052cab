"""The output directory of a run: the plan, the shards, the record of each unit, and at the end the manifest.

A run without parts has one unit and the lock of the directory; nothing else differs. A record lists the
shards that are finished, and is replaced after each of them. What it does not list, a later attempt writes
again, with the same bytes and under temporary names that no other attempt has. So attempts of parts on many
machines share the directory and nothing else, and any of them may finish first.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import (
    AtomicFile,
    flush_directory,
    is_temporary,
    make_directory,
    temporary_place,
    write_atomically,
    write_errors,
)
from bpe_tokenizer.corpus.checksums import checksum
from bpe_tokenizer.corpus.input_list import run_changes
from bpe_tokenizer.corpus.joining import joined_files, training_files, unlink_training_name
from bpe_tokenizer.corpus.manifest import MANIFEST, SKIPPED, UnitRecord, count_of, manifest_of, read_json
from bpe_tokenizer.corpus.plan import Plan, unit_stem
from bpe_tokenizer.corpus.remote_path import RemotePath
from bpe_tokenizer.corpus.result import TokenizedCorpus
from bpe_tokenizer.corpus.stages import in_threads
from bpe_tokenizer.errors import CorpusError, OptionError, WriteError
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock

__all__ = ["CorpusDirectory", "read_plan"]

_PLAN = "plan.json"
_PLAN_KEYS = {"units": list, "inputs": list, "settings": dict}
_SHOWN = 8


class CorpusDirectory:
    """The output directory of a run.

    Args:
        path: The directory, which has a plan.
        digest: The SHA-256 of the plan.
        units: The number of units.
        lock: The lock of a run without parts.
    """

    def __init__(self, path: Path, digest: str, units: int, lock: DirectoryLock | None = None) -> None:
        self.path = path
        self.digest = digest
        self.units = units
        self.lock = lock
        self._plan_version = ""

    @classmethod
    @contextmanager
    def open(cls, path: Path, plan: Plan, overwrite: bool = False) -> Iterator[CorpusDirectory]:
        """Open a directory for a new run, or to go on with a run that has the same plan.

        As a context, it gives up its lock at the end.

        Args:
            path: The directory; it is created if it does not exist.
            plan: The plan of this process. The first process writes it into the directory.
            overwrite: Remove the files of an earlier run without parts.

        Raises:
            CorpusError: The plan of the directory cannot be read.
            OptionError: The directory has another plan, or other files.
            WriteError: Another run without parts writes into the directory, or it cannot be written.
        """
        make_directory(path)
        is_local = isinstance(path, Path)
        if overwrite and not is_local:
            raise OptionError(
                f"overwrite is not possible in a store, which has no locks: remove {path} before"
            )
        lock = DirectoryLock(path, RUN_LOCK) if plan.unit_bytes is None and is_local else None
        with lock or nullcontext():
            with write_errors(path):
                if lock is not None:
                    _remove_earlier(path, overwrite)
                if not (path / _PLAN).exists():
                    _check_empty(path)
                    _write_plan(path / _PLAN, plan.data)
                if (path / _PLAN).read_bytes() != plan.data:
                    raise OptionError(_differing(path, plan))
            yield cls(path, plan.digest, len(plan.units), lock)

    @classmethod
    def of_parts(cls, path: Path) -> CorpusDirectory:
        """Return the directory of a run, to finish it.

        Raises:
            CorpusError: The plan cannot be read.
            OptionError: The directory has none.
        """
        # `os.path.exists` is False for a name that no file can have.
        exists = os.path.exists if isinstance(path, Path) else RemotePath.exists
        if not exists(path / _PLAN):
            raise OptionError(
                f"{path} has no {_PLAN}, which a run in parts writes (tokenize-corpus --part I --of N)"
            )
        units = len(read_plan(path)["units"])
        if not units:
            raise OptionError(f"{path} holds rows of an engine, whose own run writes {MANIFEST} at its end")
        return cls(path, checksum(path / _PLAN), units)

    @property
    def scratch(self) -> Path:
        """A directory for temporary files: this one, or for a store one of this machine."""
        return temporary_place(self.path / _PLAN).parent

    def check(self) -> None:
        """Check that no other run has taken over the directory.

        Raises:
            WriteError: One has.
        """
        if self.lock is not None:
            self.lock.check()
        elif isinstance(self.path, RemotePath):
            plan = self.path / _PLAN
            with write_errors(self.path):
                version = plan.version()
                # Another part may have written the same plan.
                if version != self._plan_version and checksum(plan) != self.digest:
                    raise WriteError(
                        f"{self.path}: another run has replaced {_PLAN}; this one writes nothing more. "
                        "Start it again in another directory"
                    )
                self._plan_version = version

    def committed(self, unit: int) -> UnitRecord | None:
        """Return the record of a complete unit, whatever has become of its shards; None for another unit."""
        record = UnitRecord.read(self._record_path(unit), unit, self.digest)
        return record if record is not None and record.is_complete else None

    def resume(self, unit: int, verify: bool = False) -> UnitRecord:
        """Return the record of a unit with the shards that are as it lists them.

        Args:
            unit: The number of the unit.
            verify: Compare the hashes of all files too, not only sizes and times.

        Raises:
            CorpusError: A file cannot be read.
        """
        for path in (self._record_path(unit), self._record_path(unit, ".unfinished")):
            record = UnitRecord.read(path, unit, self.digest)
            if record is not None:
                return record.intact(path, verify)
        return UnitRecord(unit, self.digest)

    def save(self, record: UnitRecord) -> None:
        """Write the record of a unit. That of a complete unit stays until the unit is complete again.

        Raises:
            WriteError: It cannot be written, or another run has taken over the directory.
        """
        self.check()
        path = self._record_path(record.unit)
        if not record.is_complete:
            if path.exists():
                return
            path = self._record_path(record.unit, ".unfinished")
        # The shards are on disk before the record.
        flush_directory(self.path)
        with AtomicFile(path) as file:
            file.write(record.to_bytes())

    def records(self, of: int | None = None, verify: bool = False) -> list[UnitRecord]:
        """Return the records of all units.

        Args:
            of: The number of parts, to name the parts that are missing.
            verify: As in `resume`.

        Raises:
            CorpusError: A unit is missing or damaged, or a file cannot be read.
        """
        records: list[UnitRecord] = []
        missing: list[int] = []
        damaged: list[int] = []
        first = ""

        def look(unit: int) -> tuple[UnitRecord | None, list[str]]:
            record = self.committed(unit)
            return record, [] if record is None else record.damaged(self._record_path(unit), verify)

        for unit, (record, broken) in enumerate(in_threads(look, range(self.units))):
            if record is None:
                missing.append(unit)
                continue
            records.append(record)
            if broken:
                first = first or broken[0]
                damaged.append(unit)
        if numbers := missing or damaged:
            problem = "missing" if missing else f"damaged ({first} is not as it was written)"
            which = "unit u belongs to part u % N of N"
            if of is not None:
                parts = sorted({number % of for number in numbers})
                which = f"these are of the parts {_shown(parts)} of {of}"
            raise CorpusError(
                f"{self.path}: {len(numbers)} of {self.units} units are {problem}: {_shown(numbers)}; run "
                f"their parts again ({which})"
            )
        return records

    def finish(self, records: Sequence[UnitRecord], kept: int) -> TokenizedCorpus:
        """Write the manifest and the other files of a run whose units are complete.

        Any process may do so, also again: the bytes are the same.

        Args:
            records: The records of all units.
            kept: The number of shards that an earlier run had finished.

        Raises:
            CorpusError: The corpus has no text, or its documents cannot be divided.
            WriteError: A file cannot be written, or another run has taken over the directory.
        """
        self.check()
        plan = read_plan(self.path)
        if not any(record.tokens for record in records):
            raise CorpusError(
                "nothing was written: the corpus is empty, or all its documents were skipped or left out"
            )
        skipped = self.path / SKIPPED
        names = [name for record in records for name in record.lists]
        with write_errors(skipped):
            if names:
                with AtomicFile(skipped) as file:
                    for name in names:
                        with (self.path / name).open("rb") as lines:
                            shutil.copyfileobj(lines, file.stream)
            else:
                skipped.unlink(missing_ok=True)
        write_atomically({self.path / MANIFEST: manifest_of(plan, records)})
        for path in self.path.glob("unit-*.unfinished.json"):
            path.unlink(missing_ok=True)
        made = TokenizedCorpus.of(self.path, records, plan["settings"]["dtype"], kept)
        return made._replace(files=training_files(made.files, plan["settings"]))

    def _record_path(self, unit: int, kind: str = "") -> Path:
        return self.path / f"unit-{unit_stem(unit, self.units)}{kind}.json"


def read_plan(directory: Path) -> Any:
    """Return the plan of a directory as JSON values.

    Raises:
        CorpusError: It cannot be read, or is not one.
    """
    path = directory / _PLAN
    plan = read_json(path)
    with suppress(KeyError, TypeError, ValueError):
        count_of(plan["unit_bytes"] or 0)
        if all(isinstance(plan[key], kind) for key, kind in _PLAN_KEYS.items()):
            return plan
    raise CorpusError(f"{path} is not the plan of a run of this version; write to a new directory")


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


def _differing(path: Path, plan: Plan) -> str:
    """Return the message for a directory with another plan."""
    found = read_json(path / _PLAN), json.loads(plan.data)
    try:
        theirs, mine = (
            {**each["settings"], "unit_bytes": each["unit_bytes"], "inputs": each["inputs"]} for each in found
        )
        changes = run_changes(theirs, mine)[:200] or "version"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{path / _PLAN} is not the plan of a run of this version; write to a new directory"
    is_whole = plan.unit_bytes is None
    if is_whole != (theirs["unit_bytes"] is None):
        kind = "in parts" if is_whole else "without parts"
        return f"{path} holds a run {kind} ({_PLAN}); write to another directory"
    advice = ", or overwrite this one" if is_whole and isinstance(path, Path) else ""
    if not is_whole and changes.startswith("inputs"):
        advice = ", with reuse (--reuse) of this one for the inputs that are the same"
    return (
        f"{path} holds the {'shards' if is_whole else 'parts'} of another run (it differs in: {changes}); "
        f"write to another directory{advice}"
    )


def _remove_earlier(path: Path, overwrite: bool) -> None:
    """Remove the files of an earlier run without parts, if it shall be overwritten or has no shard."""
    if not (path / _PLAN).exists():
        return
    plan = read_plan(path)
    if plan["unit_bytes"] is not None or (not overwrite and any(path.glob("tokens-[0-9]*"))):
        return
    # The plan is removed last: while it exists, the other files belong to its run.
    for pattern in ("unit-[0-9]*.json", MANIFEST, SKIPPED, "skipped-[0-9]*.jsonl", "tokens-[0-9]*"):
        for file in path.glob(pattern):
            unlink_training_name(file)
            file.unlink()
    for name in joined_files(plan["settings"]):
        (path / name).unlink(missing_ok=True)
    (path / _PLAN).unlink(missing_ok=True)


def _check_empty(path: Path) -> None:
    others = sorted(each.name for each in path.iterdir() if not is_temporary(each))
    if others and _PLAN not in others:  # Another process may have written the plan, and more, by now.
        raise OptionError(
            f"{path} holds other files ({', '.join(others[:5])}), which readers might take for shards; write "
            "to a new directory"
        )


def _shown(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return shown if len(numbers) <= _SHOWN else f"{shown}, ..."
