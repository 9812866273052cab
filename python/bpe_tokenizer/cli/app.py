"""The Typer application: the chosen command, its errors and exit codes."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib import import_module
from typing import Annotated, Any, ParamSpec

import typer
import typer.core

from bpe_tokenizer.cli.commands import COMMANDS, EXAMPLES, option_name
from bpe_tokenizer.cli.streams import discard_output, wrapped
from bpe_tokenizer.cli.usage import (
    in_options,
    repeated_option,
    unexpected_arguments,
    unknown_option,
    wrong_dashes,
)
from bpe_tokenizer.errors import TokenizerError, shorten

__all__ = ["create_app", "word_to_complete"]

_Parameters = ParamSpec("_Parameters")

_PROGRAM = "bpe-tokenizer"
# Columns of the help.
_MIN_WIDTH, _MAX_WIDTH = 20, 80
# From this width on, options and their descriptions are in two columns.
_MIN_TWO_COLUMNS = 60
# The errors of pydantic for the value of an option.
_NUMBER_ERRORS = {
    "int_parsing": "not a whole number",
    "float_parsing": "not a number",
    "greater_than_equal": "less than {ge}",
    "less_than_equal": "greater than {le}",
}
# `UsageError` of the click that Typer uses: its own copy or the package.
_UsageError: Any = typer.BadParameter.__bases__[0]


def create_app(command: str) -> typer.Typer:
    """Return the application with one command, or with all of them as lines of the help.

    Args:
        command: The first argument of the command line. If it is not a command, no command is imported.
    """
    app = typer.Typer(
        cls=_Group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={
            "help_option_names": ["--help", "-h"],
            "terminal_width": _width(),
            "token_normalize_func": option_name,
        },
    )
    app.callback(epilog=_example(""))(_options)
    if command in COMMANDS:
        function = command.replace("-", "_")
        module = import_module(f"bpe_tokenizer.cli.{function}")
        run = _exit_with_code(getattr(module, function))
        app.command(command, cls=_Command, epilog=_example(command))(run)
    else:
        for name, summary in COMMANDS.items():
            app.command(name, short_help=summary)(_placeholder)
    return app


def word_to_complete() -> str:
    """Return the command of the line that a shell wants to complete; "" if there is none."""
    if f"_{_PROGRAM.replace('-', '_').upper()}_COMPLETE" not in os.environ:
        return ""
    words = os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", "")).split()
    return words[1] if len(words) > 1 else ""


def _width() -> int:
    """Return the columns of help and errors. Lines are at most as long as in a terminal of 80 columns."""
    return max(_MIN_WIDTH, min(_MAX_WIDTH, shutil.get_terminal_size().columns))


def _example(command: str) -> str:
    return f"Example: {EXAMPLES[command]}"


class _UsageErrors:
    """Adds a line that works to the errors of a command line, and fits the help into narrow terminals."""

    name: str | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for each in self.get_params(ctx):  # type: ignore[attr-defined]
            if each.param_type_name == "argument":  # Typer shows the type beside the name: `IN <str>`
                each.display_type_rich = lambda ctx: ""
        if formatter.width < _MIN_TWO_COLUMNS:
            formatter.write_dl = functools.partial(_write_definitions, formatter)
            formatter.write_usage = functools.partial(_write_usage, formatter)
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        shows_help = not args and self.no_args_is_help  # type: ignore[attr-defined]
        try:
            if not ctx.resilient_parsing:
                self.check_args(ctx, args)
            parsed: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        except _UsageError as error:
            if shows_help:  # with its example
                raise
            raise _with_example(error, self.name or "") from None
        return parsed

    def check_args(self, ctx: Any, args: list[str]) -> None:
        """Refuse what Typer would accept or explain badly."""


def _write_definitions(formatter: Any, rows: Sequence[tuple[str, str]], *_: Any, **__: Any) -> None:
    """Write each definition under its name instead of beside it."""
    width = formatter.width - formatter.current_indent
    for name, text in rows:
        for content, indent in ((name, 0), (text, 4)):
            lines = textwrap.wrap(content, width - indent, break_long_words=False, break_on_hyphens=False)
            for line in lines:
                formatter.write(" " * (formatter.current_indent + indent) + line + "\n")


def _write_usage(formatter: Any, program: str, arguments: str = "", *_: Any, **__: Any) -> None:
    """Write the line of the usage, wrapped at its words."""
    line = f"Usage: {program} {arguments}"
    lines = textwrap.wrap(
        line, formatter.width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    formatter.write("".join(f"{line}\n" for line in lines))


def _with_example(error: Any, command: str) -> Any:
    """Let an error show an example after its message."""
    error.message = _wrong_number(error.__cause__) or error.message
    shown, example = error.format_message, _example(command if command in EXAMPLES else "")
    if hasattr(error, "option_name") and hasattr(error, "possibilities"):  # an unknown option
        options = [name for each in error.ctx.command.get_params(error.ctx) for name in each.opts]
        hint = unknown_option(command, error.option_name, options)
        if hint:
            shown = f"{error.message}; {hint}".format
    error.format_message = lambda: "\n".join(wrapped(line, sys.stderr) for line in (shown(), example))
    return error


def _wrong_number(cause: Any) -> str:
    """Return what is wrong with a number, if pydantic, which Typer calls, refuses it; otherwise ""."""
    if type(cause).__name__ != "ValidationError":
        return ""
    found = cause.errors()[0]
    said = _NUMBER_ERRORS.get(found["type"], "").format(**found.get("ctx", {}))
    return said and f"{shorten(str(found['input']))} is {said}."


class _Command(_UsageErrors, typer.core.TyperCommand):
    """A command whose errors show an example."""

    def check_args(self, ctx: Any, args: list[str]) -> None:
        options = [name for each in self.get_params(ctx) for name in each.opts]
        problem = wrong_dashes(args, options)
        if not problem:
            given, extra, order = self.make_parser(ctx).parse_args(list(args))
            if not given.get("help"):
                problem = repeated_option(each.opts[0] for each in order if not each.multiple)
                if extra:
                    problem = unexpected_arguments(self.name or "", extra, given)
        if problem:
            raise _UsageError(problem, ctx)


class _Group(_UsageErrors, typer.core.TyperGroup):
    """The program, whose errors show an example."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except _UsageError as error:
            if error.message.startswith("No such command") and "Did you mean" not in error.message:
                error.message += f" The commands are {', '.join(self.list_commands(ctx))}."
            raise _with_example(error, "") from None


