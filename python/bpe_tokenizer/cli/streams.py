"""The standard streams and the variables of the environment, made usable."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import IO, Any

from bpe_tokenizer.console import is_size
from bpe_tokenizer.errors import escaped

__all__ = ["binary_output", "discard_output", "make_usable", "wrapped"]


def make_usable() -> None:
    """Give the process all standard streams, and drop sizes of the terminal that are not sizes.

    A closed stream (`>&-`) is None in Python, and the next file that is opened gets its number. In its place
    comes a stream that fails to read or write and says why; on standard error, one that discards.
    """
    for variable in ("COLUMNS", "LINES"):
        if variable in os.environ and not is_size(os.environ[variable]):
            del os.environ[variable]
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_replacement(_ClosedInput, 0, os.O_WRONLY, "r")))
    if sys.stdout is None:
        closed = _replacement(_ClosedOutput, 1, os.O_RDONLY, "w")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(closed), encoding="utf-8")
    if sys.stderr is None:
        discarded = _replacement(io.FileIO, 2, os.O_RDWR, "w")
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(discarded), encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Escapes characters that the terminal's encoding lacks, instead of failing.
        sys.stdout.reconfigure(errors="backslashreplace")


class _ClosedInput(io.FileIO):
    """Standard input that was closed: reading it fails."""

    def readinto(self, buffer: Any, /) -> int | None:
        with _failure_says("standard input is closed; give a file, or text through a pipe"):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with _failure_says("standard input is closed; give a file, or text through a pipe"):
            return super().readall()


class _ClosedOutput(io.FileIO):
    """Standard output that was closed: writing to it fails, until `discard_output`."""

    def write(self, data: Any, /) -> int:
        with _failure_says("standard output is closed; send it to a file or a pipe"):
            return super().write(data)


@contextlib.contextmanager
def _failure_says(message: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, message) from None


def _replacement(kind: type[io.FileIO], number: int, flags: int, mode: str) -> io.FileIO:
    opened = os.open(os.devnull, flags)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)
    return kind(number, mode, closefd=False)


def discard_output() -> None:
    """Discard the buffered output; otherwise Python reports at its exit that it cannot be written."""
    with contextlib.suppress(OSError):  # a stream without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def binary_output(is_binary: bool) -> Callable[[bytes | memoryview], None]:
    """Return a function that writes bytes to standard output, all of them, in the blocks that it gets.

    With `PYTHONUNBUFFERED=1` the stream has no buffer: it may write a part only, and each write is a system
    call.

    Args:
        is_binary: Whether the bytes are binary numbers, which are not written to a terminal.

    Raises:
        typer.BadParameter: Standard output is a terminal, and the bytes are binary numbers.
    """
    if is_binary and sys.stdout.isatty():
        import typer  # the program's version is printed without it

        raise typer.BadParameter("binary ids are not for a terminal; write them to a file with > ids.bin")
    sys.stdout.flush()
    stream = sys.stdout.buffer

    def write(data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            written: int | None = stream.write(rest)
            if written is None:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), "standard output")
            rest = rest[written:]

    return write


def wrapped(text: str, stream: IO[str]) -> str:
    """Return an escaped line, wrapped at words if the stream is a terminal; programs get the whole line."""
    text = escaped(text)
    if not stream.isatty():
        return text
    columns = shutil.get_terminal_size().columns
    return textwrap.fill(text, columns, break_long_words=False, break_on_hyphens=False)
