"""The shards of a run: the record of each unit, and the manifest, which lists all of them at the end."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import write_errors
from bpe_tokenizer.corpus.checksums import is_intact, read_errors
from bpe_tokenizer.corpus.input_list import inputs_digest
from bpe_tokenizer.readers import BadRow, Position

__all__ = [
    "MANIFEST",
    "SKIPPED",
    "Files",
    "Shard",
    "UnitRecord",
    "count_of",
    "manifest_of",
    "read_json",
    "skipped_line",
    "totals",
]

MANIFEST, SKIPPED = "manifest.json", "skipped.jsonl"
_VERSION = 1
_NAME = re.compile(r"(tokens|skipped)-\d{5,}[\w.-]*")
# The manifest of a run without parts lists at most this many inputs.
_MAX_LISTED = 100_000

# The size and the SHA-256 of files, by name.
Files = Mapping[str, tuple[int, str]]


@dataclass(frozen=True)
class Shard:
    """A finished shard.

    Args:
        files: The token files.
        documents: Number of documents.
        tokens: Number of ids.
        end: The position of its last document in the inputs of the unit.
        skipped: The list of the rows that were skipped since the shard before; empty without such rows.
        sources: The documents and ids of each source of a mixture.
    """

    files: Files
    documents: int
    tokens: int
    end: Position
    skipped: Files = field(default_factory=dict)
    sources: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the shard as a JSON value."""
        return {
            "files": _listed(self.files),
            "documents": self.documents,
            "tokens": self.tokens,
            "end": self.end._asdict(),
            "skipped": _listed(self.skipped),
            **({"sources": _listed(self.sources)} if self.sources else {}),
        }

    @classmethod
    def from_json(cls, value: Any) -> Shard:
        """Return the shard of a JSON value.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: It is not that of a shard.
        """
        files, skipped = _files(value["files"]), _files(value["skipped"])
        end = Position(*(count_of(value["end"][name]) for name in Position._fields))
        counts = {
            name: (count_of(each[0]), count_of(each[1])) for name, each in value.get("sources", {}).items()
        }
        return cls(files, count_of(value["documents"]), count_of(value["tokens"]), end, skipped, counts)


