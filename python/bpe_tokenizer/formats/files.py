"""Reads files, with errors that name them."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from bpe_tokenizer.errors import FormatError, TokenizerError, TokenizerFileNotFoundError, shorten

__all__ = ["check_regular", "decode_text", "read_bytes", "read_errors", "read_together"]

_Result = TypeVar("_Result")

# How often files that another process replaces meanwhile are read again.
_MAX_READS = 50


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        FormatError: It cannot be read.
    """
    with read_errors(path):
        check_regular(path)
        return path.read_bytes()


def decode_text(data: bytes, file: str | os.PathLike[str]) -> str:
    """Return the text of a file's bytes.

    Args:
        data: The bytes.
        file: The file's name, for messages.

    Raises:
        FormatError: They are not UTF-8.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(file, error) from error


def _not_utf8(file: str | os.PathLike[str], error: UnicodeDecodeError) -> FormatError:
    byte = error.object[error.start]
    return FormatError(f"{os.fspath(file)}: is not UTF-8: byte 0x{byte:02x} at offset {error.start}")


def check_regular(path: Path) -> None:
    """Refuse a device, a pipe or a socket, whose reading may never end.

    Raises:
        FormatError: The path is one of these.
        OSError: It does not exist.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise FormatError(f"{path}: is not a regular file, but a device or a pipe")


@contextlib.contextmanager
def read_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the operating system and of decoding into a `FormatError` that names the path.

    Args:
        path: What is read.
    """
    try:
        yield
    except TokenizerError:
        raise
    except OSError as error:
        kind = TokenizerFileNotFoundError if isinstance(error, FileNotFoundError) else FormatError
        raise kind(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from error
    except ValueError as error:
        # A path with a zero byte or a lone surrogate.
        if not isinstance(error, UnicodeEncodeError) and "\0" not in os.fspath(path):
            raise
        raise FormatError(f"{shorten(os.fspath(path))}: cannot be read: {error}") from error


def read_together(
    read: Callable[[], _Result],
    paths: Iterable[Path],
    belong_together: Callable[[_Result], bool] = lambda _: False,
) -> _Result:
    """Read several files again if one of them is replaced meanwhile, as when another process saves.

    Args:
        read: Reads the files.
        paths: The files.
        belong_together: Whether a result shows that its files were saved together.

    Raises:
        FormatError: `read` raises it, and no file is replaced meanwhile.
    """
    files = list(paths)
    for _ in range(_MAX_READS):
        before = [_version(path) for path in files]
        try:
            result = read()
        except FormatError:
            if before == [_version(path) for path in files]:
                raise
        else:
            if belong_together(result) or before == [_version(path) for path in files]:
                return result
    return read()


def _version(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
