"""What every command does alike: report errors, read its input, load its tokenizer."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec

import typer

from bpe_tokenizer.errors import OptionError, TokenizerError

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = [
    "Debug",
    "TokenizerDirectory",
    "allowed_tokens",
    "load_tokenizer",
    "parse_ids",
    "read_text",
    "reports_errors",
]

_Parameters = ParamSpec("_Parameters")

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
TokenizerDirectory = Annotated[
    Path,
    typer.Option(
        "--tokenizer",
        metavar="PATH",
        help="A saved tokenizer: a directory or file of any format that BPETokenizer.load knows.",
        show_default=False,
    ),
]


def reports_errors(command: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """Make a command end in one line and an exit code where it meets an expected error.

    Args:
        command: A command with a `debug` parameter; True lets the error through.

    Returns:
        The command with the same signature.
    """

    @functools.wraps(command)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # What is still buffered has no reader: without this, Python complains when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(141) from None
        except (TokenizerError, OSError) as error:
            if kwargs.get("debug"):
                raise
            print(f"bpe-tokenizer: {_describe(error)}", file=sys.stderr)
            raise typer.Exit(1) from None

    return run


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        parts = [str(error.filename)] if error.filename is not None else []
        return ": ".join([*parts, error.strerror])
    return " ".join(str(error).splitlines())


def allowed_tokens(names: list[str] | None) -> str | set[str]:
    """Return `--allowed-special` as `allowed_special`: `"none"` or `"all"`, or the tokens that are named."""
    if names is None:
        return "none"
    return names[0] if names in (["all"], ["none"]) else set(names)


def load_tokenizer(directory: Path) -> BPETokenizer:
    """Load the tokenizer of `--tokenizer`."""
    from bpe_tokenizer import BPETokenizer

    return BPETokenizer.load(directory)


def read_text(source: str | None) -> str:
    """Read text in UTF-8 exactly as it stands: line ends and a byte order mark are kept.

    Args:
        source: A file; `-` is standard input; None is standard input if something is piped into it.

    Returns:
        The text.

    Raises:
        OptionError: The text is not UTF-8.
        OSError: The file cannot be read.
        typer.BadParameter: `source` is None and nothing is piped in.
    """
    if source is None and sys.stdin.isatty():
        raise typer.BadParameter("no input: name it with an option, or pipe it in")
    piped = source in (None, "-")
    name = "standard input" if piped else str(source)
    data = sys.stdin.buffer.read() if source is None or source == "-" else Path(source).read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OptionError(
            f"{name} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}; "
            "convert it to UTF-8 first"
        ) from None


def parse_ids(text: str) -> list[int]:
    """Read ids: numbers between white space or commas, a JSON list, or what `encode --json` prints.

    Args:
        text: The ids as text.

    Returns:
        The ids.

    Raises:
        OptionError: Something in the text is not an id.

    Example:
        >>> parse_ids("9906 11"), parse_ids("[9906, 11]"), parse_ids('{"ids": [9906, 11]}')
        ([9906, 11], [9906, 11], [9906, 11])
    """
    if text.lstrip()[:1] in ("[", "{"):
        return _ids_of_json(text)
    ids: list[int] = []
    for word in text.replace(",", " ").split():
        if not (word.isascii() and word.isdigit()):
            raise OptionError(f"{word!r} is not an id: ids are whole numbers from 0 on")
        ids.append(int(word))
    return ids


def _ids_of_json(text: str) -> list[int]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise OptionError(f"the ids are not valid JSON: {error}") from None
    ids = value.get("ids") if isinstance(value, dict) else value
    if not isinstance(ids, list):
        raise OptionError('JSON ids must be a list of numbers, or an object with such a list as "ids"')
    for each in ids:
        if type(each) is not int or each < 0:
            raise OptionError(f"{each!r} is not an id: ids are whole numbers from 0 on")
    return ids