@dataclass(frozen=True)
class UnitRecord:
    """What a unit has: the shards that are finished.

    Args:
        unit: The number of the unit.
        plan: The SHA-256 of the plan.
        shards: The finished shards, in order.
        skipped: Number of bad rows that were skipped; None until the unit is complete.
        rest: The list of the rows that were skipped after the last shard; empty without such rows.
        is_reused: Whether the unit was taken over from an earlier run.
    """

    unit: int
    plan: str
    shards: tuple[Shard, ...] = ()
    skipped: int | None = None
    rest: Files = field(default_factory=dict)
    is_reused: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all of the unit is in the shards."""
        return self.skipped is not None

    @property
    def documents(self) -> int:
        """Number of documents."""
        return sum(shard.documents for shard in self.shards)

    @property
    def tokens(self) -> int:
        """Number of ids."""
        return sum(shard.tokens for shard in self.shards)

    @property
    def lists(self) -> list[str]:
        """The names of the lists of skipped rows, in order."""
        return list(chain.from_iterable([*(shard.skipped for shard in self.shards), self.rest]))

    def to_bytes(self) -> bytes:
        """Return the contents of the record's file."""
        content = {
            "version": _VERSION,
            "unit": self.unit,
            "plan": self.plan,
            "documents": self.documents,
            "tokens": self.tokens,
            "skipped": self.skipped,
            "shards": [shard.to_json() for shard in self.shards],
            "rest": _listed(self.rest),
            **({"reused": True} if self.is_reused else {}),
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    @classmethod
    def read(cls, path: Path, unit: int, plan: str) -> UnitRecord | None:
        """Read the record of a unit; None if there is none of this unit and plan."""
        if not path.exists():
            return None
        value = read_json(path)
        try:
            if [value[key] for key in ("version", "unit", "plan")] != [_VERSION, unit, plan]:
                return None
            skipped = None if value["skipped"] is None else count_of(value["skipped"])
            shards = tuple(map(Shard.from_json, value["shards"]))
            rest, is_reused = _files(value["rest"]), value.get("reused") is True
            return cls(unit, plan, shards, skipped, rest, is_reused)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def damaged(self, path: Path, verify: bool) -> list[str]:
        """Return the names of the unit's files that are missing or changed.

        Args:
            path: The record's file.
            verify: Compare the hashes of all files too, not only sizes and times.

        Raises:
            CorpusError: A file cannot be read.
        """
        # A store tells the seconds only, and its objects change as a whole: there, the sizes suffice.
        listed = sys.maxsize
        if isinstance(path, Path):
            with write_errors(path):
                listed = path.stat().st_mtime_ns
        every = chain(*((shard.files, shard.skipped) for shard in self.shards), [self.rest])
        return [
            name
            for files in every
            for name, (size, sha256) in files.items()
            if not is_intact(path.parent / name, size, sha256, listed, verify)
        ]

    def intact(self, path: Path, verify: bool) -> UnitRecord:
        """Return the record without the first shard that is missing or changed, and all later ones.

        Arguments and errors: `damaged`.
        """
        broken = set(self.damaged(path, verify))
        if not broken:
            return self
        kept = takewhile(lambda shard: broken.isdisjoint({*shard.files, *shard.skipped}), self.shards)
        return UnitRecord(self.unit, self.plan, tuple(kept))


def skipped_line(name: str, row: BadRow, start: int | None = None) -> bytes:
    r"""Return the line of a row.

    Args:
        name: The name of the file.
        row: The row.
        start: The byte from which the rows of a part of the file are counted, if it is a part.

    >>> skipped_line("a.jsonl", BadRow(0, 3, "is null"))
    b'{"file": "a.jsonl", "row": 3, "problem": "is null"}\n'
    """
    value: dict[str, object] = {"file": name, "row": row.row, "problem": row.problem}
    if start is not None:
        value["start"] = start
    return (json.dumps(value) + "\n").encode()


def totals(records: Sequence[UnitRecord]) -> dict[str, int]:
    """Return the numbers of documents, ids and skipped rows of units."""
    return {
        "documents": sum(record.documents for record in records),
        "tokens": sum(record.tokens for record in records),
        "skipped": sum(record.skipped or 0 for record in records),
    }


def manifest_of(plan: Mapping[str, Any], records: Sequence[UnitRecord]) -> bytes:
    """Return the contents of the manifest.

    Args:
        plan: The plan as JSON values.
        records: The records of all units, in order.
    """
    in_parts, inputs = plan["unit_bytes"] is not None, plan["inputs"]
    shards = [shard.to_json() for record in records for shard in record.shards]
    for shard in shards:
        del shard["skipped"]
        if in_parts:
            del shard["end"]
    reused = [record.unit for record in records if record.is_reused]
    content = {
        "version": _VERSION,
        "complete": True,
        **totals(records),
        **({"sources": _of_sources(plan, records)} if plan["settings"].get("sources") else {}),
        "settings": {
            **plan["settings"],
            **({"unit_bytes": plan["unit_bytes"]} if in_parts else {}),
            "inputs": inputs_digest(inputs),
        },
        **({} if in_parts or len(inputs) > _MAX_LISTED else {"inputs": inputs}),
        **({"reused": reused} if reused else {}),
        "shards": shards,
    }
    return (json.dumps(content, indent=1) + "\n").encode()


def _of_sources(plan: Mapping[str, Any], records: Sequence[UnitRecord]) -> dict[str, dict[str, int]]:
    found = {name: {"documents": 0, "tokens": 0} for name, *_ in plan["settings"]["sources"]}
    for shard in (shard for record in records for shard in record.shards):
        for name, (documents, tokens) in shard.sources.items():
            found[name]["documents"] += documents
            found[name]["tokens"] += tokens
    return found


def read_json(path: Path) -> Any:
    """Return the JSON value of a file of the output directory; None if the file holds none.

    Raises:
        CorpusError: The file cannot be read.
    """
    with read_errors(path):
        data = path.read_bytes()
    with suppress(ValueError, RecursionError):
        return json.loads(data)
    return None


def count_of(value: object) -> int:
    """Return a number of a JSON value.

    Raises:
        ValueError: It is not an integer from 0 on.
    """
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _listed(values: Mapping[str, tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: list(each) for name, each in values.items()}


def _files(value: Any) -> Files:
    files: dict[str, tuple[int, str]] = {}
    for name, (size, sha256) in value.items():
        if not _NAME.fullmatch(name) or not isinstance(sha256, str):
            raise ValueError
        files[name] = (count_of(size), sha256)
    return files
