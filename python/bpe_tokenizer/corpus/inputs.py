"""Finds and opens the files of a corpus."""

from __future__ import annotations

import glob
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from bpe_tokenizer.corpus.compression import decompress
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, CorpusFileNotFoundError, OptionError, shorten

__all__ = ["Input", "PathLike", "find_inputs", "open_input"]

PathLike = str | os.PathLike[str]


class Input(NamedTuple):
    """A file of a corpus.

    Args:
        name: The name in messages.
        path: The path; None is standard input.
        size: The stored size in bytes; 0 for standard input.
        modified: The time of the last change, in nanoseconds; 0 for standard input.
    """

    name: str
    path: Path | None
    size: int
    modified: int


def find_inputs(inputs: PathLike | Iterable[PathLike]) -> list[Input]:
    """Return the files of a corpus.

    Args:
        inputs: Files, in reading order. A `str` that is not an existing file may be a pattern (`*`, `?`,
            `[...]`, `**`) for the sorted files that match it; `"-"` is standard input.

    Raises:
        ArgumentTypeError: An item is neither a `str` nor a path.
        CorpusError: A file does not exist or is a directory, or a pattern matches no file.
        OptionError: Standard input is named twice, or nothing is named.

    >>> find_inputs("-")
    [Input(name='standard input', path=None, size=0, modified=0)]
    """
    named = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    if not isinstance(named, Iterable):
        raise ArgumentTypeError(f"inputs must be paths, not {type(inputs).__name__}")
    found: list[Input] = []
    for item in named:
        if not isinstance(item, str | os.PathLike):
            raise ArgumentTypeError(f"an input must be a str or a Path, not {type(item).__name__}")
        try:
            found.extend([Input("standard input", None, 0, 0)] if item == "-" else _files(item))
        except CorpusError:
            raise
        except (OSError, ValueError) as error:  # ValueError: a zero byte or a lone surrogate
            raise _unreadable(item, error) from error
    if not found:
        raise OptionError("no inputs: name the files of the corpus")
    if sum(each.path is None for each in found) > 1:
        raise OptionError("standard input (-) can be read only once")
    return found


def _files(item: PathLike) -> Iterator[Input]:
    path = Path(item)
    if isinstance(item, str) and not path.exists() and glob.has_magic(item):
        paths = sorted(each for each in map(Path, _matches(item)) if not each.is_dir())
        if not paths:
            raise CorpusError(f"no file matches {item}")
    else:
        paths = [path]
    for each in paths:
        if each.is_dir():
            raise CorpusError(f"{each} is a directory; name its files, such as '{each}/**/*.txt'")
        try:
            status = each.stat()
        except FileNotFoundError:
            raise CorpusFileNotFoundError(f"there is no file {each}") from None
        yield Input(str(each), each, status.st_size, status.st_mtime_ns)


def _matches(pattern: str) -> list[str]:
    # `Path.glob` refuses absolute patterns.
    return glob.glob(pattern, recursive=True)  # noqa: PTH207


@contextmanager
def open_input(source: Input) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file of a corpus. The first bytes tell gzip, xz and Zstandard.

    Args:
        source: The file.

    Returns:
        A context with two streams: the uncompressed bytes and the stored bytes.

    Raises:
        CorpusError: The file cannot be opened.
        MissingDependencyError: The file is Zstandard and `zstandard` is not installed.
    """
    try:
        raw: Any = _StandardInput(sys.stdin.buffer) if source.path is None else io.FileIO(source.path)
    except OSError as error:
        raise _unreadable(source.name, error) from error
    with io.BufferedReader(raw) as stored, decompress(stored) as stream:
        yield stream, cast("BinaryIO", stored)


def _unreadable(name: PathLike, error: OSError | ValueError) -> CorpusError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    kind = CorpusFileNotFoundError if isinstance(error, FileNotFoundError) else CorpusError
    return kind(f"{shorten(os.fspath(name), 160)} cannot be read: {reason}")


class _StandardInput(io.RawIOBase):
    """Standard input, which stays open when this stream is closed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # A single read: a pipe may have fewer bytes than the buffer.
        read = getattr(self._stream, "read1", self._stream.read)
        data = cast("bytes", read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)
