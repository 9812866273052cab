"""`bpe-tokenizer decode`."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.inputs import read_text
from bpe_tokenizer.cli.options import Debug, Download, TokenizerPath, option
from bpe_tokenizer.errors import OptionError, shorten

__all__ = ["decode", "parse_ids"]

# More than any id has; Python reads no number of many thousands.
_MAX_DIGITS = 20


def decode(
    tokenizer: TokenizerPath,
    ids: Annotated[
        list[str] | None,
        option("ID...", "Ids, or a JSON list of ids; - is standard input.", "standard input"),
    ] = None,
    skip_special_tokens: Annotated[
        bool, typer.Option("--skip-special-tokens", help="Leave out special tokens.")
    ] = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Turn ids into bytes.

    The output is exactly the bytes of the ids, so that a file survives a round trip. Only a terminal gets an
    additional line feed, if the text does not end with one.
    """
    wanted = _read_ids(ids)
    data = BPETokenizer.load(tokenizer, download=download).decode_bytes(
        wanted, skip_special_tokens=skip_special_tokens
    )
    sys.stdout.buffer.write(data)
    if sys.stdout.isatty() and not data.endswith(b"\n"):
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _read_ids(arguments: list[str] | None) -> list[int]:
    if arguments is None or arguments == ["-"]:
        return parse_ids(read_text("-" if arguments else None))
    try:
        return parse_ids(" ".join(arguments))
    except OptionError as error:
        raise typer.BadParameter(str(error), param_hint="--ids") from None


def parse_ids(text: str) -> list[int]:
    """Parse ids: numbers separated by white space or commas, a JSON list, or the output of `encode --json`.

    Args:
        text: The ids as text.

    Raises:
        OptionError: Something in the text is not an id.

    Example:
        >>> parse_ids("9906 11"), parse_ids("[9906, 11]"), parse_ids('{"ids": [9906, 11]}')
        ([9906, 11], [9906, 11], [9906, 11])
    """
    if text.lstrip()[:1] in ("[", "{"):
        return _parse_json_ids(text)
    ids: list[int] = []
    for word in text.replace(",", " ").split():
        if not (word.isascii() and word.isdigit() and len(word) <= _MAX_DIGITS):
            raise OptionError(f"{shorten(word)} is not an id: ids are whole numbers from 0")
        ids.append(int(word))
    return ids


def _parse_json_ids(text: str) -> list[int]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"the ids are not valid JSON: {error}") from None
    ids = value.get("ids") if isinstance(value, dict) else value
    if not isinstance(ids, list):
        raise OptionError('JSON ids must be a list of numbers, or an object with such a list as "ids"')
    for each in ids:
        if type(each) is not int or each < 0:
            raise OptionError(f"{shorten(each)} is not an id: ids are whole numbers from 0")
    return ids
