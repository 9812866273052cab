"""The inputs of commands: text, corpora, tokenizers."""

from __future__ import annotations

import codecs
import errno
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import typer

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.readers.compression import compression_of, decompressed_chunks, may_be_compressed
from bpe_tokenizer.readers.detect import binary_kind
from bpe_tokenizer.readers.opened import ChunkReader
from bpe_tokenizer.train.text_files import HEAD_BYTES, not_utf8

__all__ = ["blocks", "check_inputs", "read_text", "template_source", "text_blocks"]

# Bytes that are read at once.
_BLOCK_BYTES = 1 << 20


def check_inputs(sources: Sequence[str] | None, options: str = "--text or --file") -> list[str]:
    """Return the inputs of a command. A wrong name is an error before any output.

    Args:
        sources: Files; `-` is standard input; None is standard input if it is not a terminal.
        options: The options that name an input, for messages.

    Raises:
        OptionError: An input is a directory, or standard input is named twice.
        OSError: A file does not exist.
        typer.BadParameter: `sources` is None and standard input is a terminal.
    """
    if sources is None:
        if sys.stdin.isatty():
            raise typer.BadParameter(f"no input: name it with {options}, or pipe it in")
        return ["-"]
    for source in sources:
        if source == "-":
            continue
        path = check_path("source", source)
        if path.is_dir():
            raise OptionError(f"{source} is a directory; name its files, such as {path / '*.txt'}")
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
    if list(sources).count("-") > 1:
        raise OptionError("standard input (-) can be read only once")
    return list(sources)


def blocks(source: str) -> Iterator[bytes]:
    """Yield the bytes of a file or of standard input (`-`), as they arrive."""
    if source == "-":
        read: Callable[[int], bytes] = getattr(sys.stdin.buffer, "read1", sys.stdin.buffer.read)
        while block := read(_BLOCK_BYTES):
            yield block
        return
    with check_path("source", source).open("rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def text_blocks(source: str, on_read: Callable[[int], object] | None = None) -> Iterator[str]:
    """Yield the UTF-8 text of a file or of standard input (`-`) exactly, as it arrives.

    A compressed file is decompressed.

    Args:
        source: The file.
        on_read: Called with the number of each block's stored bytes.

    Raises:
        CorpusError: Compressed data is corrupt or truncated, or is not of a text.
        MissingDependencyError: The file is Zstandard, and `backports.zstd` is not installed.
        OptionError: The text is not UTF-8.
        OSError: The file cannot be read.
    """
    name = "standard input" if source == "-" else source
    decoder = codecs.getincrementaldecoder("utf-8")()
    done = 0
    head = b""
    stored = blocks(source) if on_read is None else _reported(blocks(source), on_read)
    for block in itertools.chain(_decompressed(stored, name), (b"",)):
        head = head or block[:HEAD_BYTES]
        begin = done - len(decoder.getstate()[0])  # of a character that began in an earlier block
        try:
            yield decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            byte, offset = error.object[error.start], begin + error.start
            raise OptionError(not_utf8(name, head, byte, offset)) from None
        done += len(block)


def _reported(stored: Iterator[bytes], on_read: Callable[[int], object]) -> Iterator[bytes]:
    for block in stored:
        on_read(len(block))
        yield block


def _decompressed(stored: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Yield the content of a file from its stored bytes."""
    head = b""
    for block in stored:
        head += block
        # A pipe may have few bytes at first, and its next ones may come much later.
        if compression_of(head) is not None or not may_be_compressed(head):
            break
    compression = compression_of(head)
    whole = itertools.chain([head] if head else [], stored)
    if compression is None:
        yield from whole
        return
    for number, chunk in enumerate(decompressed_chunks(ChunkReader(whole), compression, name)):
        if number == 0 and (problem := binary_kind(chunk)):
            raise CorpusError(f"{name[:100]} is {problem}")
        yield chunk


def read_text(source: str | None) -> str:
    """Read UTF-8 text exactly: line ends and a byte order mark stay.

    Args:
        source: As an item of `check_inputs`, or None.

    Raises:
        CorpusError: As in `text_blocks`.
        OptionError: The text is not UTF-8, or as in `check_inputs`.
        OSError: The file cannot be read.
        typer.BadParameter: As in `check_inputs`.
    """
    return "".join(map("".join, map(text_blocks, check_inputs(None if source is None else [source]))))


def template_source(template: str | None) -> str | None:
    """Return the content of a Jinja file; the name of a built-in template, and None, as they are."""
    return read_text(template) if template is not None and Path(template).is_file() else template
