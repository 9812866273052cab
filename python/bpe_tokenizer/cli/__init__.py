"""The command line: `bpe-tokenizer`, one file a command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from bpe_tokenizer.cli.commands import FILE_COMMANDS, REPEATABLE, option_name
from bpe_tokenizer.errors import MissingDependencyError
from bpe_tokenizer.libraries import import_library

__all__ = ["main", "repeat_options"]


def repeat_options(arguments: Sequence[str]) -> list[str]:
    """Write an option's name before each of its values: `--ids 1 2` becomes `--ids 1 --ids 2`.

    Typer accepts one value for each option name. The values of an option end before the next argument that
    starts with `-`; a lone `-` (standard input) is a value.

    Args:
        arguments: The command line without the program's name.

    Returns:
        The command line for Typer.

    Example:
        >>> repeat_options(["decode", "--ids", "9906", "11", "--debug"])
        ['decode', '--ids', '9906', '--ids', '11', '--debug']
    """
    repeatable = REPEATABLE | {"--file", "-f"} if FILE_COMMANDS & {*arguments[:1]} else REPEATABLE
    repeated: list[str] = []
    option = ""
    is_first = False
    for argument in arguments:
        if argument.startswith("-") and argument != "-":
            name, equals, _ = argument.partition("=")
            known = f"--{option_name(name[2:])}" if name.startswith("--") else name
            option, is_first = (name if known in repeatable else ""), not equals
        elif option and not is_first:
            repeated.append(option)
        else:
            is_first = False
        repeated.append(argument)
    return repeated


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit.

    Exit codes: 0 success, 1 an error with a message of one line, 2 a wrong command line, 130 Ctrl-C, 141 the
    reader of the output is gone.

    Args:
        arguments: The command line without the program's name; None uses the process's own.

    Raises:
        SystemExit: Always, with the exit code.

    Example:
        >>> main(["--version"])
        Traceback (most recent call last):
        SystemExit: 0
    """
    from bpe_tokenizer.cli.streams import discard_output, make_usable

    make_usable()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        _run(arguments)
    except OSError as error:  # of the help and the version; commands report their own errors
        if "--debug" in arguments:
            raise
        discard_output()
        if isinstance(error, BrokenPipeError):
            raise SystemExit(141) from None
        print(f"bpe-tokenizer: {error.strerror or error}", file=sys.stderr)
        raise SystemExit(1) from None


def _run(arguments: list[str]) -> NoReturn:
    # Typer takes five times as long to import as this takes to run.
    if arguments in (["--version"], ["-V"], ["-v"]):
        from bpe_tokenizer import __version__

        print(f"bpe-tokenizer {__version__}", flush=True)
        raise SystemExit(0)
    try:
        import_library("typer", "cli")
    except MissingDependencyError as error:
        if arguments not in (["doctor"], ["doctor", "--json"]):
            print(f"bpe-tokenizer: {error}", file=sys.stderr)
            raise SystemExit(1) from None
        from bpe_tokenizer.cli.installation import Installation

        found = Installation.examined()
        print(found.to_json() if arguments[1:] else found)
        raise SystemExit(0) from None
    from bpe_tokenizer.cli.app import create_app, word_to_complete

    if arguments[:1] == ["help"]:
        arguments = [*(name for name in arguments[1:2] if name != "help"), "--help", *arguments[2:]]
    app = create_app(option_name(word_to_complete() or (arguments[0] if arguments else "")))
    app(args=repeat_options(arguments), prog_name="bpe-tokenizer")
    raise SystemExit(0)