def _print_version(wanted: bool) -> None:
    if wanted:
        from bpe_tokenizer import __version__

        print(f"bpe-tokenizer {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            "-v",
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
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
        from bpe_tokenizer.train.progress import progress_lines

        try:
            with progress_lines(), _plain_warnings(kwargs):
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
            said = in_options(_one_line(error), kwargs)
            print(wrapped(f"bpe-tokenizer: {said}", sys.stderr), file=sys.stderr)
            raise typer.Exit(1) from None

        except (typer.BadParameter, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if kwargs.get("debug"):
                raise
            said = "not enough memory" if isinstance(error, MemoryError) else _one_line(error)
            kind = "" if isinstance(error, MemoryError) else f"unexpected {type(error).__name__}: "
            said = wrapped(f"bpe-tokenizer: {kind}{said}; --debug shows where", sys.stderr)
            print(said, file=sys.stderr)
            raise typer.Exit(1) from None

    return run


@contextlib.contextmanager
def _plain_warnings(parameters: Collection[str]) -> Iterator[None]:
    """Show each warning as one line on standard error, also where Python is told to raise it."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        said = in_options(" ".join(str(message).splitlines()), parameters)
        with contextlib.suppress(OSError):  # standard error may be closed
            print(wrapped(f"warning: {said}", sys.stderr), file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        if any(option.startswith("e") for option in sys.warnoptions):  # `error`, which may be cut
            warnings.simplefilter("default")
        yield


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, TokenizerError) and error.strerror:
        parts = [str(error.filename)] if error.filename is not None else []
        return ": ".join([*parts, error.strerror])
    return " ".join(str(error).splitlines())
