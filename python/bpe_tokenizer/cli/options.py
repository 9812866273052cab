"""Options that several commands share."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import typer

from bpe_tokenizer.cli.streams import wrapped
from bpe_tokenizer.errors import OptionError, did_you_mean, shorten
from bpe_tokenizer.options import option_docs, takes
from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = [
    "CORPUS",
    "FILE",
    "MODEL",
    "NORMALIZATION",
    "OUTPUT",
    "SPLIT_PATTERN",
    "AllowedSpecial",
    "AsJson",
    "Corpus",
    "Debug",
    "Download",
    "Overwrite",
    "PlainMarkup",
    "Quiet",
    "Special",
    "Threads",
    "TokenizerPath",
    "Weights",
    "allowed_special_argument",
    "choice",
    "completion",
    "normal_form",
    "option",
    "options_of",
    "special_argument",
    "tokenizer_names",
    "tokenizer_option",
    "whole_number",
]


_Command = TypeVar("_Command", bound=Callable[..., None])
_UNITS = {"": 1, "k": 1000, "M": 1_000_000}


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


def whole_number(value: str | int) -> int:
    """Return a number that people write as 32000, 32_000, 32,000, 32k or 1.5M.

    Example:
        >>> whole_number("32k"), whole_number("1.5M"), whole_number("32,000")
        (32000, 1500000, 32000)
    """
    written = re.fullmatch(r"(-?\d[\d_,]*(?:\.\d+)?)([kM]?)", str(value), re.ASCII)
    number = written and Fraction(re.sub("[_,]", "", written[1])) * _UNITS[written[2]]
    if number is None or number.denominator != 1:
        raise typer.BadParameter(f"{shorten(value)} is not a whole number, such as 32000 or 32k.")
    return int(number)


def completion(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes the beginning of a value to one of several names."""
    known = list(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


def tokenizer_names(incomplete: str) -> list[str]:
    """Return the published names and the paths of a value that can be a name; a shell completes paths."""
    from bpe_tokenizer.formats.tiktoken.models import MODEL_NAMES
    from bpe_tokenizer.formats.tiktoken.published import PUBLISHED

    names = completion({**PUBLISHED, **MODEL_NAMES})(incomplete)
    return names and [*names, *sorted(map(str, Path().glob(f"{incomplete}*")))]


def tokenizer_option(description: str, default: str = "") -> Any:
    """Return the option for a tokenizer.

    Args:
        description: What the tokenizer is.
        default: What the help shows as the default.
    """
    return option("PATH|NAME", description, default, ("--tokenizer", "-t"), autocompletion=tokenizer_names)


def options_of(*kinds: type) -> Callable[[_Command], _Command]:
    """Give a command with `**options` an option for each field of classes of options, before those after `*`.

    Args:
        kinds: The classes.
    """

    def decorate(command: _Command) -> _Command:
        command.__annotations__ = inspect.get_annotations(command, eval_str=True)
        made: Any = takes(*kinds, annotate=_field_option)(command)
        explicit = inspect.signature(command).parameters.values()
        last = [each.name for each in explicit if each.kind is each.KEYWORD_ONLY]
        parameters = inspect.signature(made).parameters.values()
        shown = [each for each in parameters if each.annotation is not None]
        made.__signature__ = inspect.Signature(sorted(shown, key=lambda each: each.name in last))
        return cast("_Command", made)

    return decorate


def _field_option(kind: type, field: dataclasses.Field[Any]) -> Any:
    """Return the type of the option for a field, whose help is the beginning of the field's docs.

    A field without `option_field` has none.
    """
    if not field.metadata:
        return None
    text = " ".join(option_docs(kind)[field.name].split()).partition(": ")[2]
    text = (
        re.split(r"; |\. ", text.rstrip("."))[0].replace("`", "").replace('"', "").removeprefix("Whether to ")
    )
    text = f"{text[:1].upper()}{text[1:]}."
    metavar, shown = field.metadata["metavar"], field.metadata["shown"]
    hint = get_type_hints(kind)[field.name]
    types = (hint, *get_args(hint))
    names = next((get_args(each) for each in types if get_origin(each) is Literal), None)
    if names is not None:
        return Annotated[Any, choice(names, help=text, **({"show_default": shown} if shown else {}))]
    if hint is bool:
        return Annotated[bool, typer.Option(f"--{field.name}", help=text)]
    is_path = any(get_origin(each) is os.PathLike for each in types)
    value: Any = Path if is_path else next((each for each in (str, float, int) if each in types), str)
    parser = whole_number if value is int else None
    if field.default is None:
        return Annotated[value | None, option(metavar, text, shown, parser=parser)]
    return Annotated[value, typer.Option(metavar=metavar, help=text, parser=parser)]


Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")]
PlainMarkup = Annotated[
    bool,
    typer.Option(
        "--plain-markup",
        help="Accept a tokenizer without the template's control tokens. Messages can then forge turns.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a saved tokenizer.")]
# Options with short names, the same ones in every command.
FILE = ("--file", "-f")
OUTPUT = ("--output", "-o")
MODEL = ("--model", "-m")
# A text, and not a Path: "./gpt2" is a path, and "gpt2" may be a published name.
TokenizerPath = Annotated[
    str, tokenizer_option("A saved tokenizer of any format, or a published one: gpt-4o, hf:owner/name, ...")
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
Special = Annotated[list[str] | None, option("TOKEN...", "Special tokens; documents are split at them.")]
Threads = Annotated[int | None, option("N", "Number of threads.", "all processors")]
Weights = Annotated[
    list[int] | None,
    option("N...", "How many times the text of each file counts, in the order of the files.", "1"),
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
    """Return the values of `--special`, and say on standard error if one looks like something else."""
    for token in tokens or ():
        if re.fullmatch(r"[<\[].*[>\]]=\d+", token):
            line = f"--special {shorten(token)} is the text of a token; training assigns the ids from 256 on"
            print(wrapped(f"bpe-tokenizer: {line}", sys.stderr), file=sys.stderr)
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
