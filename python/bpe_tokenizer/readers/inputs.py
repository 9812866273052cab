"""Finds and opens the files of a corpus."""

from __future__ import annotations

import glob
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    CorpusFileNotFoundError,
    OptionError,
    TokenizerError,
    shorten,
)
from bpe_tokenizer.readers.remote import find_remote, is_url, local_path, open_remote, unreadable

__all__ = ["Input", "PathLike", "StoredFile", "find_inputs", "open_stored"]

PathLike: TypeAlias = str | os.PathLike[str]


class Input(NamedTuple):
    """A file of a corpus.

    Args:
        name: The name in messages.
        location: A path, a URL, or None for standard input.
        size: The stored size in bytes; 0 for standard input and pipes.
        modified: The time of the last change, in nanoseconds; 0 if there is none.
        is_regular: Whether it can be read several times, unlike standard input and pipes.
        directory: The directory that was named instead of the file; "" if the file or a pattern was.
    """

    name: str
    location: Path | str | None
    size: int
    modified: int
    is_regular: bool = True
    directory: str = ""

    @property
    def path(self) -> Path | None:
        """The path of a file of this machine that can be read several times; None for others."""
        return self.location if isinstance(self.location, Path) and self.is_regular else None


_STANDARD_INPUT = Input("standard input", None, 0, 0, False)


def find_inputs(corpus: PathLike | Input | Iterable[PathLike | Input]) -> list[Input]:
    """Return the files of a corpus.

    Args:
        corpus: Files, in reading order. A directory means all files below it, sorted, without hidden
            ones, whose names start with a dot. A `str` that is not an existing file may be a pattern (`*`,
            `?`, `[...]`, `**`) for the sorted files that match it, or a URL of fsspec (`s3://`, `gs://`,
            `hf://`, `memory://`, ...), also of a directory or with a pattern. `"-"` is standard input.

    Raises:
        ArgumentTypeError: An item is neither a `str` nor a path.
        CorpusError: A file does not exist, or a directory or a pattern has no file.
        MissingDependencyError: A URL needs a library that is not installed.
        OptionError: Standard input is named twice, nothing is named, or a path cannot be one.

    >>> find_inputs("-")
    [Input(name='standard input', location=None, size=0, modified=0, is_regular=False, directory='')]
    """
    if isinstance(corpus, str | os.PathLike | Input):
        corpus = [corpus]
    if not isinstance(corpus, Iterable):
        raise ArgumentTypeError(f"inputs must be paths, not {type(corpus).__name__}")
    found: list[Input] = []
    for item in corpus:
        if isinstance(item, Input):
            found.append(item)
            continue
        if not isinstance(item, str | os.PathLike):
            raise ArgumentTypeError(f"an input must be a str or a Path, not {type(item).__name__}")
        try:
            found.extend(_found(item))
        except TokenizerError:
            raise
        except (OSError, ValueError) as error:
            raise _unreadable(os.fspath(item), error) from error
    if not found:
        raise OptionError("no inputs: name the files of the corpus")
    if sum(each.location is None for each in found) > 1:
        raise OptionError("standard input (-) can be read only once")
    return found


def _found(item: PathLike) -> Iterator[Input]:
    if isinstance(item, str):
        if item == "-":
            yield _STANDARD_INPUT
            return
        if is_url(item):
            path = local_path(item)
            if path is None:
                directory = "" if glob.has_magic(item) else item
                for file in find_remote(item):
                    yield Input(file.url, file.url, file.size, file.modified, directory=directory)
                return
            item = path
    yield from _files(item)


def _files(item: PathLike) -> Iterator[Input]:
    path = check_path("an input", item)
    directory = ""
    if isinstance(item, str) and glob.has_magic(item) and not path.exists():
        paths = sorted(each for each in map(Path, _matches(item)) if not each.is_dir())
        if not paths:
            raise CorpusFileNotFoundError(f"no file matches {shorten(item, 160)}")
    elif path.is_dir():
        paths, directory = sorted(_below(path)), str(path)
        if not paths:
            raise CorpusError(f"the directory {path} has no files")
    else:
        paths = [path]
    for each in paths:
        try:
            status = each.stat()
        except FileNotFoundError:
            raise CorpusFileNotFoundError(f"there is no file {each}") from None
        if stat.S_ISREG(status.st_mode):
            yield Input(str(each), each, status.st_size, status.st_mtime_ns, directory=directory)
        else:
            yield Input(str(each), each, 0, 0, False)


def _matches(pattern: str) -> list[str]:
    # `Path.glob` refuses absolute patterns.
    return glob.glob(pattern, recursive=True)  # noqa: PTH207


def _below(directory: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, files in os.walk(directory, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in files if not name.startswith("."))


def _unreadable(name: str, error: OSError | ValueError) -> CorpusError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    kind = CorpusFileNotFoundError if isinstance(error, FileNotFoundError) else CorpusError
    return kind(f"{shorten(name, 160)} cannot be read: {reason}")


def open_stored(source: Input) -> StoredFile:
    """Open a file of a corpus.

    Raises:
        CorpusError: The file cannot be opened.
        MissingDependencyError: A URL needs a library that is not installed.
    """
    if isinstance(source.location, str):
        return StoredFile(source, open_remote(source.location))
    if source.location is None:
        return StoredFile(source, sys.stdin.buffer)
    try:
        return StoredFile(source, source.location.open("rb", buffering=0))
    except OSError as error:
        raise _unreadable(source.name, error) from error


class StoredFile:
    """The stored bytes of a file, whose beginning can be seen before it is read.

    Args:
        source: The file.
        raw: Its bytes. Standard input stays open when this is closed.
    """

    def __init__(self, source: Input, raw: BinaryIO | io.RawIOBase) -> None:
        self._source = source
        self._raw: Any = raw
        self._head = b""
        self.bytes_read = 0

    def __enter__(self) -> StoredFile:
        """Return the file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._source.location is not None:
            self._raw.close()

    def head(self, size: int) -> bytes:
        """Return the next `size` bytes without consuming them; fewer at the end."""
        while len(self._head) < size and (data := self._read(size - len(self._head))):
            self._head += data
        return self._head[:size]

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes: at most so many, or fewer if no more have arrived; nothing at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        if self._head and size:
            data, self._head = self._head[:size], self._head[size:]
        else:
            data = self._read(size)
        self.bytes_read += len(data)
        return data

    def seek(self, offset: int) -> None:
        """Go to a place of a regular file."""
        self._head = b""
        with _read_errors(self._source):
            self._raw.seek(offset)

    @property
    def random_access(self) -> Any:
        """The file itself, for readers that go back and forth; None if it cannot."""
        if not self._source.is_regular or not self._raw.seekable():
            return None
        self.seek(0)
        return self._raw

    def _read(self, size: int) -> bytes:
        with _read_errors(self._source):
            # A single read: a pipe may have fewer bytes.
            read = getattr(self._raw, "read1", self._raw.read)
            return bytes(read(size) or b"")


class _read_errors:  # noqa: N801 (a context, of which there are many)
    """Turn errors of reading into ones that name the file."""

    def __init__(self, source: Input) -> None:
        self._source = source

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if error is None or isinstance(error, CorpusError):
            return
        if isinstance(self._source.location, str):
            if isinstance(error, Exception):
                raise unreadable(self._source.name, error) from error
        elif isinstance(error, OSError | ValueError):
            raise _unreadable(self._source.name, error) from error
