"""`bpe-tokenizer decode`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bpe_tokenizer.cli.run import Debug, TokenizerDirectory, load_tokenizer, parse_ids, read_text
from bpe_tokenizer.errors import OptionError

__all__ = ["decode"]


def decode(
    tokenizer: TokenizerDirectory,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID...",
            help="Ids, or a JSON list of them; - is standard input.",
            show_default="standard input",
        ),
    ] = None,
    skip_special_tokens: Annotated[
        bool, typer.Option("--skip-special-tokens", help="Leave special tokens out.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Turn ids into the bytes they stand for.

    The bytes are written exactly as they are, without a line feed of our own, so that a file comes
    back as it was; only on a terminal, text that does not end a line is followed by one.
    """
    wanted = _ids(ids)
    data = load_tokenizer(tokenizer).decode_bytes(wanted, skip_special_tokens=skip_special_tokens)
    sys.stdout.buffer.write(data)
    if sys.stdout.isatty() and not data.endswith(b"\n"):
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _ids(arguments: list[str] | None) -> list[int]:
    if arguments is None or arguments == ["-"]:
        return parse_ids(read_text("-" if arguments else None))
    try:
        return parse_ids(" ".join(arguments))
    except OptionError as error:
        raise typer.BadParameter(str(error), param_hint="--ids") from None
