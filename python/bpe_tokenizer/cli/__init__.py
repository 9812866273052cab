"""The command line: `bpe-tokenizer`, one file a command."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from bpe_tokenizer.cli.chat import chat
from bpe_tokenizer.cli.compare import compare
from bpe_tokenizer.cli.convert import convert
from bpe_tokenizer.cli.count import count
from bpe_tokenizer.cli.decode import decode
from bpe_tokenizer.cli.demo import demo
from bpe_tokenizer.cli.encode import encode
from bpe_tokenizer.cli.info import info
from bpe_tokenizer.cli.report import report
from bpe_tokenizer.cli.run import reports_errors
from bpe_tokenizer.cli.tokenize_corpus import tokenize_corpus
from bpe_tokenizer.cli.train import train
from bpe_tokenizer.cli.view import view

__all__ = ["app", "main", "repeat_options"]

# The options that take several values.
_REPEATABLE = frozenset(
    {"--allowed-special", "--corpus", "--counts", "--drop", "--ids", "--message", "--special", "--weights"}
)

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)
_COMMANDS = (
    train,
    count,
    encode,
    decode,
    chat,
    info,
    convert,
    compare,
    report,
    tokenize_corpus,
    view,
    demo,
)
for command in _COMMANDS:
    app.command()(reports_errors(command))


def _print_version(wanted: bool) -> None:
    if wanted:
        from bpe_tokenizer import __version__

        print(f"bpe-tokenizer {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Train byte-level BPE tokenizers, encode and decode with them, and talk to language models."""


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """Write an option's name before each of its values: `--ids 1 2` becomes `--ids 1 --ids 2`.

    Typer takes one value an option. The values of an option reach to the next argument that begins
    with `-`; a lone `-` (standard input) is a value.

    Args:
        arguments: The command line, without the program's name.

    Returns:
        The command line as Typer reads it.

    Example:
        >>> repeat_options(["decode", "--ids", "9906", "11", "--debug"])
        ['decode', '--ids', '9906', '--ids', '11', '--debug']
    """
    repeated: list[str] = []
    option = ""
    first = False
    for argument in arguments:
        if argument.startswith("-") and argument != "-":
            name, equals, _ = argument.partition("=")
            option, first = (name if name in _REPEATABLE else ""), not equals
        elif option and not first:
            repeated.append(option)
        else:
            first = False
        repeated.append(argument)
    return repeated


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Exit codes: 0 done, 1 an error with one line about it, 2 a wrong command line, 130 Ctrl-C,
    141 the reader of the output went away.

    Args:
        arguments: The command line, without the program's name; None takes the process's own.

    Raises:
        SystemExit: Always, with the exit code.

    Example:
        >>> main(["--version"])
        Traceback (most recent call last):
        SystemExit: 0
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A token that the terminal's encoding lacks is shown escaped instead of ending the run.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(args=repeat_options(sys.argv[1:] if arguments is None else arguments), prog_name="bpe-tokenizer")
    raise SystemExit(0)
