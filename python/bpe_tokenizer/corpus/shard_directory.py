"""The output directory of a run: finished shards, and the manifest that lists them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import (
    AtomicFile,
    is_temporary,
    make_directory,
    remove_abandoned,
    write_atomically,
    write_errors,
)
from bpe_tokenizer.errors import CorpusError, OptionError, WriteError
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock
from bpe_tokenizer.readers.positions import Position

__all__ = ["MANIFEST", "Shard", "ShardDirectory"]

MANIFEST = "manifest.json"
_VERSION = 1
_CHUNK = 1 << 20
# The files of shards, and their temporary files.
_SHARD = re.compile(r"tokens-\d{5,}\.(bin|idx|npy|parquet)")
_PART = re.compile(rf"\.({_SHARD.pattern})\.([0-9a-f]+\.tmp|part)")


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

    One run at a time has the lock of the directory. A run that loses it, on a file system without locks,
    changes nothing more: its files have names that no other run uses, and it moves a shard into place only if
    the manifest is the one that it wrote and no other shard is there.

    Args:
        directory: The directory.
        settings: All settings that the contents of the shards depend on.
        shards: The finished shards, in order.
        skipped: Number of bad rows skipped in the run; None until the run is complete.
        lock: The lock of the directory; None for a manifest that is only read.
    """

    directory: Path
    settings: Mapping[str, Any]
    shards: list[Shard] = field(default_factory=list)
    skipped: int | None = None
    lock: DirectoryLock | None = None
    _manifest: bytes | None = None

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
            WriteError: Another run writes into the directory, or it cannot be written.
        """
        make_directory(directory)
        lock = DirectoryLock(directory, RUN_LOCK)
        try:
            with write_errors(directory):
                output = cls._opened(directory, settings, overwrite)
                output.lock = lock
                output._write_manifest()
        except BaseException:
            lock.release()
            raise
        return output

    @classmethod
    def _opened(cls, directory: Path, settings: Mapping[str, Any], overwrite: bool) -> ShardDirectory:
        manifest = directory / MANIFEST
        earlier = _read(manifest) if manifest.exists() else None
        if earlier is not None and (overwrite or not earlier.shards):
            earlier._remove()
            earlier = None
        if earlier is None:
            output = cls(directory, settings)
            output._remove_temporary()
            output._check_empty()
            return output
        differing = [key for key in settings if earlier.settings.get(key) != settings[key]]
        if differing:
            raise OptionError(
                f"{directory} holds the shards of another run (it differs in: {', '.join(differing)}); "
                "write to another directory, or overwrite this one"
            )
        earlier._remove_temporary()
        earlier._keep_intact()
        earlier._remove_unlisted()
        earlier._manifest = _bytes_of(manifest)
        return earlier

    def __enter__(self) -> ShardDirectory:
        """Return the directory."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        if self.lock is not None:
            self.lock.release()

    @property
    def end(self) -> Position:
        """The position in the inputs after the finished shards."""
        return self.shards[-1].end if self.shards else Position()

    def names(self, index: int, suffixes: Sequence[str]) -> list[Path]:
        """Return the files of a shard."""
        return [self.directory / f"tokens-{index:05d}{suffix}" for suffix in suffixes]

    def add(
        self, files: Sequence[AtomicFile], sizes: Sequence[int], documents: int, tokens: int, end: Position
    ) -> None:
        """Move the files of a shard into place and add the shard to the manifest.

        Args:
            files: The files of the shard, in the order of `names`.
            sizes: The size that each must have.
            documents: Number of documents.
            tokens: Number of ids.
            end: The position of its last document in the inputs.

        Raises:
            WriteError: The shard cannot be written, its size is wrong, or another run has taken over the
                directory.
        """
        self._check_owned()
        listed: dict[str, tuple[int, str]] = {}
        for file, size in zip(files, sizes, strict=True):
            file.finish()
            file.check()
            with write_errors(file.path):
                found = file.temporary.stat().st_size
                if found != size:
                    raise WriteError(
                        f"{file.path}: {documents:,} documents with {tokens:,} ids take {size:,} bytes, but "
                        f"{found:,} were written; another program has changed the file. Start the run again",
                        filename=file.path,
                    )
                listed[file.path.name] = (size, _checksum(file.temporary))
        # Again, as the checksums take time.
        self._check_owned()
        for number, file in enumerate(files):
            try:
                file.create()
            except WriteError:
                for moved in files[:number]:
                    if moved.is_in_place():
                        moved.path.unlink()
                raise
        for file in files:
            file.close()
        self.shards.append(Shard(listed, documents, tokens, end))
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
        data = (json.dumps(content, indent=1) + "\n").encode()
        self._check_owned()
        write_atomically({self.directory / MANIFEST: data})
        self._manifest = data

    def _check_owned(self) -> None:
        """Check that no other run has taken over the directory.

        Raises:
            WriteError: One has.
        """
        if self.lock is not None:
            self.lock.check()
        manifest = self.directory / MANIFEST
        if _bytes_of(manifest) != self._manifest:
            raise WriteError(
                f"{manifest}: another run has changed it, so this one writes nothing more", filename=manifest
            )

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

    def _remove_unlisted(self) -> None:
        """Remove the shard that a killed run moved into place and did not list."""
        listed = {name for shard in self.shards for name in shard.files}
        for path in list(self.directory.iterdir()):
            if _SHARD.fullmatch(path.name) and path.name not in listed:
                path.unlink()

    def _remove_temporary(self) -> None:
        # With the lock of the directory, these belong to no run, or to one that has lost its lock.
        for path in list(self.directory.iterdir()):
            if _PART.fullmatch(path.name):
                path.unlink()
        remove_abandoned(self.directory / MANIFEST)

    def _check_empty(self) -> None:
        others = sorted(path.name for path in self.directory.iterdir() if not is_temporary(path))
        if others:
            raise OptionError(
                f"{self.directory} holds other files ({', '.join(others[:5])}), which readers might take "
                "for shards; write to a new directory"
            )


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _read(path: Path) -> ShardDirectory:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        content = json.loads(data)
        shards = [_read_shard(each) for each in content["shards"]]
        skipped = content["skipped"]
        if not isinstance(content["settings"], dict) or content["version"] != _VERSION:
            raise ValueError
        output = ShardDirectory(
            path.parent, content["settings"], shards, None if skipped is None else _count(skipped)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise CorpusError(
            f"{path} is not the manifest of a run of this version; write to a new directory"
        ) from None
    return output


def _read_shard(value: Any) -> Shard:
    files: dict[str, tuple[int, str]] = {}
    for name, (size, checksum) in value["files"].items():
        # These files may be removed, so a name must be that of a shard.
        if not _SHARD.fullmatch(name) or not isinstance(checksum, str):
            raise ValueError
        files[name] = (_count(size), checksum)
    end = value["end"]
    position = Position(*(_count(end[name]) for name in Position._fields))
    return Shard(files, _count(value["documents"]), _count(value["tokens"]), position)


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError
    return value


def _is_intact(path: Path, size: int, checksum: str) -> bool:
    try:
        return path.stat().st_size == size and _checksum(path) == checksum
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from error


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
