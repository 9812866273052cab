"""What to type instead of a wrong command line."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bpe_tokenizer.cli.commands import OPERANDS, REPEATABLE, option_name
from bpe_tokenizer.errors import shorten

__all__ = ["unexpected_arguments", "unknown_option", "wrong_dashes"]

_COUNT_TOKENS = "to count tokens, type bpe-tokenizer encode --count --tokenizer NAME --file FILE"
_REDIRECT = "the output goes to a file with > FILE at the end of the line"
_ARGUMENTS = "write the two paths IN and OUT without a name"

# What to type instead of an option that a command does not have.
_INSTEAD: Mapping[str, Mapping[str, str]] = {
    "count": dict.fromkeys(("--tokenizer", "-t", "--text", "--file", "-f"), _COUNT_TOKENS),
    "encode": dict.fromkeys(("--output", "-o"), _REDIRECT),
    "decode": dict.fromkeys(("--output", "-o"), _REDIRECT),
    "convert": dict.fromkeys(("--tokenizer", "-t", "--input", "-i", "--output", "-o"), _ARGUMENTS),
}
# Options of other programs, and those here that may be meant.
_MEANT: Mapping[str, Sequence[str]] = {
    "-c": ("--corpus",),
    "-e": ("--tokenizer",),
    "-i": ("--corpus", "--file", "--ids"),
    "-m": ("--tokenizer",),
    "-n": ("--vocab-size",),
    "-p": ("--split-pattern",),
    "-s": ("--special", "--show-tokens"),
    "-v": ("--vocab-size",),
    "--encoding": ("--tokenizer",),
    "--file": ("--corpus",),
    "-f": ("--corpus",),
    "--input": ("--corpus", "--file", "--ids"),
    "--model": ("--tokenizer",),
    "--model-prefix": ("--output",),
}
# Values of a suggestion that are shown, and characters of each.
_SHOWN, _MAX_SHOWN = 4, 40


def unexpected_arguments(command: str, extra: Sequence[str], given: Mapping[str, Any]) -> str:
    """Return the message for arguments without an option's name.

    Args:
        command: The command.
        extra: The arguments.
        given: The values of the options that are given, by parameter name.

    Example:
        >>> unexpected_arguments("encode", ["gpt2", "some text"], {})
        "Unexpected argument 'gpt2'; write --tokenizer gpt2 --text 'some text'"
    """
    named = {f"--{option_name(name)}" for name in given}
    if "--file" in named:
        named |= {"--text", "--ids"}
    missing = [name for name in OPERANDS.get(command, ()) if name not in named]
    if "--ids" in missing and all(map(str.isdigit, extra)):
        missing = ["--ids"]
    written = ""
    if not missing and given.get("text") is not None:
        written = _written("--text", [given["text"], *extra])
    elif len(extra) < len(missing):
        written = " or ".join(_written(name, extra) for name in missing)
    elif missing and (len(extra) == len(missing) or missing[-1] in REPEATABLE | {"--text"}):
        single = len(missing) - 1
        parts = [_written(name, [value]) for name, value in zip(missing, extra[:single], strict=False)]
        written = " ".join([*parts, _written(missing[-1], extra[single:])])
    message = f"Unexpected argument {shorten(extra[0])}" + (f"; write {written}" if written else "")
    return f"{message}; {_COUNT_TOKENS}" if command == "count" else message


def _written(option: str, values: Sequence[str]) -> str:
    """Return an option with its values, as a shell reads them."""
    if option == "--text":
        if all(map(os.path.isfile, values)):
            option = "--file"
        else:
            values = [" ".join(values)]
    shown = [shlex.quote(value) if value.isprintable() else "..." for value in map(_cut, values[:_SHOWN])]
    return " ".join([option, *shown, *(["..."] if len(values) > _SHOWN else [])])


def _cut(value: str) -> str:
    return value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}..."


def unknown_option(command: str, option: str, options: Collection[str]) -> str:
    """Return what to type instead of an option that a command does not have; "" if that is not known.

    Args:
        command: The command.
        option: The option.
        options: The options that the command has.

    Example:
        >>> unknown_option("train", "--input", ["--corpus", "--output"])
        'write --corpus'
    """
    instead = _INSTEAD.get(command, {}).get(option)
    if instead is not None:
        return instead
    meant = [name for name in _MEANT.get(option, ()) if name in options]
    return f"write {' or '.join(meant)}" if meant else ""


def wrong_dashes(arguments: Sequence[str], options: Collection[str]) -> str:
    """Return the message for an option with one dash instead of two, which would be short options; or "".

    Example:
        >>> wrong_dashes(["-tokenizer", "gpt2"], ["--tokenizer", "-t"])
        'No such option: -tokenizer; write --tokenizer'
    """
    for argument in arguments:
        name = argument.partition("=")[0]
        if name[:1] == "-" and name[1:2] != "-" and len(name) > 2:
            known = f"--{option_name(name[1:])}"
            if known in options:
                return f"No such option: {name}; write {known}"
    return ""
