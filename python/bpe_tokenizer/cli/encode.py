"""`bpe-tokenizer encode`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bpe_tokenizer.cli.run import Debug, TokenizerDirectory, allowed_tokens, load_tokenizer, read_text

__all__ = ["encode"]


def encode(
    tokenizer: TokenizerDirectory,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text to encode.", show_default=False)
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="File to encode, in UTF-8; - is standard input.", show_default=False
        ),
    ] = None,
    show_tokens: Annotated[
        bool, typer.Option("--show-tokens", help="Show the text cut into its tokens as well.")
    ] = False,
    allowed_special: Annotated[
        list[str] | None,
        typer.Option(
            metavar="all|none|TOKEN...",
            help="Special tokens to recognise in the text; the others are plain text.",
            show_default="none",
        ),
    ] = None,
    add_special_tokens: Annotated[
        bool,
        typer.Option("--add-special-tokens", help="Put BOS and EOS (or what the file says) around the text."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print ids and tokens as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Turn text into ids: one line, separated by spaces."""
    if text is not None and file is not None:
        raise typer.BadParameter("give either --text or --file, not both")
    if text is None:
        text = read_text(file)
    loaded = load_tokenizer(tokenizer)
    ids = loaded.encode(
        text, add_special_tokens=add_special_tokens, allowed_special=allowed_tokens(allowed_special)
    )
    if as_json:
        print(json.dumps({"ids": ids, "tokens": loaded.convert_ids_to_tokens(ids)}))
        return
    print(*ids)
    if show_tokens:
        from rich.console import Console

        from bpe_tokenizer.view.terminal import print_tokens

        print_tokens((loaded.decode_bytes([each]) for each in ids), Console())
