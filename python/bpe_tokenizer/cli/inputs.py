"""The inputs of commands: text, corpora, tokenizers."""

from __future__ import annotations

import codecs
import errno
import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence

import typer

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.train.text_files import HEAD_BYTES, not_utf8

__all__ = ["blocks", "check_inputs", "read_text", "text_blocks"]

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


def text_blocks(source: str) -> Iterator[str]:
    """Yield the UTF-8 text of a file or of standard input (`-`) exactly, as it arrives.

    Raises:
        OptionError: The text is not UTF-8.
        OSError: The file cannot be read.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    done = 0
    head = b""
    for block in itertools.chain(blocks(source), (b"",)):
        head = head or block[:HEAD_BYTES]
        begin = done - len(decoder.getstate()[0])  # of a character that began in an earlier block
        try:
            yield decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            name = "standard input" if source == "-" else source
            byte, offset = error.object[error.start], begin + error.start
            raise OptionError(not_utf8(name, head, byte, offset)) from None
        done += len(block)


def read_text(source: str | None) -> str:
    """Read UTF-8 text exactly: line ends and a byte order mark stay.

    Args:
        source: As an item of `check_inputs`, or None.

    Raises:
        OptionError: The text is not UTF-8, or as in `check_inputs`.
        OSError: The file cannot be read.
        typer.BadParameter: As in `check_inputs`.
    """
    return "".join(map("".join, map(text_blocks, check_inputs(None if source is None else [source]))))
