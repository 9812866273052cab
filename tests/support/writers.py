"""Every way in which the package writes a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, ChatSession, PieceCounts
from bpe_tokenizer.cli.convert import convert
from bpe_tokenizer.cli.report import report
from bpe_tokenizer.cli.view import view
from bpe_tokenizer.compat.tiktoken.load import dump_tiktoken_bpe
from bpe_tokenizer.errors import MissingDependencyError
from bpe_tokenizer.formats import registry
from line_documents import tokenize_corpus
from scripted_model import scripted

__all__ = ["WRITERS", "Writer", "trained"]

# Writes into a directory, given the directory of a source and a number that changes the content.
Writer = Callable[[Path, Path, int], None]


def trained(number: int) -> BPETokenizer:
    """A tokenizer that every format can hold."""
    text = "low lower lowest, new newer newest, wide wider widest. " * 3
    return BPETokenizer("gpt2", None).train(text, 270 + number, verbose=False)


def prepare(source: Path, number: int) -> tuple[Path, Path]:
    """A saved tokenizer and a corpus."""
    tokenizer, corpus = source / f"{number}.json", source / "corpus.txt"
    if not tokenizer.exists():
        trained(number).export(tokenizer, "base64-json")
    if not corpus.exists():
        corpus.write_text("low lower lowest\n" * 2000, encoding="utf-8")
    return tokenizer, corpus


def save(kind: str) -> Writer:
    def write(directory: Path, source: Path, number: int) -> None:
        registry.save(trained(number).model, directory / "a.model", kind)

    return write


def tokenize(name: str, **options: Any) -> Writer:
    def write(directory: Path, source: Path, number: int) -> None:
        tokenizer, corpus = prepare(source, 0)
        tokenize_corpus(
            corpus,
            directory / "shards",
            BPETokenizer.load(tokenizer),
            name,  # type: ignore[arg-type]
            append_eos=False,
            shard_tokens=2000 + number,
            verbose=False,
            overwrite=True,
            **options,
        )

    return write


def count(directory: Path, source: Path, number: int) -> None:
    PieceCounts("gpt2").add(f"low lower {number} " * 100).save(directory / "part.counts")


def checkpoint(directory: Path, source: Path, number: int) -> None:
    _, corpus = prepare(source, 0)
    BPETokenizer("gpt2", None).train(
        [corpus], 258 + number, verbose=False, checkpoint=directory / "run", checkpoint_seconds=0
    )


def session(directory: Path, source: Path, number: int) -> None:
    chat = ChatSession(scripted([])[1], trained(0), template="chatml", system_prompt=f"{number}" * 5000)
    chat.save(directory / "chat.json")


def ranks(directory: Path, source: Path, number: int) -> None:
    tokens = {bytes([byte, number, byte]): byte for byte in range(256)}
    dump_tiktoken_bpe(tokens, str(directory / "x.tiktoken"))


def converted(directory: Path, source: Path, number: int) -> None:
    convert(str(prepare(source, number)[0]), directory / "converted", "huggingface", overwrite=True)


def page(directory: Path, source: Path, number: int) -> None:
    tokenizer, corpus = prepare(source, number)
    report(str(tokenizer), [str(corpus)], directory / "report.html")


def shown(directory: Path, source: Path, number: int) -> None:
    try:
        view([str(prepare(source, number)[0])], text=f"low {number}", html=str(directory / "view.html"))
    except MissingDependencyError as error:
        pytest.skip(str(error))


WRITERS: dict[str, Writer] = {
    **{kind: save(kind) for kind in ("huggingface", "tiktoken", "gpt2", "gguf", "minbpe", "base64-json")},
    **{f"corpus-{name}": tokenize(name) for name in ("nanogpt", "llm.c", "megatron", "npy", "parquet")},
    "corpus-shuffled": tokenize("npy", shuffle=1),
    "readable": lambda directory, source, number: trained(number).save_readable(directory / "a.txt"),
    "counts": count,
    "checkpoint": checkpoint,
    "session": session,
    "ranks": ranks,
    "convert": converted,
    "report": page,
    "view": shown,
}
