"""`bpe-tokenizer train`."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from bpe_tokenizer.cli.run import Debug

__all__ = ["train"]


class Normalization(str, Enum):
    """The Unicode normal forms, and none."""

    NFC = "NFC"
    NFD = "NFD"
    NFKC = "NFKC"
    NFKD = "NFKD"
    NONE = "none"


class TieBreak(str, Enum):
    """Which of two equally frequent pairs is merged first."""

    LARGEST = "largest"
    HUGGINGFACE = "huggingface"


def train(
    corpus: Annotated[
        list[str],
        typer.Option(
            metavar="FILE...",
            help="Text files in UTF-8; - is standard input. A file is one document.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Directory to save the tokenizer in.", show_default=False)
    ],
    vocab_size: Annotated[
        int, typer.Option(metavar="N", help="Number of ids: bytes, special tokens and learned tokens.")
    ] = 32000,
    min_frequency: Annotated[
        int, typer.Option(metavar="N", help="Stop when the most frequent pair is rarer than this.")
    ] = 2,
    pattern: Annotated[
        str, typer.Option(metavar="NAME", help="Split pattern: a name (gpt2, cl100k, o200k, ...) or a regex.")
    ] = "cl100k",
    special: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN...", help="Special tokens; they take the ids from 256 on.", show_default=False
        ),
    ] = None,
    normalization: Annotated[
        Normalization, typer.Option(help="Unicode normal form of the text.")
    ] = Normalization.NFC,
    tie_break: Annotated[
        TieBreak,
        typer.Option(
            help="Which of equally frequent pairs comes first: the largest bytes, or Hugging Face's."
        ),
    ] = TieBreak.LARGEST,
    max_token_length: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Longest token to learn.", show_default="any")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Threads to count with.", show_default="all processors")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no summary.")] = False,
    debug: Debug = False,
) -> None:
    """Learn a vocabulary from text files and save it."""
    from bpe_tokenizer import BPETokenizer

    tokenizer = BPETokenizer(
        split_pattern=pattern,
        normalization=None if normalization is Normalization.NONE else normalization.value,
    )
    begin = time.perf_counter()
    with _files(corpus) as files:
        tokenizer.train(
            files,
            vocab_size=vocab_size,
            min_frequency=min_frequency,
            special_tokens=special,
            verbose=not quiet,
            tie_break=tie_break.value,
            max_token_length=max_token_length,
            threads=threads,
        )
    seconds = time.perf_counter() - begin
    tokenizer.save(output)
    if as_json:
        result = {
            "output": str(output),
            "vocab_size": tokenizer.vocab_size,
            "merges": len(tokenizer.merges),
            "seconds": round(seconds, 3),
        }
        print(json.dumps(result))
    elif not quiet:
        print(f"{tokenizer.vocab_size:,} tokens saved in {output}")


@contextmanager
def _files(corpus: Sequence[str]) -> Iterator[list[Path]]:
    """Name the corpus as files: what is piped in is written to a temporary one, for the core reads files."""
    with tempfile.TemporaryDirectory() as directory:
        piped = Path(directory) / "standard-input"
        if "-" in corpus:
            with piped.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        yield [piped if name == "-" else Path(name) for name in corpus]
