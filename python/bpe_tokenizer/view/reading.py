"""Files of a corpus, read a block at a time."""

from __future__ import annotations

import codecs
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bpe_tokenizer.errors import CorpusError, OptionError

__all__ = ["Document", "documents", "read_blocks", "read_lines"]

_BLOCK = 1 << 20
# A longer line is taken in parts, so that a file without line ends fits into memory too.
_LONGEST_LINE = 1 << 16


class Document(NamedTuple):
    """A file of a corpus.

    Args:
        name: What people call it.
        path: Where it can be read, several times.
    """

    name: str
    path: Path


@contextlib.contextmanager
def documents(names: Sequence[str]) -> Iterator[list[Document]]:
    """Name the files of a corpus; what comes from a pipe is kept in a temporary file meanwhile.

    Args:
        names: Paths; `-` is standard input.

    Yields:
        The files in the same order.

    Raises:
        OptionError: Standard input is named twice.
        OSError: A file cannot be read.
    """
    if names.count("-") > 1:
        raise OptionError("standard input (-) can be read only once: name it once")
    with tempfile.TemporaryDirectory() as directory:
        yield [_document(name, Path(directory) / str(number)) for number, name in enumerate(names)]


def _document(name: str, copy: Path) -> Document:
    if name == "-":
        with copy.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return Document("standard input", copy)
    path = Path(name)
    with path.open("rb") as source:  # whether it can be read is better known before hours of reading others
        if path.is_file():
            return Document(name, path)
        with copy.open("wb") as file:
            shutil.copyfileobj(source, file)
    return Document(name, copy)


def read_blocks(document: Document, progress: Callable[[int], None] | None = None) -> Iterator[str]:
    """Read a file in UTF-8 in blocks of whole characters, exactly as it stands.

    Args:
        document: The file.
        progress: Called with the number of bytes of each block that was read.

    Yields:
        Text, never empty.

    Raises:
        CorpusError: The file is not UTF-8.
        OSError: The file cannot be read.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    with document.path.open("rb") as file:
        while True:
            data = file.read(_BLOCK)
            held_back = len(decoder.getstate()[0])
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                offset = file.tell() - len(data) - held_back + error.start
                byte = error.object[error.start]
                raise CorpusError(
                    f"{document.name} is not UTF-8: byte 0x{byte:02x} at offset {offset:,}; "
                    "convert it to UTF-8 first"
                ) from None
            if text:
                yield text
            if not data:
                return
            if progress is not None:
                progress(len(data))


def read_lines(
    document: Document, progress: Callable[[int], None] | None = None
) -> Iterator[list[tuple[int, str]]]:
    r"""Read a file in UTF-8 line by line, a block's lines at once.

    A line ends with its line feed; of a line of more than 65,536 characters, each so many are a part.

    Args:
        document: The file.
        progress: Called with the number of bytes of each block that was read.

    Yields:
        Lines or parts of lines, each with the line's number, from 1 on.

    Raises:
        CorpusError: The file is not UTF-8.
        OSError: The file cannot be read.
    """
    number, rest = 1, ""
    for block in read_blocks(document, progress):
        lines: list[tuple[int, str]] = []
        whole = (rest + block).split("\n")
        rest = whole.pop()
        for line in whole:
            lines += [(number, part) for part in _parts(line + "\n")]
            number += 1
        while len(rest) > _LONGEST_LINE:
            lines.append((number, rest[:_LONGEST_LINE]))
            rest = rest[_LONGEST_LINE:]
        yield lines
    if rest:
        yield [(number, rest)]


def _parts(line: str) -> list[str]:
    return [line[at : at + _LONGEST_LINE] for at in range(0, len(line), _LONGEST_LINE)]
