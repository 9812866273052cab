"""The output directory of a run: finished shards, and the manifest that lists them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from bpe_tokenizer.atomic import write_atomically
from bpe_tokenizer.errors import CorpusError, OptionError

__all__ = ["MANIFEST", "Position", "Shard", "ShardDirectory"]

MANIFEST = "manifest.json"
_VERSION = 1
_CHUNK = 1 << 20


class Position(NamedTuple):
    """A position in the inputs.

    Args:
        input: Index of the input, from 0.
        row: The last row that was read.
        skipped: Number of bad rows skipped so far.
    """

    input: int = 0
    row: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class Shard:
    """A finished shard.

    Args:
        files: The size and the SHA-256 of each file, by name.
        documents: Number of documents.
        tokens: Number of ids.
        end: The position of its last document in the inputs.
    """

    files: Mapping[str, tuple[int, str]]
    documents: int
    tokens: int
    end: Position


@dataclass
class ShardDirectory:
    """A directory with its manifest.

    The manifest is written before the first shard, and after the files of each shard are in place and on
    disk. A killed run therefore leaves a manifest with intact shards, and at most one shard that the manifest
    does not list. The next run writes that one again.

    Args:
        directory: The directory.
        settings: All settings that the contents of the shards depend on.
        shards: The finished shards, in order.
        skipped: Number of bad rows skipped in the run; None until the run is complete.
    """

    directory: Path
    settings: Mapping[str, Any]
    shards: list[Shard] = field(default_factory=list)
    skipped: int | None = None

    @classmethod
    def open(cls, directory: Path, settings: Mapping[str, Any], overwrite: bool) -> ShardDirectory:
        """Open a directory for a new run, or resume a run with the same settings.

        Args:
            directory: The directory; it is created if it does not exist.
            settings: All settings that the contents of the shards depend on, as JSON values.
            overwrite: Remove the files of an earlier run.

        Raises:
            CorpusError: The manifest cannot be read.
            OptionError: The directory holds other files, or shards of a run with other settings.
        """
        directory.mkdir(parents=True, exist_ok=True)
        manifest = directory / MANIFEST
        earlier = _read(manifest) if manifest.exists() else None
        if earlier is not None and (overwrite or not earlier.shards):
            earlier._remove()
            earlier = None
        if earlier is None:
            output = cls(directory, settings)
            output._remove_temporary()
            output._check_empty()
        else:
            differing = [key for key in settings if earlier.settings.get(key) != settings[key]]
            if differing:
                raise OptionError(
                    f"{directory} holds the shards of another run (it differs in: {', '.join(differing)}); "
                    "write to another directory, or overwrite this one"
                )
            output = earlier
            output._remove_temporary()
            output._keep_intact()
        output._write_manifest()
        return output

    @property
    def end(self) -> Position:
        """The position in the inputs after the finished shards."""
        return self.shards[-1].end if self.shards else Position()

    def names(self, index: int, suffixes: Sequence[str]) -> list[Path]:
        """Return the files of a shard."""
        return [self.directory / f"tokens-{index:05d}{suffix}" for suffix in suffixes]

    def temporary(self, paths: Sequence[Path]) -> list[Path]:
        """Return the temporary names of a shard's files."""
        return [path.with_name(f".{path.name}.part") for path in paths]

    def add(self, paths: Sequence[Path], documents: int, tokens: int, end: Position) -> None:
        """Move the files of a shard into place and add the shard to the manifest."""
        files: dict[str, tuple[int, str]] = {}
        for path, temporary in zip(paths, self.temporary(paths), strict=True):
            _flush(temporary)
            files[path.name] = (temporary.stat().st_size, _checksum(temporary))
        for path, temporary in zip(paths, self.temporary(paths), strict=True):
            temporary.replace(path)
        self.shards.append(Shard(files, documents, tokens, end))
        # Writing the manifest flushes the directory: first with the shard, then with the manifest.
        self._write_manifest()

    def complete(self, skipped: int) -> None:
        """Mark the run as complete in the manifest."""
        self.skipped = skipped
        self._write_manifest()

    def _write_manifest(self) -> None:
        content = {
            "version": _VERSION,
            "complete": self.skipped is not None,
            "skipped": self.skipped,
            "settings": dict(self.settings),
            "shards": [{**asdict(each), "end": each.end._asdict()} for each in self.shards],
        }
        text = json.dumps(content, indent=1) + "\n"
        write_atomically({self.directory / MANIFEST: text.encode()})

    def _keep_intact(self) -> None:
        """Remove the first shard that is missing or changed, and all later ones."""
        for index, shard in enumerate(self.shards):
            if not all(
                _is_intact(self.directory / name, size, checksum)
                for name, (size, checksum) in shard.files.items()
            ):
                for broken in self.shards[index:]:
                    for name in broken.files:
                        (self.directory / name).unlink(missing_ok=True)
                del self.shards[index:]
                self.skipped = None
                return

    def _remove(self) -> None:
        """Remove the manifest, then the shards."""
        (self.directory / MANIFEST).unlink()
        for shard in self.shards:
            for name in shard.files:
                (self.directory / name).unlink(missing_ok=True)
        for path in self.directory.glob("tokens-[0-9]*"):
            # A shard of a killed run that the manifest does not list.
            path.unlink()

    def _remove_temporary(self) -> None:
        for pattern in (".tokens-*.part", f".{MANIFEST}.*.tmp"):
            for path in self.directory.glob(pattern):
                path.unlink()

    def _check_empty(self) -> None:
        others = sorted(path.name for path in self.directory.iterdir())
        if others:
            raise OptionError(
                f"{self.directory} holds other files ({', '.join(others[:5])}), which readers might take "
                "for shards; write to a new directory"
            )


def _read(path: Path) -> ShardDirectory:
    try:
        content = json.loads(path.read_bytes())
        shards = [
            Shard(
                {name: (int(size), str(checksum)) for name, (size, checksum) in each["files"].items()},
                each["documents"],
                each["tokens"],
                Position(**each["end"]),
            )
            for each in content["shards"]
        ]
        output = ShardDirectory(path.parent, content["settings"], shards, content["skipped"])
        names = {name for shard in shards for name in shard.files}
        if not isinstance(output.settings, dict) or content["version"] != _VERSION:
            raise ValueError
        if any(Path(name).name != name for name in names):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CorpusError(
            f"{path} is not the manifest of a run of this version; write to a new directory"
        ) from None
    return output


def _is_intact(path: Path, size: int, checksum: str) -> bool:
    try:
        return path.stat().st_size == size and _checksum(path) == checksum
    except FileNotFoundError:
        return False


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
