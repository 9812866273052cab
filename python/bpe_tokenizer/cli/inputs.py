"""The inputs of commands: text, corpora, tokenizers."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.errors import OptionError

__all__ = ["corpus_paths", "read_text"]


def read_text(source: str | None) -> str:
    """Read UTF-8 text exactly: line ends and a byte order mark stay.

    Args:
        source: A file; `-` is standard input; None is standard input if it is not a terminal.

    Raises:
        OptionError: The text is not UTF-8.
        OSError: The file cannot be read.
        typer.BadParameter: `source` is None and standard input is a terminal.
    """
    if source is None and sys.stdin.isatty():
        raise typer.BadParameter("no input: name it with an option, or pipe it in")
    is_stdin = source is None or source == "-"
    data = (
        sys.stdin.buffer.read()
        if source is None or source == "-"
        else check_path("source", source).read_bytes()
    )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OptionError(
            f"{'standard input' if is_stdin else source} is not UTF-8: "
            f"byte 0x{data[error.start]:02x} at offset {error.start}; convert it to UTF-8 first"
        ) from None


@contextmanager
def corpus_paths(corpus: Sequence[str]) -> Iterator[list[Path]]:
    """Yield the corpus as files. Standard input (`-`) becomes a temporary file: the core reads files only."""
    with tempfile.TemporaryDirectory() as directory:
        piped = Path(directory) / "standard-input"
        if "-" in corpus:
            with piped.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        yield [piped if name == "-" else check_path("name", name) for name in corpus]
