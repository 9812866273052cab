"""Reads the documents of a corpus in blocks, several times."""

from __future__ import annotations

import codecs
import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers.batches import opened_batches
from bpe_tokenizer.readers.inputs import Input, PathLike, find_inputs, open_stored
from bpe_tokenizer.readers.opened import OpenInput, open_input
from bpe_tokenizer.readers.positions import SkippedRows
from bpe_tokenizer.readers.sources import find_sources
from bpe_tokenizer.train.text_files import HEAD_BYTES, not_utf8

__all__ = ["Document", "documents", "read_blocks", "read_lines", "read_texts"]

_BLOCK = 1 << 20
# Longer lines are split, so that a file without line ends needs little memory.
_MAX_LINE = 1 << 16
_WHOLE_FILES = ReadOptions()


class Document(NamedTuple):
    """A file of a corpus: of text, one document; of JSON Lines or a table, a document for each row.

    Args:
        name: The name for people.
        location: A path or a URL that can be read several times.
        options: How documents are found in the file.
    """

    name: str
    location: Path | str
    options: ReadOptions = _WHOLE_FILES

    @property
    def source(self) -> Input:
        """The file for the readers, with its size."""
        location = str(self.location) if isinstance(self.location, str) else self.location
        return find_inputs(location)[0]._replace(name=self.name)

    @property
    def size(self) -> int:
        """The stored size in bytes."""
        return self.source.size


@contextlib.contextmanager
def documents(
    names: PathLike | Iterable[PathLike], options: ReadOptions = _WHOLE_FILES
) -> Iterator[list[Document]]:
    """Open the documents of a corpus. A pipe is copied to a temporary file for the time of the context.

    Args:
        names: Files, directories, patterns and URLs, as for `find_inputs`; `-` is standard input.
        options: How documents are found in the files.

    Yields:
        The files, in the same order.

    Raises:
        CorpusError: A file does not exist or cannot be read.
        OptionError: Standard input is named twice.
    """
    with tempfile.TemporaryDirectory() as directory:
        yield [
            _document(source, options, Path(directory) / str(number))
            for number, source in enumerate(find_sources(names, options))
        ]


def _document(source: Input, options: ReadOptions, copy: Path) -> Document:
    with open_stored(source) as stored:  # Fails now, not after hours of reading other files.
        if source.is_regular and source.location is not None:
            return Document(source.name, source.location, options)
        with copy.open("wb") as file:
            shutil.copyfileobj(stored, file)
    return Document(source.name, copy, options)


def read_texts(
    document: Document,
    progress: Callable[[int], None] | None = None,
    skipped: SkippedRows | None = None,
) -> Iterator[Iterator[str] | list[str]]:
    """Read the documents of a file.

    Args:
        document: The file.
        progress: Called with the number of stored bytes of each step.
        skipped: Gets the rows that were skipped.

    Yields:
        Lists of documents, and for a long document an iterator over its blocks, which are whole characters.

    Raises:
        CorpusError: The file cannot be read, is not a corpus, or is not UTF-8.
    """
    source, options = document.source, document.options
    with open_input(source, options) as opened:
        reported = 0

        def report() -> None:
            nonlocal reported
            if progress is not None and opened.bytes_read > reported:
                progress(opened.bytes_read - reported)
                reported = opened.bytes_read

        if opened.kind.format == "text" and options.is_whole:
            yield _text_blocks(opened, report)
            return
        with contextlib.closing(opened_batches(0, opened, options)) as batches:
            for batch in batches:
                if skipped is not None:
                    skipped.add(document.name, batch.bad)
                yield from _groups(batch.texts())
                report()


def read_blocks(document: Document, progress: Callable[[int], None] | None = None) -> Iterator[str]:
    """Read the text of all documents of a file exactly, in blocks of whole characters.

    The arguments and errors are those of `read_texts`. No block is empty.
    """
    for blocks in read_texts(document, progress):
        yield from filter(None, blocks)


def _groups(texts: list[str]) -> Iterator[list[str] | Iterator[str]]:
    """Yield lists of about `_BLOCK` characters, and the blocks of longer texts."""
    group: list[str] = []
    size = 0
    for text in texts:
        if group and size + len(text) > _BLOCK:
            yield group
            group, size = [], 0
        if len(text) > _BLOCK:
            yield _blocks_of(text)
        else:
            group.append(text)
            size += len(text)
    if group:
        yield group


def _blocks_of(text: str) -> Iterator[str]:
    return (text[start : start + _BLOCK] for start in range(0, len(text), _BLOCK))


def _text_blocks(opened: OpenInput, report: Callable[[], None]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    done = 0
    head = b""
    with opened.chunks() as chunks:
        is_last = False
        while not is_last:
            data = next(chunks, b"")
            is_last = not data
            head = head or data[:HEAD_BYTES]
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(data, final=is_last)
            except UnicodeDecodeError as error:
                offset = done - pending + error.start
                byte = error.object[error.start]
                raise CorpusError(not_utf8(opened.source.name, head, byte, offset)) from None
            done += len(data)
            if text:
                yield text
            report()


def read_lines(
    document: Document, progress: Callable[[int], None] | None = None
) -> Iterator[list[tuple[int, str]]]:
    r"""Read the lines of a text file, or the documents of another one.

    A line includes its line feed. Lines and documents of more than 65,536 characters are split into parts of
    that size.

    Args:
        document: The file.
        progress: Called with the number of stored bytes of each step.

    Yields:
        For each block, its lines or parts of lines with the numbers of their rows, from 1.

    Raises:
        CorpusError: The file cannot be read, is not a corpus, or is not UTF-8.
    """
    source, options = document.source, document.options
    with open_input(source, options) as opened:
        if opened.kind.format != "text" or not options.is_whole:
            done = 0
            with contextlib.closing(opened_batches(0, opened, options)) as batches:
                for batch in batches:
                    numbered = zip(batch.rows.tolist(), batch.texts(), strict=True)
                    yield [(number, part) for number, text in numbered for part in _parts(text)]
                    if progress is not None:
                        progress(opened.bytes_read - done)
                        done = opened.bytes_read
            return
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
