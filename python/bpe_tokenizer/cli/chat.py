"""`bpe-tokenizer chat`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from bpe_tokenizer import BPETokenizer, ChatSession, InferenceBackend
from bpe_tokenizer.chat.builtin_templates import BUILT_IN
from bpe_tokenizer.cli.chat_loop import ChatLoop
from bpe_tokenizer.cli.inputs import template_source
from bpe_tokenizer.cli.options import (
    MODEL,
    Debug,
    Download,
    PlainMarkup,
    completion,
    option,
    tokenizer_option,
)
from bpe_tokenizer.errors import OptionError, shorten
from bpe_tokenizer.inference.model_files import kind_of

__all__ = ["chat"]


def chat(
    model: Annotated[
        str,
        option(
            "PATH|URL",
            "A GGUF file, a model directory, or the address of a server (vLLM, SGLang, llama-server).",
            names=MODEL,
        ),
    ],
    tokenizer: Annotated[
        str | None,
        tokenizer_option("A saved tokenizer of any format, or a published one.", "the model's own"),
    ] = None,
    template: Annotated[
        str | None,
        option(
            "NAME|FILE",
            "A chat template: a built-in name or a Jinja file.",
            "the tokenizer's own, or llama3",
            autocompletion=completion(BUILT_IN),
        ),
    ] = None,
    plain_markup: PlainMarkup = False,
    template_budget: Annotated[
        float | None,
        option("FACTOR", "Multiplies the work and memory that a Jinja template may take.", "1"),
    ] = None,
    template_variables: Annotated[
        str | None,
        option(
            "JSON",
            "Variables of a Jinja template, such as '{\"enable_thinking\": false}'.",
            names=("--template-variables", "--chat-template-kwargs"),
        ),
    ] = None,
    system: Annotated[str | None, option("TEXT", "System prompt.")] = None,
    message: Annotated[list[str] | None, option("TEXT...", "Send these messages and exit.")] = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="Maximum length of a reply, in tokens.")] = 512,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="Sampling temperature; 0 always takes the most likely token.")
    ] = 0.7,
    top_p: Annotated[
        float,
        typer.Option(
            metavar="P", help="Sample from the most likely tokens whose probabilities sum up to this."
        ),
    ] = 0.9,
    stop: Annotated[list[str] | None, option("TEXT...", "End a reply before any of these texts.")] = None,
    seed: Annotated[int | None, option("N", "The same seed gives the same replies.")] = None,
    backend: Annotated[
        str | None,
        option(
            "NAME",
            f"An inference backend. One of: {', '.join(backend.value for backend in InferenceBackend)}.",
            "the best for the model",
            autocompletion=completion(backend.value for backend in InferenceBackend),
        ),
    ] = None,
    n_gpu_layers: Annotated[
        int, typer.Option(metavar="N", help="llama.cpp: layers on the GPU; -1 for all.")
    ] = -1,
    device: Annotated[
        str | None, option("NAME", "OpenVINO, Transformers: the device, such as GPU or cuda:1.", "the best")
    ] = None,
    n_ctx: Annotated[int, typer.Option(metavar="N", help="Maximum length of the context, in tokens.")] = 8192,
    api_key: Annotated[
        str | None, option("KEY", "API key of a server.", envvar="BPE_TOKENIZER_API_KEY")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each reply as a line of JSON.")] = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Talk to a language model.

    The prompt consists of ids, so no message can forge a turn. A built-in template needs a tokenizer with its
    control tokens. On a terminal, Ctrl-C stops the reply, Ctrl-D ends the chat, and /help lists the commands.
    In a pipe, each line is a message.
    """
    kind_of(model)  # a model that does not exist is an error before the first message
    session = ChatSession(
        model,
        BPETokenizer.load(tokenizer, download=download) if tokenizer is not None else None,
        system,
        template=template_source(template),
        plain_markup=plain_markup,
        template_budget=template_budget,
        template_variables=_json_object(template_variables),
        max_new_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        stop=stop,
        seed=seed,
        backend=backend,
        n_gpu_layers=n_gpu_layers,
        device=device,
        n_ctx=n_ctx,
        api_key=api_key,
    )
    loop = ChatLoop(session, as_json=as_json)
    if message:
        for text in message:
            loop.send(text)
    elif sys.stdin.isatty():
        loop.run()
    else:
        for line in _piped_lines():
            if not loop.handle(line):
                break


def _json_object(text: str | None) -> dict[str, Any] | None:
    try:
        value = None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"--template-variables is not JSON: {error}") from None
    if value is not None and not isinstance(value, dict):
        raise OptionError(f"--template-variables must be a JSON object, not {shorten(text, 80)}")
    return value


def _piped_lines() -> Iterator[str]:
    """Yield each line of standard input as soon as it arrives, because its writer may wait for the reply."""
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise OptionError(f"line {number} of standard input is not UTF-8: {error}") from None
