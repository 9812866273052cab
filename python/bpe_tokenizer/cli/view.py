"""`bpe-tokenizer view`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bpe_tokenizer.cli.run import Debug, allowed_tokens, load_tokenizer, read_text
from bpe_tokenizer.errors import OptionError

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["view"]


def view(
    tokenizer: Annotated[
        list[Path],
        typer.Option(
            metavar="PATH",
            help="A saved tokenizer of any format; say it twice for two side by side.",
            show_default=False,
        ),
    ],
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Text to show.", show_default=False)
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File to show, in UTF-8; - is standard input.", show_default=False),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write one page that needs no other file; - is standard output.",
            show_default=False,
        ),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Show the tokens in the terminal.")] = False,
    allowed_special: Annotated[
        list[str] | None,
        typer.Option(
            metavar="all|none|TOKEN...",
            help="Special tokens to recognise in the text; the others are plain text.",
            show_default="none",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the local page; 0 is any that is free.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the local page in a browser.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Show the tokens of a text: on a local page, in one HTML file, or in the terminal."""
    if text is not None and file is not None:
        raise typer.BadParameter("give either --text or --file, not both")
    if html is not None and plain:
        raise typer.BadParameter("give either --html or --plain, not both")
    is_live = html is None and not plain
    if text is None and (file is not None or not is_live):
        text = read_text(file)
    special = allowed_tokens(allowed_special)
    loaded = _named(tokenizer)
    if is_live:
        _serve(loaded, text or "", special, port, opens_browser=not no_browser)
    elif html is not None:
        _write(html, loaded, text or "", special)
    else:
        _print(loaded, text or "", special)


def _named(paths: list[Path]) -> dict[str, BPETokenizer]:
    named: dict[str, BPETokenizer] = {}
    for path in paths:
        if str(path) in named:
            raise OptionError(f"--tokenizer {path} is given twice")
        named[str(path)] = load_tokenizer(path)
    return named


def _serve(
    tokenizers: dict[str, BPETokenizer], text: str, special: str | set[str], port: int, *, opens_browser: bool
) -> None:
    from bpe_tokenizer.view.server import create_app, open_socket, serve

    app = create_app(tokenizers, text, special)
    with open_socket(port) as listener:
        serve(app, listener, opens_browser=opens_browser)


def _write(file: str, tokenizers: dict[str, BPETokenizer], text: str, special: str | set[str]) -> None:
    from bpe_tokenizer.view.page import page

    data = page(tokenizers, text, special).encode("utf-8", errors="replace")
    if file == "-":
        sys.stdout.buffer.write(data)
    else:
        Path(file).write_bytes(data)


def _print(tokenizers: dict[str, BPETokenizer], text: str, special: str | set[str]) -> None:
    from rich.console import Console

    from bpe_tokenizer.view.page import visualize_all

    console = Console(highlight=False, markup=False)
    for name, shown in visualize_all(tokenizers, text, special):
        if len(tokenizers) > 1:
            console.print(name, soft_wrap=True)
        shown.show(console)
        console.print(shown.counts, soft_wrap=True)
