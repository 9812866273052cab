"""`bpe-tokenizer tokenize-corpus`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer import corpus as corpora
from bpe_tokenizer.cli.options import (
    OUTPUT,
    AllowedSpecial,
    AsJson,
    Corpus,
    Debug,
    Documents,
    Download,
    Field,
    InputFormatName,
    OnErrorName,
    Quiet,
    Separator,
    Threads,
    TokenizerPath,
    allowed_special_argument,
    choice,
    option,
)
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.corpus.shards import FORMATS, TokenType

__all__ = ["tokenize_corpus"]


def tokenize_corpus(
    tokenizer: TokenizerPath,
    corpus: Corpus,
    output: Annotated[Path, option("DIR", "Directory for the token files.", names=OUTPUT)],
    format_: Annotated[Any, choice(FORMATS, "--format", help="Format of the token files.")] = "nanogpt",
    input_format: InputFormatName = None,
    documents: Documents = "line",
    separator: Separator = None,
    field: Field = "text",
    eos_token: Annotated[
        str | None,
        option(
            "TOKEN", "Special token to add after each document.", "the tokenizer's EOS token, if it has one"
        ),
    ] = None,
    no_eos: Annotated[bool, typer.Option("--no-eos", help="Add no token after documents.")] = False,
    shard_tokens: Annotated[
        int, typer.Option(metavar="N", help="Maximum tokens of a file; 0 is the maximum of the format.")
    ] = 100_000_000,
    dtype: Annotated[
        Any,
        choice(get_args(TokenType), help="Type of an id.", show_default="the smallest that holds all ids"),
    ] = None,
    allowed_special: AllowedSpecial = None,
    on_error: OnErrorName = "stop",
    threads: Threads = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Remove the files of an earlier run instead of resuming it.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    download: Download = False,
    debug: Debug = False,
) -> None:
    """Turn a corpus into the token files of training programs.

    The same command resumes a run that was killed.
    """
    if no_eos and eos_token is not None:
        raise typer.BadParameter("give either --eos-token or --no-eos, not both")
    made = corpora.tokenize_corpus(
        corpus,
        output,
        BPETokenizer.load(tokenizer, download=download),
        format_,
        input_format=input_format,
        documents=documents,
        separator=separator,
        field=field,
        append_eos=not no_eos,
        eos_token=eos_token,
        shard_tokens=shard_tokens or None,
        dtype=dtype,
        allowed_special=allowed_special_argument(allowed_special),
        on_error=on_error,
        threads=threads,
        overwrite=overwrite,
        verbose=not quiet,
    )
    if as_json:
        print(json.dumps({**made._asdict(), "files": [str(path) for path in made.files]}))
    elif not quiet:
        skipped = f", {count_noun(made.skipped, 'bad row')} skipped" if made.skipped else ""
        kept = f", {count_noun(made.kept, 'shard')} kept from an earlier run" if made.kept else ""
        print(
            f"{count_noun(made.documents, 'document')}, {count_noun(made.tokens, 'token')} ({made.dtype}) "
            f"in {output}, {count_noun(len(made.files), 'file')}{skipped}{kept}"
        )
