"""The Typer application: the chosen command, its errors and exit codes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, ParamSpec

import typer

from bpe_tokenizer.cli.commands import COMMANDS
from bpe_tokenizer.cli.streams import discard_output
from bpe_tokenizer.errors import TokenizerError

__all__ = ["create_app"]

_Parameters = ParamSpec("_Parameters")


def create_app(command: str) -> typer.Typer:
    """Return the application with one command, or with all of them as lines of the help.

    Args:
        command: The first argument of the command line. If it is not a command, no command is imported.
    """
    app = typer.Typer(
        add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
    )
    app.callback()(_options)
    if command in COMMANDS:
        function = command.replace("-", "_")
        module = import_module(f"bpe_tokenizer.cli.{function}")
        app.command(command)(_exit_with_code(getattr(module, function)))
    else:
        for name, summary in COMMANDS.items():
            app.command(name, short_help=summary)(_placeholder)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from bpe_tokenizer import __version__

        print(f"bpe-tokenizer {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Train byte-level BPE tokenizers, encode and decode with them, and talk to language models."""


def _placeholder() -> None:
    """Show a command in the help."""


def _exit_with_code(command: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """Make a command end an expected error with a message of one line and an exit code.

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
            discard_output()
            raise typer.Exit(141) from None
        except (TokenizerError, OSError) as error:
            if kwargs.get("debug"):
                raise
            try:
                sys.stdout.flush()
            except OSError:
                discard_output()
            print(f"bpe-tokenizer: {_one_line(error)}", file=sys.stderr)
            raise typer.Exit(1) from None

        except (typer.BadParameter, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if kwargs.get("debug"):
                raise
            said = "not enough memory" if isinstance(error, MemoryError) else _one_line(error)
            kind = "" if isinstance(error, MemoryError) else f"unexpected {type(error).__name__}: "
            print(f"bpe-tokenizer: {kind}{said}; --debug shows where", file=sys.stderr)
            raise typer.Exit(1) from None

    return run


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, TokenizerError) and error.strerror:
        parts = [str(error.filename)] if error.filename is not None else []
        return ": ".join([*parts, error.strerror])
    return " ".join(str(error).splitlines())
