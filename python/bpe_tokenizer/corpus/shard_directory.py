"""The output directory of a run: finished shards, and the manifest that lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bpe_tokenizer.atomic import (
    is_temporary,
    make_directory,
    remove_abandoned,
    write_atomically,
    write_errors,
)
from bpe_tokenizer.corpus.checksums import is_intact
from bpe_tokenizer.corpus.input_list import run_changes
from bpe_tokenizer.corpus.joining import JOINED_FILES, unlink_training_name
from bpe_tokenizer.corpus.manifest import MANIFEST, SHARD_NAME, Manifest, Shard
from bpe_tokenizer.corpus.shard_store import ShardFile
from bpe_tokenizer.corpus.skipped_rows import SKIPPED, SkippedRows
from bpe_tokenizer.corpus.unit_directory import refuse_parts
from bpe_tokenizer.errors import OptionError, WriteError
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock
from bpe_tokenizer.readers import BadRow, Position

__all__ = ["ShardDirectory"]

# The manifest, which is written again after each shard, lists at most this many inputs.
_MAX_LISTED = 100_000


@dataclass
class ShardDirectory:
    """A directory with its manifest.

    The manifest is written before the first shard, and after the files of each shard are in place and on
    disk. A killed run therefore leaves a manifest with intact shards, and at most one shard that the manifest
    does not list. The next run writes that one again.

    One run at a time has the lock of the directory. A run that loses it, because someone removes the lock
    file, changes nothing more: its files have names that no other run uses, and it moves a shard into place
    only if the manifest is the one that it wrote and no other shard is there.

    Args:
        directory: The directory.
        manifest: The finished shards.
        skipped_rows: The list of the rows that were skipped.
        lock: The lock of the directory.
    """

    directory: Path
    manifest: Manifest
    skipped_rows: SkippedRows
    lock: DirectoryLock
    _written: bytes | None = None

    @classmethod
    def open(
        cls,
        directory: Path,
        settings: Mapping[str, Any],
        inputs: Sequence[Mapping[str, Any]],
        overwrite: bool,
        verify: bool = False,
    ) -> ShardDirectory:
        """Open a directory for a new run, or resume a run with the same settings.

        Args:
            directory: The directory; it is created if it does not exist.
            settings: All settings that the contents of the shards depend on, as JSON values.
            inputs: The `listed_inputs`.
            overwrite: Remove the files of an earlier run.
            verify: Compare the hashes of finished shards, not only their sizes and times.

        Raises:
            CorpusError: The manifest cannot be read.
            OptionError: The directory holds other files, or shards of a run with other settings or in parts.
            WriteError: Another run writes into the directory, or it cannot be written.
        """
        make_directory(directory)
        refuse_parts(directory)
        lock = DirectoryLock(directory, RUN_LOCK)
        try:
            with write_errors(directory):
                manifest = Manifest(settings, inputs=inputs if len(inputs) <= _MAX_LISTED else None)
                skipped = SkippedRows(directory / SKIPPED, [each["name"] for each in inputs])
                output = cls(directory, manifest, skipped, lock)
                output._resume(overwrite, verify)
                output._write_manifest()
        except BaseException:
            lock.release()
            raise
        return output

    def __enter__(self) -> ShardDirectory:
        """Return the directory."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        self.lock.release()

    @property
    def shards(self) -> list[Shard]:
        """The finished shards, in order."""
        return self.manifest.shards

    @property
    def end(self) -> Position:
        """The position in the inputs after the finished shards."""
        return (self.shards[-1].end if self.shards else None) or Position()

    def names(self, index: int, suffixes: Sequence[str]) -> list[Path]:
        """Return the files of a shard."""
        return [self.directory / f"tokens-{index:05d}{suffix}" for suffix in suffixes]

    def add(
        self,
        files: Sequence[ShardFile],
        sizes: Sequence[int],
        documents: int,
        tokens: int,
        end: Position,
        skipped: Sequence[BadRow],
    ) -> None:
        """Move the files of a shard into place and add the shard to the manifest. As `ShardStore.add`.

        Raises:
            WriteError: The shard cannot be written, its size is wrong, or another run has taken over the
                directory.
        """
        self._check_owned()
        listed = {
            file.path.name: file.complete(size, documents, tokens)
            for file, size in zip(files, sizes, strict=True)
        }
        # Again, as flushing takes time.
        self._check_owned()
        for number, file in enumerate(files):
            try:
                file.create()
            except WriteError:
                for moved in files[:number]:
                    moved.path.unlink()
                raise
        self.skipped_rows.add(skipped)
        self.shards.append(Shard(listed, documents, tokens, end))
        # Writing the manifest flushes the directory: first with the shard, then with the manifest.
        self._write_manifest()

    def complete(self, skipped: Sequence[BadRow]) -> None:
        """Mark the run as complete in the manifest.

        Args:
            skipped: The rows that were skipped after the last document.
        """
        self._check_owned()
        self.skipped_rows.add(skipped)
        self.manifest.skipped = self.end.skipped + len(skipped)
        self._write_manifest()

    def _resume(self, overwrite: bool, verify: bool) -> None:
        path = self.directory / MANIFEST
        earlier = Manifest.read(path) if path.exists() else None
        if earlier is not None and (overwrite or not earlier.shards):
            self._remove(earlier)
            earlier = None
        if earlier is None:
            remove_abandoned(self.directory)
            self._check_empty()
            return
        inputs = self.manifest.inputs
        differing = run_changes(earlier.settings, self.manifest.settings, earlier.inputs, inputs)
        if differing:
            raise OptionError(
                f"{self.directory} holds the shards of another run (it differs in: {differing}); "
                "write to another directory, or overwrite this one"
            )
        remove_abandoned(self.directory)
        self._written = _bytes_of(path)
        self.manifest = replace(earlier, inputs=inputs)
        self._keep_intact(path.stat().st_mtime_ns, verify)
        self._remove_unlisted()

    def _write_manifest(self) -> None:
        data = self.manifest.to_bytes()
        self._check_owned()
        write_atomically({self.directory / MANIFEST: data})
        self._written = data

    def _check_owned(self) -> None:
        """Check that no other run has taken over the directory.

        Raises:
            WriteError: One has.
        """
        self.lock.check()
        manifest = self.directory / MANIFEST
        if _bytes_of(manifest) != self._written:
            raise WriteError(
                f"{manifest}: another run has changed it, so this one writes nothing more", filename=manifest
            )

    def _keep_intact(self, listed: int, verify: bool) -> None:
        """Remove the first shard that is missing or changed, and all later ones."""
        kept = 0
        for shard in self.shards:
            if not all(
                is_intact(self.directory / name, size, sha256, listed, verify)
                for name, (size, sha256) in shard.files.items()
            ):
                break
            kept += 1
        while not self.skipped_rows.keep(self._skipped(kept)):
            kept -= 1
        if kept == len(self.shards):
            return
        for broken in self.shards[kept:]:
            for name in broken.files:
                (self.directory / name).unlink(missing_ok=True)
        del self.shards[kept:]
        self.manifest.skipped = None

    def _skipped(self, shards: int) -> int:
        """Return the number of rows that were skipped until the end of some shards, or of the run."""
        if shards == len(self.shards) and self.manifest.skipped is not None:
            return self.manifest.skipped
        end = self.shards[shards - 1].end if shards else None
        return end.skipped if end is not None else 0

    def _remove(self, earlier: Manifest) -> None:
        """Remove the manifest, then the shards."""
        (self.directory / MANIFEST).unlink()
        (self.directory / SKIPPED).unlink(missing_ok=True)
        if earlier.settings.get("val_fraction") is not None:
            for name in JOINED_FILES:
                (self.directory / name).unlink(missing_ok=True)
        for shard in earlier.shards:
            for name in shard.files:
                unlink_training_name(self.directory / name)
                (self.directory / name).unlink(missing_ok=True)
        for path in self.directory.glob("tokens-[0-9]*"):
            # A shard of a killed run that the manifest does not list.
            path.unlink()

    def _remove_unlisted(self) -> None:
        """Remove the shard that a killed run moved into place and did not list."""
        listed = {name for shard in self.shards for name in shard.files}
        for path in list(self.directory.iterdir()):
            if SHARD_NAME.fullmatch(path.name) and path.name not in listed:
                path.unlink()

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
