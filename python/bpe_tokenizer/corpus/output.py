"""The directory that a run fills: finished shards, and a manifest that says which they are."""

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

__all__ = ["MANIFEST", "Output", "Position", "Shard"]

MANIFEST = "manifest.json"
_VERSION = 1
_CHUNK = 1 << 20


class Position(NamedTuple):
    """A place in the inputs.

    Args:
        input: The number of the input, counted from 0 on.
        row: The row of it that was read last.
        skipped: Bad rows that were skipped up to there.
    """

    input: int = 0
    row: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class Shard:
    """A finished shard.

    Args:
        files: The size and the SHA-256 of each of its files, by name.
        documents: How many it holds.
        tokens: Likewise.
        end: Where in the inputs its last document stands.
    """

    files: Mapping[str, tuple[int, str]]
    documents: int
    tokens: int
    end: Position


@dataclass
class Output:
    """A directory with its manifest.

    The manifest is written before the first shard and after each, when its files are in their places and on
    the disk. What a kill leaves is therefore the manifest with the shards it names, and at most one shard
    that it does not name, which the next run writes again.

    Args:
        directory: Where.
        settings: All that the contents of the shards depend on.
        shards: Those that are finished, in order.
        skipped: Bad rows that were skipped in all; None until the run is complete.
    """

    directory: Path
    settings: Mapping[str, Any]
    shards: list[Shard] = field(default_factory=list)
    skipped: int | None = None

    @classmethod
    def begin(cls, directory: Path, settings: Mapping[str, Any], overwrite: bool) -> Output:
        """Begin to fill a directory, or go on where a run with the same settings ended.

        Args:
            directory: Where; it is made if it does not exist.
            settings: All that the contents of the shards depend on, as JSON can hold it.
            overwrite: Remove what an earlier run left, and begin anew.

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
        """Where the finished shards end in the inputs."""
        return self.shards[-1].end if self.shards else Position()

    def names(self, index: int, suffixes: Sequence[str]) -> list[Path]:
        """Return the files of a shard."""
        return [self.directory / f"tokens-{index:05d}{suffix}" for suffix in suffixes]

    def temporary(self, paths: Sequence[Path]) -> list[Path]:
        """Return where the files of a shard are written before they are moved to their places."""
        return [path.with_name(f".{path.name}.part") for path in paths]

    def add(self, paths: Sequence[Path], documents: int, tokens: int, end: Position) -> None:
        """Move the files of a shard to their places and put it into the manifest."""
        files: dict[str, tuple[int, str]] = {}
        for path, temporary in zip(paths, self.temporary(paths), strict=True):
            _flush(temporary)
            files[path.name] = (temporary.stat().st_size, _checksum(temporary))
        for path, temporary in zip(paths, self.temporary(paths), strict=True):
            temporary.replace(path)
        self.shards.append(Shard(files, documents, tokens, end))
        # Writing the manifest flushes the directory, first with the shard and then with the manifest.
        self._write_manifest()

    def complete(self, skipped: int) -> None:
        """Say in the manifest that there are no more shards to come."""
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
        """Forget the first shard that is not as it was written, and all after it."""
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
        """Remove the manifest, then what it names."""
        (self.directory / MANIFEST).unlink()
        for shard in self.shards:
            for name in shard.files:
                (self.directory / name).unlink(missing_ok=True)
        for path in self.directory.glob("tokens-[0-9]*"):
            # A shard that a kill kept out of the manifest.
            path.unlink()

    def _remove_temporary(self) -> None:
        for pattern in (".tokens-*.part", f".{MANIFEST}.*.tmp"):
            for path in self.directory.glob(pattern):
                path.unlink()

    def _check_empty(self) -> None:
        strangers = sorted(path.name for path in self.directory.iterdir())
        if strangers:
            raise OptionError(
                f"{self.directory} holds other files ({', '.join(strangers[:5])}), which readers might take "
                "for shards; write to a new directory"
            )


def _read(path: Path) -> Output:
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
        output = Output(path.parent, content["settings"], shards, content["skipped"])
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
