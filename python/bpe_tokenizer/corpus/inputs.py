"""The files of a corpus: which they are, and their bytes without compression."""

from __future__ import annotations

import glob
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from bpe_tokenizer.corpus.compression import decompressed
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, OptionError

__all__ = ["Input", "PathLike", "find_inputs", "opened"]

PathLike = str | os.PathLike[str]


class Input(NamedTuple):
    """A file of a corpus.

    Args:
        name: What messages call it.
        path: Where it is; None is standard input.
        size: In bytes, as it is stored; 0 for standard input.
        modified: When it was last changed, in nanoseconds; 0 for standard input.
    """

    name: str
    path: Path | None
    size: int
    modified: int


def find_inputs(inputs: PathLike | Iterable[PathLike]) -> list[Input]:
    """Name the files of a corpus.

    Args:
        inputs: Files, in the order in which they are read. A `str` that names no file may be a pattern
            (`*`, `?`, `[...]`, `**`), which stands for the files it matches, sorted; `"-"` is standard input.

    Raises:
        ArgumentTypeError: Something is neither a `str` nor a path.
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
        found.extend([Input("standard input", None, 0, 0)] if item == "-" else _files(item))
    if not found:
        raise OptionError("there are no inputs: name the files of the corpus")
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
            raise CorpusError(f"there is no file {each}") from None
        yield Input(str(each), each, status.st_size, status.st_mtime_ns)


def _matches(pattern: str) -> list[str]:
    # `Path.glob` takes no absolute patterns.
    return glob.glob(pattern, recursive=True)  # noqa: PTH207


@contextmanager
def opened(source: Input) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open a file of a corpus; gzip, xz and Zstandard are recognised by their first bytes.

    Args:
        source: Which.

    Returns:
        A context: its bytes without compression, and the file as it is stored.

    Raises:
        MissingDependencyError: It is Zstandard and the library for that is not installed.
        OSError: It cannot be read.
    """
    raw: Any = _Unclosed(sys.stdin.buffer) if source.path is None else io.FileIO(source.path)
    with io.BufferedReader(raw) as stored, decompressed(stored) as stream:
        yield stream, cast("BinaryIO", stored)


class _Unclosed(io.RawIOBase):
    """Standard input, which is not ours to close."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # One read of what there is: a pipe need not fill the buffer.
        read = getattr(self._stream, "read1", self._stream.read)
        data = cast("bytes", read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)
