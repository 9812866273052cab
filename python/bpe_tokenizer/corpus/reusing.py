"""Takes over the units of an earlier run whose inputs are unchanged, into the directory of a new one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import AtomicFile, write_errors
from bpe_tokenizer.corpus.directory import CorpusDirectory, read_plan
from bpe_tokenizer.corpus.input_list import directory_before, run_changes
from bpe_tokenizer.corpus.joining import link
from bpe_tokenizer.corpus.manifest import Files
from bpe_tokenizer.corpus.mixture import Source, fractions
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
        theirs, mine = read_plan(path), json.loads(plan.data)
        if theirs["unit_bytes"] is None:
            raise OptionError(f"{path} holds a run without parts, which has no units to reuse")
        # The sources of a mixture count their files. `_described` compares the rest of them.
        settings, own = ({**each["settings"], "sources": None} for each in (theirs, mine))
        changes = run_changes(settings, own)
        if changes:
            raise OptionError(f"{path} has shards of other settings (they differ in: {changes})")
        inputs = theirs["inputs"]
        try:
            # Another file may have changed the directory that all inputs have in common.
            before = directory_before(inputs, mine["inputs"])
            before_mine = directory_before(mine["inputs"], inputs)
            described = _described(theirs, before)
            self._units = {_contents(described, unit): number for number, unit in enumerate(theirs["units"])}
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise CorpusError(f"{path} does not hold the plan of a run of this version") from None
        self._described = _described(mine, before_mine)
        # Lists of skipped rows, and indexes, name the inputs as the plan does.
        self._is_moved, self._has_index = bool(before or before_mine), plan.settings.index

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
        number = self._units.get(_contents(self._described, unit[1:]))
        if number is None or directory.resume(unit.number).is_complete:
            return
        record = self._source.resume(number, verify)
        if not record.is_complete or (self._is_moved and (record.lists or self._has_index)):
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


def _described(plan: Mapping[str, Any], before: str) -> list[list[Any]]:
    """Return what shards depend on of each input: with the name of its source, and the part that is taken."""
    sources = [Source(*each) for each in plan["settings"].get("sources", ())]
    names = (source.name for source in sources for _ in range(source.inputs))
    origins = zip(names, fractions(sources), strict=False) if sources else repeat(())
    return [
        [before + each["name"], each["size"], each["modified"], *origin]
        for each, origin in zip(plan["inputs"], origins, strict=False)
    ]


def _contents(described: Sequence[list[Any]], unit: Sequence[Any]) -> str:
    """Return all that the shards of a unit depend on, but the settings."""
    first, count, *part = unit
    return json.dumps([part, described[first : first + count]])


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
