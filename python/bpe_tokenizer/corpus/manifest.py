"""The shards of a run, and the file that lists them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.readers import Position

__all__ = ["MANIFEST", "SHARD_NAME", "Manifest", "Shard", "count_of", "read_json"]

MANIFEST = "manifest.json"
_VERSION = 1
# The files of shards: of a run, or of a unit of it.
SHARD_NAME = re.compile(
    r"tokens-(\d{5,}-)?\d{5,}(\.(train|val))?(\.(cu_seqlens|lengths))?\.(bin|idx|npy|parquet)"
)


@dataclass(frozen=True)
class Shard:
    """A finished shard.

    Args:
        files: The size and the SHA-256 of each file, by name.
        documents: Number of documents.
        tokens: Number of ids.
        end: The position of its last document in the inputs; None in a unit.
    """

    files: Mapping[str, tuple[int, str]]
    documents: int
    tokens: int
    end: Position | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the shard as a JSON value."""
        value: dict[str, Any] = {
            "files": {name: list(each) for name, each in self.files.items()},
            "documents": self.documents,
            "tokens": self.tokens,
        }
        return value if self.end is None else {**value, "end": self.end._asdict()}

    @classmethod
    def from_json(cls, value: Any) -> Shard:
        """Return the shard of a JSON value.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: It is not that of a shard.
        """
        files: dict[str, tuple[int, str]] = {}
        for name, (size, sha256) in value["files"].items():
            # These files may be removed, so a name must be that of a shard.
            if not SHARD_NAME.fullmatch(name) or not isinstance(sha256, str):
                raise ValueError
            files[name] = (count_of(size), sha256)
        end = value.get("end")
        position = None if end is None else Position(*(count_of(end[name]) for name in Position._fields))
        return cls(files, count_of(value["documents"]), count_of(value["tokens"]), position)


@dataclass
class Manifest:
    """All shards of a run.

    Args:
        settings: All settings that the contents of the shards depend on, as JSON values.
        shards: The finished shards, in order.
        skipped: Number of bad rows skipped in the run; None until the run is complete.
        inputs: The inputs, as `listed_inputs` returns them; None for very many, and in manifests of earlier
            versions. The digest in `settings` decides whether they are the same.
    """

    settings: Mapping[str, Any]
    shards: list[Shard] = field(default_factory=list)
    skipped: int | None = None
    inputs: Sequence[Mapping[str, Any]] | None = None

    @property
    def documents(self) -> int:
        """Number of documents in the finished shards."""
        return sum(shard.documents for shard in self.shards)

    @property
    def tokens(self) -> int:
        """Number of ids in the finished shards."""
        return sum(shard.tokens for shard in self.shards)

    def to_bytes(self) -> bytes:
        """Return the contents of the file."""
        content = {
            "version": _VERSION,
            "complete": self.skipped is not None,
            "documents": self.documents,
            "tokens": self.tokens,
            "skipped": self.skipped,
            "settings": dict(self.settings),
            **({} if self.inputs is None else {"inputs": self.inputs}),
            "shards": [shard.to_json() for shard in self.shards],
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read a manifest.

        Raises:
            CorpusError: The file cannot be read, or is not a manifest.
        """
        content = read_json(path)
        try:
            if not isinstance(content["settings"], dict) or content["version"] != _VERSION:
                raise ValueError
            shards = [Shard.from_json(each) for each in content["shards"]]
            skipped = content["skipped"]
            skipped = None if skipped is None else count_of(skipped)
            return cls(content["settings"], shards, skipped, content.get("inputs"))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise CorpusError(
                f"{path} is not the manifest of a run of this version; write to a new directory"
            ) from None


def read_json(path: Path) -> Any:
    """Return the JSON value of a file of the output directory; None if the file holds none.

    Raises:
        CorpusError: The file cannot be read.
    """
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError):
        return None


def count_of(value: object) -> int:
    """Return a number of a JSON value.

    Raises:
        ValueError: It is not an integer from 0 on.
    """
    if type(value) is not int or value < 0:
        raise ValueError
    return value
