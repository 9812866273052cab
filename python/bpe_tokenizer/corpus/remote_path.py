"""An output directory in an object store, and its files, by URLs of `fsspec`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import url_of
from bpe_tokenizer.errors import OptionError, TokenizerError, WriteError, shorten
from bpe_tokenizer.readers.remote import described, file_system, is_url, local_path

__all__ = ["RemotePath", "output_path"]


class _Status(NamedTuple):
    """What `os.stat_result` calls these."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class RemotePath(os.PathLike[str]):
    """A file or a directory in a store, with the methods of `pathlib.Path` that a run needs.

    What a file system raises becomes a `WriteError`, but `FileNotFoundError` stays. Nothing is taken from its
    cache of listings, as other processes write into the directory. A store replaces an object at once, so
    `put` needs no renaming.

    Args:
        system: The file system of `fsspec`.
        path: The path in it.

    >>> import pytest
    >>> path = output_path(pytest.importorskip("fsspec") and "memory://bucket/tokens")
    >>> str(path / "plan.json"), (path / "plan.json").exists()
    ('memory:///bucket/tokens/plan.json', False)
    """

    system: Any
    path: str

    def __str__(self) -> str:
        """Return the URL."""
        return str(self.system.unstrip_protocol(self.path))

    __fspath__ = __str__

    def __truediv__(self, name: str) -> RemotePath:
        """Return a file of the directory."""
        return RemotePath(self.system, f"{self.path}/{name}")

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> RemotePath:
        """The directory."""
        return RemotePath(self.system, self.path.rpartition("/")[0])

    def with_name(self, name: str) -> RemotePath:
        """Return another file of the same directory."""
        return self.parent / name

    def absolute(self) -> RemotePath:
        """Return the path, as every URL is absolute."""
        return self

    def mkdir(self, **_: bool) -> None:
        """Do nothing: a store has no directories, and where there are, `put` makes them."""

    def stat(self) -> _Status:
        """Return the size, and the time of the last change."""
        with self._errors():
            file = described(self.system, self.path, self.system.info(self.path))
        return _Status(file.size, file.modified)

    def exists(self) -> bool:
        """Return whether there is such a file."""
        with suppress(FileNotFoundError):
            self.stat()
            return True
        return False

    def version(self) -> str:
        """Return what changes when the file is written again."""
        with self._errors():
            return str(self.system.ukey(self.path))

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the files of the directory, of which there may be none."""
        with suppress(FileNotFoundError), self._errors():
            for name in self.system.ls(self.path, detail=False):
                if name.rstrip("/") != self.path:
                    yield RemotePath(self.system, name)

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield the files of the directory whose names match."""
        return (each for each in self.iterdir() if fnmatchcase(each.name, pattern))

    @contextmanager
    def open(self, mode: str = "rb") -> Iterator[BinaryIO]:
        """Open the file to read it."""
        with self._errors(), self.system.open(self.path, mode) as file:
            yield file

    def read_bytes(self) -> bytes:
        """Return what is in the file."""
        with self._errors():
            return bytes(self.system.cat_file(self.path))

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        with suppress(FileNotFoundError) if missing_ok else nullcontext(), self._errors():
            self.system.rm_file(self.path)

    def put(self, file: Path) -> None:
        """Copy a file of this machine into the store."""
        with self._errors():
            self.system.put_file(str(file), self.path)

    def copy(self, file: RemotePath) -> None:
        """Copy the file to one of the same store; it need not pass through this machine."""
        with file._errors():
            self.system.cp_file(self.path, file.path)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        self.system.invalidate_cache(self.path)
        try:
            yield
        except (FileNotFoundError, TokenizerError):
            raise
        except Exception as error:
            reason = shorten(f"{type(error).__name__}: {error}", 160)
            raise WriteError(f"{self}: the store gives an error: {reason}; start again to resume") from error


def output_path(output: object, name: str = "output") -> Path:
    """Return the output directory that an argument names: a `RemotePath` for a URL, used like a `Path`.

    Raises:
        ArgumentTypeError: It is neither a text nor a path.
        MissingDependencyError: `fsspec`, or the library of the protocol, is not installed.
        OptionError: It cannot be a path.

    >>> output_path("tokens").name
    'tokens'
    """
    path = check_path(name, output)
    url = url_of(path)
    if url is None or local_path(url) is not None:
        return path
    if not is_url(url):
        raise OptionError(f"{name} is {shorten(url)}, which names no directory in a store that fsspec knows")
    system, place = file_system(url)
    return cast("Path", RemotePath(system, place.rstrip("/")))
