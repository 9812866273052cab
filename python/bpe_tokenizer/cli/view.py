"""`bpe-tokenizer view`."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bpe_tokenizer import BPETokenizer, special_tokens
from bpe_tokenizer.atomic import write_atomically
from bpe_tokenizer.cli.inputs import read_text
from bpe_tokenizer.cli.options import (
    FILE,
    AllowedSpecial,
    Debug,
    Download,
    allowed_special_argument,
    option,
    tokenizer_option,
)
from bpe_tokenizer.errors import MissingDependencyError, OptionError, escaped
from bpe_tokenizer.libraries import install_command
from bpe_tokenizer.view.page import page
from bpe_tokenizer.view.reports.names import tokenizer_labels

__all__ = ["published_here", "view"]


def view(
    tokenizer: Annotated[
        list[str] | None,
        tokenizer_option(
            "A saved or published tokenizer; repeat the option to compare several.",
            "o200k_base and gpt2, which the package carries",
        ),
    ] = None,
    text: Annotated[str | None, option("TEXT", "Text to show.")] = None,
    file: Annotated[
        str | None, option("FILE", "File to show, in UTF-8; - is standard input.", names=FILE)
    ] = None,
    html: Annotated[str | None, option("FILE", "Write the page as one file; - is standard output.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print the tokens, as also in a pipe or into a file.")
    ] = False,
    allowed_special: AllowedSpecial = None,
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=65535, help="Port of the local page; 0 chooses a free port."),
    ] = 0,
    public_url: Annotated[
        str, option("URL", "Address of a copy of the page that others can open; shared links lead there.")
    ] = "",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Serve the local page, but open no browser.")
    ] = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Show the tokens of a text in a browser, file or terminal.

    Without --html and --plain, a local page opens, until Ctrl-C. If standard output is not a terminal, the
    tokens are printed instead, unless --no-browser or --port asks for the page. The page works in the
    browser: what is typed into it stays there.
    """
    if text is not None and file is not None:
        raise typer.BadParameter("give either --text or --file, not both")
    if html is not None and plain:
        raise typer.BadParameter("give either --html or --plain, not both")
    is_live = html is None and not plain and (sys.stdout.isatty() or no_browser or port != 0)
    is_plain = html is None and not is_live
    if is_plain and not tokenizer:
        raise typer.BadParameter("name a tokenizer: --tokenizer PATH or --tokenizer NAME")
    # A page has a sample text; standard input is read only if it is piped in.
    if text is None and (file is not None or is_plain or (html is not None and not sys.stdin.isatty())):
        text = read_text(file)
    special = allowed_special_argument(allowed_special)
    loaded = _load_all(tokenizer or [], download)
    if not is_plain and not loaded:
        loaded = published_here()
    if is_live:
        _serve(loaded, text or "", special, port, download, public_url, opens_browser=not no_browser)
    elif html is not None:
        _write(html, loaded, text or "", special, public_url)
    else:
        _print(loaded, text or "", special)


def _load_all(names: list[str], download: bool) -> dict[str, BPETokenizer]:
    tokenizers: dict[str, BPETokenizer] = {}
    for name in names:
        if name in tokenizers:
            raise OptionError(f"duplicate --tokenizer {name}")
        tokenizers[name] = BPETokenizer.load(name, download=download)
    # A page that is sent to others shows no directories of this machine.
    return dict(zip(tokenizer_labels(list(tokenizers)), tokenizers.values(), strict=True))


def published_here() -> dict[str, BPETokenizer]:
    """Return the tokenizers that a page without any named shows side by side; the package carries them."""
    return {name: BPETokenizer.load(name) for name in ("o200k_base", "gpt2")}


def _serve(
    tokenizers: dict[str, BPETokenizer],
    text: str,
    special: special_tokens.AllowedSpecial,
    port: int,
    download: bool,
    public_url: str,
    *,
    opens_browser: bool,
) -> None:
    from bpe_tokenizer.view.server import open_socket, serve

    with open_socket(port) as listener:
        try:
            serve(
                tokenizers,
                text,
                special,
                listener,
                load=partial(BPETokenizer.load, download=download),
                downloads=download,
                public_url=public_url,
                opens_browser=opens_browser,
            )
        except MissingDependencyError:
            _open_file(
                page(tokenizers, text, allowed_special=special, public_url=public_url),
                opens_browser=opens_browser,
            )


def _open_file(html: str, *, opens_browser: bool) -> None:
    """Open the page from the disk: all that needs the local server is missing there."""
    made = Path(tempfile.mkdtemp(prefix="bpe-tokenizer-"), "piecewise.html")
    made.write_text(html, encoding="utf-8")
    print(f"{made.as_uri()} (the local server needs: {install_command('view')})", flush=True)
    if opens_browser:
        webbrowser.open(made.as_uri())


def _write(
    file: str,
    tokenizers: dict[str, BPETokenizer],
    text: str,
    special: special_tokens.AllowedSpecial,
    public_url: str,
) -> None:
    data = page(tokenizers, text, allowed_special=special, public_url=public_url).encode()
    if file == "-":
        sys.stdout.buffer.write(data)
    else:
        write_atomically({Path(file): data})


def _print(tokenizers: dict[str, BPETokenizer], text: str, special: special_tokens.AllowedSpecial) -> None:
    from bpe_tokenizer.console import new_console

    console = new_console(highlight=False, markup=False)
    known = {token for tokenizer in tokenizers.values() for token in tokenizer.special_tokens}
    for name, tokenizer in tokenizers.items():
        allowed = special
        if isinstance(allowed, set):
            # A tokenizer that lacks a token of another one reads it as plain text.
            allowed = allowed - (known - tokenizer.special_tokens.keys())
        shown = tokenizer.visualize(text, allowed_special=allowed)
        if len(tokenizers) > 1:
            console.print(escaped(name), soft_wrap=True)
        shown.show(console)
        console.print(shown.counts, soft_wrap=not console.is_terminal)
