"""`bpe-tokenizer chat`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from bpe_tokenizer.cli.chat_loop import ChatLoop
from bpe_tokenizer.cli.run import Debug, load_tokenizer, read_text
from bpe_tokenizer.errors import OptionError

__all__ = ["chat"]


def chat(
    model: Annotated[
        str,
        typer.Option(
            metavar="PATH|URL",
            help="A GGUF file, a model directory, or the address of a server (vLLM, SGLang, llama-server).",
            show_default=False,
        ),
    ],
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="A saved tokenizer of any format that BPETokenizer.load knows.",
            show_default="the model's own",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="A chat template: a built-in name or a Jinja file.",
            show_default="the tokenizer's own, or llama3",
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option(metavar="TEXT", help="System prompt.", show_default=False)
    ] = None,
    message: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT...", help="Say this instead of asking what to say, and end.", show_default=False
        ),
    ] = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="Longest reply, in tokens.")] = 512,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="0 always takes the likeliest token.")
    ] = 0.7,
    top_p: Annotated[
        float, typer.Option(metavar="P", help="Draw from the likeliest tokens that sum up to this.")
    ] = 0.9,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="The same seed gives the same replies.", show_default=False),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="An inference backend.", show_default="the best for the model"),
    ] = None,
    n_gpu_layers: Annotated[
        int, typer.Option(metavar="N", help="llama.cpp: layers on the GPU; -1 for all.")
    ] = -1,
    n_ctx: Annotated[int, typer.Option(metavar="N", help="Longest context, in tokens.")] = 8192,
    api_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Of a server.", envvar="BPE_TOKENIZER_API_KEY", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each reply as a line of JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Talk to a language model.

    The prompt is made of ids, so nothing that is said can forge a turn. On a terminal, Ctrl-C stops the
    reply, Ctrl-D ends, and /help lists what else there is; in a pipe, each line is said in its turn.
    """
    from bpe_tokenizer.chat.session import ChatSession

    session = ChatSession(
        model,
        load_tokenizer(tokenizer) if tokenizer is not None else None,
        system,
        template=read_text(template) if template is not None and Path(template).is_file() else template,
        max_new_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        seed=seed,
        backend=backend,
        n_gpu_layers=n_gpu_layers,
        n_ctx=n_ctx,
        api_key=api_key,
    )
    loop = ChatLoop(session, as_json=as_json)
    if message:
        for text in message:
            loop.say(text)
    elif sys.stdin.isatty():
        loop.run()
    else:
        for line in _piped_lines():
            if not loop.take(line):
                break


def _piped_lines() -> Iterator[str]:
    """Yield each line of standard input as soon as it comes: who writes them may wait for the replies."""
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise OptionError(f"line {number} of standard input is not UTF-8: {error}") from None
