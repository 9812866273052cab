"""`bpe-tokenizer tokenize-corpus`."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from bpe_tokenizer.cli.run import Debug, TokenizerDirectory, allowed_tokens, load_tokenizer

__all__ = ["tokenize_corpus"]


class Format(str, Enum):
    """The formats of token files."""

    NANOGPT = "nanogpt"
    LLM_C = "llm.c"
    MEGATRON = "megatron"
    NPY = "npy"
    PARQUET = "parquet"


class InputFormat(str, Enum):
    """The formats of corpora."""

    TEXT = "text"
    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"


class DocumentEnd(str, Enum):
    """Where a document of text ends."""

    LINE = "line"
    FILE = "file"


class TokenType(str, Enum):
    """The types of an id."""

    UINT16 = "uint16"
    UINT32 = "uint32"
    INT32 = "int32"


class OnError(str, Enum):
    """What to do about a bad row."""

    STOP = "stop"
    SKIP = "skip"


def tokenize_corpus(
    tokenizer: TokenizerDirectory,
    corpus: Annotated[
        list[str],
        typer.Option(
            metavar="FILE...",
            help="Text, JSON Lines, Parquet or Arrow; patterns such as 'data/*.gz'; - is standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory for the token files.", show_default=False)
    ],
    format_: Annotated[Format, typer.Option("--format", help="Format of the token files.")] = Format.NANOGPT,
    input_format: Annotated[
        InputFormat | None, typer.Option(help="Format of the corpus.", show_default="by the files' names")
    ] = None,
    documents: Annotated[
        DocumentEnd, typer.Option(help="A document of text is a line or a file.")
    ] = DocumentEnd.LINE,
    separator: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What stands between documents of text.", show_default=False),
    ] = None,
    field: Annotated[str, typer.Option(metavar="NAME", help="Field or column of the text.")] = "text",
    eos_token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Special token that ends each document.",
            show_default="the tokenizer's EOS token, if it has one",
        ),
    ] = None,
    no_eos: Annotated[bool, typer.Option("--no-eos", help="End documents with no token.")] = False,
    shard_tokens: Annotated[
        int, typer.Option(metavar="N", help="Most tokens of a file; 0 is as many as the format can hold.")
    ] = 100_000_000,
    dtype: Annotated[
        TokenType | None, typer.Option(help="Type of an id.", show_default="the smallest that holds all ids")
    ] = None,
    allowed_special: Annotated[
        list[str] | None,
        typer.Option(
            metavar="all|none|TOKEN...",
            help="Special tokens to recognise in documents; the others are plain text.",
            show_default="none",
        ),
    ] = None,
    on_error: Annotated[
        OnError,
        typer.Option(help="Stop at a row that is not valid UTF-8 or JSON or has no text, or skip it."),
    ] = OnError.STOP,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Threads to encode with.", show_default="all processors")
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Remove what an earlier run left, instead of going on with it."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no summary.")] = False,
    debug: Debug = False,
) -> None:
    """Turn a corpus into the token files that training programs read; goes on with a run that was killed."""
    from bpe_tokenizer import corpus as corpora

    if no_eos and eos_token is not None:
        raise typer.BadParameter("give either --eos-token or --no-eos, not both")
    made = corpora.tokenize_corpus(
        corpus,
        output,
        load_tokenizer(tokenizer),
        format_.value,
        input_format=input_format.value if input_format else None,
        documents=documents.value,
        separator=separator,
        field=field,
        append_eos=not no_eos,
        eos_token=eos_token,
        shard_tokens=shard_tokens or None,
        dtype=dtype.value if dtype else None,
        allowed_special=allowed_tokens(allowed_special),
        on_error=on_error.value,
        threads=threads,
        overwrite=overwrite,
        verbose=not quiet,
    )
    if as_json:
        print(json.dumps({**made._asdict(), "files": [str(path) for path in made.files]}))
    elif not quiet:
        skipped = f", {made.skipped:,} bad rows skipped" if made.skipped else ""
        kept = f", {made.kept:,} shards kept from an earlier run" if made.kept else ""
        print(
            f"{made.documents:,} documents, {made.tokens:,} tokens ({made.dtype}) in {output}, "
            f"{len(made.files):,} {'file' if len(made.files) == 1 else 'files'}{skipped}{kept}"
        )
