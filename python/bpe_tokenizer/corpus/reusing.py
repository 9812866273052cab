"""Takes over the units of an earlier run whose inputs are unchanged, into the directory of a new one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import AtomicFile, write_errors
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.input_list import directory_before, run_changes
from bpe_tokenizer.corpus.joining import link
from bpe_tokenizer.corpus.manifest import Files
from bpe_tokenizer.corpus.plan import Plan, Unit, unit_stem
from bpe_tokenizer.corpus.remote_path import RemotePath
from bpe_tokenizer.corpus.stages import in_threads
from bpe_tokenizer.errors import CorpusError, OptionError

__all__ = ["EarlierRun"]


class EarlierRun:
    """The units of an earlier run, for a new run with the same settings.

    Args:
        path: The directory of the earlier run, which stays as it is.
        plan: The plan of the new run.

    Raises:
        CorpusError: The earlier plan cannot be read.
        OptionError: The earlier run has no parts, or other settings.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self._source = CorpusDirectory.of_parts(path)
        self._plan = plan
        self._mine = json.loads(plan.data)
        theirs = self._source.plan()
        if theirs["unit_bytes"] is None:
            raise OptionError(f"{path} holds a run without parts, which has no units to reuse")
        changes = run_changes(theirs["settings"], self._mine["settings"], None, None)
        if changes:
            raise OptionError(f"{path} has shards of other settings (they differ in: {changes})")
        mine, inputs = self._mine["inputs"], theirs["inputs"]
        try:
            # Another file may have changed the directory that all inputs have in common.
            before, self._before = directory_before(inputs, mine), directory_before(mine, inputs)
            self._units = {
                _contents(inputs, unit, before): number for number, unit in enumerate(theirs["units"])
            }
        except (KeyError, TypeError, ValueError, AttributeError):
            raise CorpusError(f"{path} does not hold the plan of a run of this version") from None
        self._is_moved = bool(before or self._before)

    def take(self, directory: CorpusDirectory, units: Sequence[Unit], verify: bool) -> None:
        """Commit the units that the earlier run has committed with the same inputs.

        Their files are hard links, or copies, with the names of the new run. A unit is committed when they
        are in place, so a killed run goes on.

        Args:
            directory: The directory of the new run.
            units: Units of its plan.
            verify: Compare the hashes of the earlier files, not only their sizes and times.

        Raises:
            CorpusError: A file cannot be read.
            WriteError: A file cannot be written.
        """
        for _ in in_threads(lambda unit: self._take(directory, unit, verify), units):
            pass

    def _take(self, directory: CorpusDirectory, unit: Unit, verify: bool) -> None:
        number = self._units.get(_contents(self._mine["inputs"], unit[1:], self._before))
        if number is None or directory.resume(unit.number).is_complete:
            return
        record = self._source.resume(number, verify)
        # Lists and indexes name the inputs as the plan does.
        has_names = bool(record.lists) or self._mine["settings"].get("index")
        if not record.is_complete or (self._is_moved and has_names):
            return
        old, new = f"-{unit_stem(number, self._source.units)}-", f"-{self._plan.stem(unit)}-"

        def renamed(files: Files) -> Files:
            made = {name.replace(old, new, 1): listed for name, listed in files.items()}
            for name, new_name in zip(files, made, strict=True):
                _copy(self._source.path / name, directory.path / new_name)
            return made

        shards = [
            replace(each, files=renamed(each.files), skipped=renamed(each.skipped)) for each in record.shards
        ]
        made = replace(record, unit=unit.number, plan=directory.digest, shards=tuple(shards), is_reused=True)
        directory.save(replace(made, rest=renamed(record.rest)))


def _contents(inputs: Sequence[Mapping[str, Any]], unit: Sequence[Any], before: str) -> str:
    """Return all that the shards of a unit depend on, but the settings."""
    first, count, *part = unit
    chosen = inputs[first : first + count]
    return json.dumps([part, [(before + each["name"], each["size"], each["modified"]) for each in chosen]])


def _copy(source: Path, target: Path) -> None:
    """Link a file, or copy it."""
    if link(source, target):
        return
    with write_errors(target):
        if isinstance(source, RemotePath) and source.system == getattr(target, "system", None):
            source.copy(target)
            return
        with source.open("rb") as stored, AtomicFile(target) as file:
            shutil.copyfileobj(stored, file.stream, 8 << 20)
