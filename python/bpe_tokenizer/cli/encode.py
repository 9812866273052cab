"""`bpe-tokenizer encode`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.inputs import read_text
from bpe_tokenizer.cli.options import (
    AllowedSpecial,
    AsJson,
    Debug,
    Download,
    TokenizerPath,
    allowed_special_argument,
    option,
)
from bpe_tokenizer.view.terminal import print_tokens

__all__ = ["encode"]


def encode(
    tokenizer: TokenizerPath,
    text: Annotated[str | None, option("TEXT", "Text to encode.")] = None,
    file: Annotated[str | None, option("FILE", "File to encode, in UTF-8; - is standard input.")] = None,
    show_tokens: Annotated[
        bool, typer.Option("--show-tokens", help="Show the text of the tokens too.")
    ] = False,
    allowed_special: AllowedSpecial = None,
    add_special_tokens: Annotated[
        bool,
        typer.Option(
            "--add-special-tokens",
            help="Add the special tokens that the tokenizer defines for a text, such as BOS and EOS.",
        ),
    ] = False,
    as_json: AsJson = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Turn text into ids: one line, separated by spaces."""
    if text is not None and file is not None:
        raise typer.BadParameter("give either --text or --file, not both")
    if text is None:
        text = read_text(file)
    loaded = BPETokenizer.load(tokenizer, download=download)
    ids = loaded.encode(
        text,
        add_special_tokens=add_special_tokens,
        allowed_special=allowed_special_argument(allowed_special),
    )
    if as_json:
        print(json.dumps({"ids": ids, "tokens": loaded.convert_ids_to_tokens(ids)}))
        return
    print(*ids)
    if show_tokens:
        from bpe_tokenizer.console import new_console

        print_tokens((loaded.decode_bytes([each]) for each in ids), new_console())
