"""Options that several commands share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from bpe_tokenizer.cli.streams import wrapped
from bpe_tokenizer.errors import OptionError, did_you_mean, shorten
from bpe_tokenizer.patterns import NAMED_PATTERNS
from bpe_tokenizer.readers.options import DocumentEnd, InputFormat, OnError

__all__ = [
    "CORPUS",
    "FILE",
    "MODEL",
    "NORMALIZATION",
    "OUTPUT",
    "SPLIT_PATTERN",
    "TOKENIZER",
    "AllowedSpecial",
    "AsJson",
    "Corpus",
    "Debug",
    "Documents",
    "Download",
    "Field",
    "InputFormatName",
    "MaxMemory",
    "MinCount",
    "OnErrorName",
    "Overwrite",
    "Quiet",
    "Sample",
    "Separator",
    "Special",
    "SpillDirectory",
    "Threads",
    "TokenizerPath",
    "Weights",
    "allowed_special_argument",
    "choice",
    "completion",
    "normal_form",
    "option",
    "special_argument",
]


def option(
    metavar: str, description: str, default: str = "", names: Sequence[str] = (), **settings: Any
) -> Any:
    """Return an option that has a value only if it is given.

    Args:
        metavar: What the help shows for the value.
        description: What the option does.
        default: What the help shows as the default; nothing by default.
        names: The option's names, if it has a short one too; otherwise its parameter's name is its name.
        settings: Settings of `typer.Option`.
    """
    return typer.Option(*names, metavar=metavar, help=description, show_default=default or False, **settings)


def choice(
    names: Iterable[str], *declarations: str, aliases: Mapping[str, str] | None = None, **settings: Any
) -> Any:
    """Return an option that accepts one of several names. Its help lists them, and shells complete them.

    Args:
        names: The names, from the list that defines them; upper and lower case are the same.
        declarations: The option's names on the command line, as for `typer.Option`.
        aliases: Other names, in lower case, that mean one of the names.
        settings: Settings of `typer.Option`; `help` is needed.
    """
    known = list(names)
    meant = {**(aliases or {}), **{name.lower(): name for name in known}}

    def parse(value: str) -> str:
        name = meant.get(value.lower())
        if name is None:
            near = did_you_mean(value.lower(), meant).removesuffix(".")
            raise typer.BadParameter(f"{shorten(value)} is not one of {', '.join(map(repr, known))}{near}")
        return name

    text = f"{settings.pop('help')} One of: {', '.join(known)}."
    return typer.Option(
        *declarations, metavar="NAME", parser=parse, help=text, autocompletion=completion(known), **settings
    )


def completion(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes the beginning of a value to one of several names."""
    known = list(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a saved tokenizer.")]
# Options with short names, the same ones in every command.
TOKENIZER = ("--tokenizer", "-t")
FILE = ("--file", "-f")
OUTPUT = ("--output", "-o")
MODEL = ("--model", "-m")
# A text, and not a Path: "./gpt2" is a path, and "gpt2" may be a published name.
TokenizerPath = Annotated[
    str,
    option(
        "PATH|NAME",
        "A saved tokenizer of any format, or a published one: gpt-4o, hf:owner/name, ...",
        names=TOKENIZER,
    ),
]
Download = Annotated[
    bool,
    typer.Option(
        "--download",
        help="Download a published tokenizer that is not on this machine.",
        envvar="BPE_TOKENIZER_DOWNLOAD",
    ),
]
AllowedSpecial = Annotated[
    list[str] | None,
    option(
        "all|none|TOKEN...", "Special tokens to recognise in the text; the others are plain text.", "none"
    ),
]
CORPUS = option(
    "FILE...",
    "Text, JSON Lines, Parquet or Arrow: files, directories, patterns such as 'data/*.gz', URLs; - is "
    "standard input.",
)
Corpus = Annotated[list[str], CORPUS]
InputFormatName = Annotated[
    Any,
    choice(get_args(InputFormat), "--input-format", help="Format of the corpus.", show_default="by content"),
]
Separator = Annotated[str | None, option("TEXT", "Text that separates the documents of a text file.")]
Field = Annotated[str, typer.Option(metavar="NAME", help="Field of JSON Lines, or column, with the text.")]
OnErrorName = Annotated[
    Any,
    choice(
        get_args(OnError),
        "--on-error",
        help="Stop at a row that is not valid UTF-8 or JSON or has no text, or skip it.",
    ),
]
Documents = Annotated[
    Any, choice(get_args(DocumentEnd), "--documents", help="A document of a text file is a line or the file.")
]
Special = Annotated[list[str] | None, option("TOKEN...", "Special tokens; documents are split at them.")]
Threads = Annotated[int | None, option("N", "Number of threads.", "all processors")]
Weights = Annotated[
    list[int] | None,
    option("N...", "How many times the text of each file counts, in the order of the files.", "1"),
]
MaxMemory = Annotated[
    str | None,
    option("SIZE", "Memory limit, as in 500MB, at least 200MB. The result is the same.", "unlimited"),
]
SpillDirectory = Annotated[
    Path | None, option("DIR", "Directory of temporary files, on a disk with room.", "the system's")
]
MinCount = Annotated[int | None, option("N", "Leave out pieces that occur less often.", "1")]
Sample = Annotated[
    str | None, option("RATE", "Count a sample of the documents, such as 0.1 or 1/10, chosen by hash.", "all")
]
SPLIT_PATTERN = option(
    "NAME|REGEX",
    "Split pattern: a regular expression or a name, such as gpt2, cl100k, o200k, llama3, qwen2.",
    "cl100k",
    autocompletion=completion(NAMED_PATTERNS),
)
NORMALIZATION = ("NFC", "NFD", "NFKC", "NFKD", "none")


def normal_form(name: str) -> Literal["NFC", "NFD", "NFKC", "NFKD"] | None:
    """Return the value of `--normalization` as the package's argument."""
    return None if name == "none" else name  # type: ignore[return-value]


def allowed_special_argument(tokens: list[str] | None) -> Literal["none", "all"] | set[str]:
    """Return the values of `--allowed-special` as the package's argument."""
    if tokens is None or tokens == ["none"]:
        return "none"
    if len(tokens) > 1 and ("all" in tokens or "none" in tokens):
        raise OptionError("allowed_special takes 'all', 'none' or special tokens, not a mixture")
    return "all" if tokens == ["all"] else set(tokens)


def special_argument(tokens: list[str] | None) -> list[str]:
    """Return the values of `--special`, and say on standard error if one looks like several tokens."""
    for token in tokens or ():
        parts = [part.strip() for part in token.split(",")]
        # "<s>,</s>" and "a,b", but not "<a,b>" or ",".
        if len(parts) > 1 and all(part and (part[0] in "<[") == (part[-1] in ">]") for part in parts):
            is_short = token.isprintable() and len(token) <= 100
            written = " ".join(map(shlex.quote, parts)) if is_short else "A B ..."
            line = (
                f"--special {shorten(token)} is one token; for {len(parts)} tokens write --special {written}"
            )
            print(wrapped(f"bpe-tokenizer: {line}", sys.stderr), file=sys.stderr)
    return tokens or []
