"""Reads the documents of a corpus in blocks."""

from __future__ import annotations

import codecs
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.train.text_files import HEAD_BYTES, not_utf8

__all__ = ["Document", "documents", "read_blocks", "read_lines"]

_BLOCK = 1 << 20
# Longer lines are split, so that a file without line ends needs little memory.
_MAX_LINE = 1 << 16


class Document(NamedTuple):
    """A file of a corpus.

    Args:
        name: The name for people.
        path: A file that can be read several times.
    """

    name: str
    path: Path


@contextlib.contextmanager
def documents(names: Sequence[str]) -> Iterator[list[Document]]:
    """Open the documents of a corpus. A pipe is copied to a temporary file for the time of the context.

    Args:
        names: Paths; `-` is standard input.

    Yields:
        The documents, in the same order.

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
    path = check_path("name", name)
    with path.open("rb") as source:  # Fails now, not after hours of reading other files.
        if path.is_file():
            return Document(name, path)
        with copy.open("wb") as file:
            shutil.copyfileobj(source, file)
    return Document(name, copy)


def read_blocks(document: Document, progress: Callable[[int], None] | None = None) -> Iterator[str]:
    """Read a UTF-8 file exactly, in blocks of whole characters.

    Args:
        document: The file.
        progress: Called with the size of each block, in bytes.

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
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                offset = file.tell() - len(data) - pending + error.start
                file.seek(0)
                head = file.read(HEAD_BYTES)
                byte = error.object[error.start]
                raise CorpusError(not_utf8(document.name, head, byte, offset)) from None
            if text:
                yield text
            if not data:
                return
            if progress is not None:
                progress(len(data))


def read_lines(
    document: Document, progress: Callable[[int], None] | None = None
) -> Iterator[list[tuple[int, str]]]:
    r"""Read the lines of a UTF-8 file.

    A line includes its line feed. Lines of more than 65,536 characters are split into parts of that size.

    Args:
        document: The file.
        progress: Called with the size of each block, in bytes.

    Yields:
        For each block, its lines or parts of lines with their line numbers, from 1.

    Raises:
        CorpusError: The file is not UTF-8.
        OSError: The file cannot be read.
    """
    number, rest = 1, ""
    for block in read_blocks(document, progress):
        lines: list[tuple[int, str]] = []
        complete = (rest + block).split("\n")
        rest = complete.pop()
        for line in complete:
            lines += [(number, part) for part in _parts(line + "\n")]
            number += 1
        while len(rest) > _MAX_LINE:
            lines.append((number, rest[:_MAX_LINE]))
            rest = rest[_MAX_LINE:]
        yield lines
    if rest:
        yield [(number, rest)]


def _parts(line: str) -> list[str]:
    return [line[at : at + _MAX_LINE] for at in range(0, len(line), _MAX_LINE)]
