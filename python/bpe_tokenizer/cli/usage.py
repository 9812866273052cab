"""What to type instead of a wrong command line, and the errors of the package with names of options."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bpe_tokenizer.cli.commands import FILE_COMMANDS, OPERANDS, REPEATABLE, option_name
from bpe_tokenizer.errors import shorten

__all__ = ["in_options", "repeated_option", "unexpected_arguments", "unknown_option", "wrong_dashes"]

_COUNT_TOKENS = "to count tokens, type bpe-tokenizer encode --count --tokenizer NAME --file FILE"
_REDIRECT = "the output goes to a file with > FILE at the end of the line"
_ARGUMENTS = "write the two paths IN and OUT without a name"
_LINES = (
    "to encode each line as a document, type "
    "bpe-tokenizer tokenize-corpus --tokenizer NAME --corpus FILE --output DIR"
)
_TOKENS = "the ids are the default, and --show-tokens shows the tokens too"
_FIRST_IDS = "for the first N ids, end the line with | cut -d ' ' -f -N"

# What to type instead of an option that a command does not have.
_INSTEAD: Mapping[str, Mapping[str, str]] = {
    "count": dict.fromkeys(("--tokenizer", "-t", "--text", "--file", "-f"), _COUNT_TOKENS),
    "encode": {
        **dict.fromkeys(("--output", "-o"), _REDIRECT),
        "--lines": _LINES,
        **dict.fromkeys(("--pieces", "--tokens", "--out-type", "--output-type"), _TOKENS),
        **dict.fromkeys(("--max-length", "--max-tokens", "--truncate", "--truncation"), _FIRST_IDS),
    },
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
# Neither in a path, a quotation or code, nor an argument of a call, nor a part of another name.
_BEFORE, _AFTER = r"(?<![\w./'\"`=-])(?<!\.\.\., )", r"(?![\w/('\"`=-]|\.\w)"
# Parts of the package's messages that name calls, and what they are on the command line.
_PHRASES = (
    (
        r"save writes a directory: .*",
        "this format is a directory; `bpe-tokenizer convert IN OUT --to gguf` (or minbpe, tiktoken) writes "
        "a file",
    ),
    (r"[a-z_]+=\S+ \((?:on the command line: )?(--[^)]*?)(?: on the command line)?\)", r"\1"),
    (r"with_normalization\(None\), or `convert (--normalization none)`,", r"\1"),
    (r"`special_tokens` lists them; add_special_tokens\(\) adds one", "`bpe-tokenizer info` lists them"),
    # Of the parts that `merge-manifests` joins, which has no such option.
    (rf"{_BEFORE}val_fraction{_AFTER}", "--val-fraction"),
    # As an option, `add_special_tokens` adds BOS and EOS.
    (r"add them with add_special_tokens, |add_special_tokens adds tokens; ", ""),
    (
        r"bpe_tokenizer\.load\('([^']*)'\) loads a published tokenizer",
        r"a published tokenizer is --tokenizer \1",
    ),
)
# Arguments of the package whose parameters of commands have other names.
_PARAMETERS = {
    "special_tokens": "special",
    "checkpoint_seconds": "checkpoint_every",
    "max_new_tokens": "max_tokens",
    "unit_bytes": "unit_size",
}
# Options that name an input or an output, and what. A command that takes several of one has it as a list.
_SINGLE = {
    "--text": "text",
    "--file": "file",
    "--output": "path",
    "--html": "path",
}
# The name of a file that need not exist.
_FILE_NAME = re.compile(r"\S+\.[A-Za-z][A-Za-z0-9]{0,4}")
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
        written = _written("--text", [given["text"], *extra], several_files=command in FILE_COMMANDS)
    elif len(extra) < len(missing):
        written = " or ".join(_written(name, extra) for name in missing)
    elif missing and (len(extra) == len(missing) or missing[-1] in REPEATABLE | {"--text"}):
        single = len(missing) - 1
        parts = [_written(name, [value]) for name, value in zip(missing, extra[:single], strict=False)]
        several = command in FILE_COMMANDS
        written = " ".join([*parts, _written(missing[-1], extra[single:], several_files=several)])
    message = f"Unexpected argument {shorten(extra[0])}" + (f"; write {written}" if written else "")
    return f"{message}; {_COUNT_TOKENS}" if command == "count" else message


def repeated_option(options: Iterable[str]) -> str:
    """Return the message for an input or an output that is given twice, and would be lost; "" if none is.

    Args:
        options: The options that have a single value, once for each time that they are given. Of a setting
            that is given twice, the last value counts.

    Example:
        >>> repeated_option(["--text", "--threads", "--text", "--threads"])
        '--text is one text; run the command once for each'
    """
    counts = Counter(options)
    repeated = (f"{name} is one {noun}" for name, noun in _SINGLE.items() if counts[name] > 1)
    return next((f"{each}; run the command once for each" for each in repeated), "")


def _written(option: str, values: Sequence[str], *, several_files: bool = False) -> str:
    """Return an option with its values, as a shell reads them."""
    if option == "--text":
        files = [*filter(os.path.isfile, values)]
        others = [value for value in values if value not in files]
        directories = [*filter(os.path.isdir, others)]
        if all(value in directories or _FILE_NAME.fullmatch(value) for value in others):
            absent = f"; there is no file {_listed(others[:1])}" if others else ""
            shown = f"--file {_listed(files if several_files else files[:1])}" if files else ""
            return (shown or f"--text {_listed([' '.join(values)])}") + absent
        values = [" ".join(values)]
    return f"{option} {_listed(values)}"


def _listed(values: Sequence[str]) -> str:
    shown = [shlex.quote(value) if value.isprintable() else "..." for value in map(_cut, values[:_SHOWN])]
    return " ".join([*shown, *(["..."] if len(values) > _SHOWN else [])])


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


def in_options(message: str, parameters: Collection[str]) -> str:
    """Return an error's message with the options of a command instead of the package's arguments.

    Args:
        message: The message.
        parameters: The names of the command's parameters.

    Example:
        >>> in_options("vocab_size is 5; or accept it with plain_markup=True", ["vocab_size", "plain_markup"])
        '--vocab-size is 5; or accept it with --plain-markup'
        >>> in_options("use dtype='uint32', and np.memmap(..., dtype=np.uint32) to read", ["dtype"])
        "use --dtype 'uint32', and np.memmap(..., dtype=np.uint32) to read"
    """
    for pattern, text in _PHRASES:
        message = re.sub(pattern, text, message)
    if "split_pattern" not in parameters:
        message = message.replace(
            "; pass split_pattern=",
            "; `bpe-tokenizer convert` takes it as --split-pattern and writes other formats",
        )
    names = {name: name for name in parameters} | {
        name: parameter for name, parameter in _PARAMETERS.items() if parameter in parameters
    }
    for name, parameter in names.items():
        option = f"--{option_name(parameter.rstrip('_'))}"
        message = re.sub(rf"{_BEFORE}{name}=True\b", option, message)
        message = re.sub(rf"{_BEFORE}{name}= ?(?=\S|$)", f"{option} ", message).rstrip()
        if "_" in name:
            message = re.sub(rf"{_BEFORE}{name}{_AFTER}", option, message)
        elif message.startswith((f"{name} is ", f"{name} must ")):
            message = f"--{message}"
    return message
