"""`tokenize_corpus`: files of text in, files of ids out."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.batches import Documents, OnError
from bpe_tokenizer.corpus.filling import Encoded, Filling
from bpe_tokenizer.corpus.inputs import Input, PathLike, find_inputs
from bpe_tokenizer.corpus.output import Output
from bpe_tokenizer.corpus.readers import DocumentEnd, InputFormat, Reader
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormatName, TokenType, token_type
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, SpecialTokenError
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["TokenizedCorpus", "tokenize_corpus"]


class TokenizedCorpus(NamedTuple):
    """What `tokenize_corpus` made.

    Args:
        files: The token files, in the order of the documents.
        documents: How many there are.
        tokens: How many ids, with those of EOS.
        skipped: How many bad rows were left out.
        dtype: The type of an id in the files.
        kept: How many shards an earlier run had finished.
    """

    files: list[Path]
    documents: int
    tokens: int
    skipped: int
    dtype: TokenType
    kept: int


def tokenize_corpus(
    inputs: PathLike | Iterable[PathLike],
    output: PathLike,
    tokenizer: BPETokenizer,
    format: ShardFormatName = "nanogpt",  # noqa: A002 (what everybody calls it)
    *,
    input_format: InputFormat | None = None,
    documents: DocumentEnd = "line",
    separator: str | None = None,
    field: str = "text",
    append_eos: bool = True,
    eos_token: str | None = None,
    shard_tokens: int | None = 100_000_000,
    dtype: TokenType | None = None,
    allowed_special: AllowedSpecial = "none",
    on_error: OnError = "stop",
    threads: int | None = None,
    overwrite: bool = False,
    verbose: bool = True,
) -> TokenizedCorpus:
    r"""Turn the documents of files into token files that training programs read.

    The ids are those of `tokenizer.encode` of each document, in the order of the inputs. Memory is bounded
    by a few batches of some megabytes, and by the longest document. A run that was killed goes on where its
    last finished shard ended when it is started again with the same arguments; the files are then the same
    as those of a run that was not.

    Args:
        inputs: Files of text, JSON Lines, Parquet or Arrow, text and JSON Lines also compressed (gzip, xz,
            Zstandard); patterns such as `"data/**/*.jsonl.gz"`; `"-"` for standard input.
        output: A directory for the shards, `tokens-00000.bin` and so on, and `manifest.json`.
        tokenizer: Encodes the documents.
        format: `"nanogpt"`, `"llm.c"`, `"megatron"`, `"npy"` or `"parquet"`.
        input_format: `"text"`, `"jsonl"`, `"parquet"` or `"arrow"`; None: by the names of the files.
        documents: Of text: `"line"`, a document a line, or `"file"`, a document a file.
        separator: What stands between two documents of text instead, such as `"<|endoftext|>"`.
        field: Of JSON Lines and tables: the name of the text.
        append_eos: End each document with the EOS token, if the tokenizer has one.
        eos_token: Another special token to end them with.
        shard_tokens: A shard has at most so many ids, unless a single document has more; documents are not
            cut. None: as many as the format can hold.
        dtype: `"uint16"` or `"uint32"` (`"megatron"`: `"int32"`); None: the smallest that all ids fit into.
        allowed_special: The special tokens that are recognised in documents: `"none"`, `"all"` or a set.
        on_error: What to do about a row that is not valid UTF-8 or JSON or has no text: `"stop"` or `"skip"`.
        threads: Number of threads that encode; None for as many as there are processors.
        overwrite: Remove the shards of an earlier run instead of going on with it.
        verbose: Show a progress bar on standard error, if that is a terminal.

    Returns:
        What was made: files, documents, tokens.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        CorpusError: A file cannot be read, a row is bad, or there is no text at all.
        MissingDependencyError: A format needs `pyarrow` or `zstandard`, and it is not installed.
        NotTrainedError: The tokenizer has no vocabulary yet.
        OptionError: An option is not known or out of its range, or the directory holds something else.
        SpecialTokenError: `eos_token` or a token of `allowed_special` is not known.

    >>> import pathlib, tempfile
    >>> tokenizer = BPETokenizer().train("low lower", 258, special_tokens=["<|eos|>"], verbose=False)
    >>> directory = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (directory / "corpus.txt").write_text("low\nlower\n", encoding="utf-8")
    >>> made = tokenize_corpus(directory / "corpus.txt", directory / "tokens", tokenizer)
    >>> made.documents, made.tokens, made.dtype
    (2, 8, 'uint16')
    >>> np.fromfile(made.files[0], dtype="<u2").tolist()
    [108, 257, 256, 108, 257, 101, 114, 256]
    """
    if not isinstance(tokenizer, BPETokenizer):
        raise ArgumentTypeError(f"tokenizer must be a BPETokenizer, not {type(tokenizer).__name__}")
    reader = Reader(input_format, documents, separator, field)
    if on_error not in ("stop", "skip"):
        raise OptionError(f"on_error is {on_error!r}; it must be 'stop' or 'skip'")
    if format not in FORMATS:
        raise OptionError(f"format is {format!r}; it must be one of {', '.join(map(repr, FORMATS))}")
    most = _most_tokens(format, shard_tokens)
    eos_id = _eos_id(tokenizer, eos_token) if append_eos else None
    kind = token_type(format, max(tokenizer.vocab), dtype)
    sources = find_inputs(inputs)

    def encode(texts: Sequence[str]) -> Encoded:
        ids, offsets = tokenizer.encode_ragged(texts, allowed_special=allowed_special, threads=threads)
        return (ids, offsets) if eos_id is None else _with_eos(ids, offsets, eos_id)

    encode([])  # Refuses what is wrong with its arguments before anything is written.
    settings = {
        "format": format,
        "dtype": kind,
        "shard_tokens": most,
        "eos_id": eos_id,
        "allowed_special": allowed_special if isinstance(allowed_special, str) else sorted(allowed_special),
        "input_format": input_format,
        "documents": documents,
        "separator": separator,
        "field": field,
        "tokenizer": _digest(tokenizer.model.core.__getnewargs_ex__()),
        "inputs": _digest([(each.path and each.path.name, each.size, each.modified) for each in sources]),
    }
    directory = Output.begin(Path(output), settings, overwrite)
    kept = len(directory.shards)
    if kept and any(source.path is None for source in sources):
        raise OptionError(
            f"{output} holds shards of a run from standard input, which cannot be read again from its "
            "beginning: overwrite them, or put the corpus into a file"
        )
    if directory.skipped is None:
        found = Documents(sources, reader, on_error, directory.end)
        with ProgressBar.shown(verbose) as bar:
            bar.start("Tokenizing", _size(sources), "MB", 1e6)
            Filling(directory, FORMATS[format], kind, most).run(
                found, encode, lambda done, tokens: bar.update(done, note=f"{tokens:,} tokens")
            )
        directory.complete(found.position.skipped)
    return TokenizedCorpus(
        [directory.directory / name for shard in directory.shards for name in shard.files],
        sum(shard.documents for shard in directory.shards),
        sum(shard.tokens for shard in directory.shards),
        directory.skipped or 0,
        kind,
        kept,
    )


def _eos_id(tokenizer: BPETokenizer, eos_token: str | None) -> int | None:
    if eos_token is None:
        return tokenizer.eos_token_id
    special = tokenizer.special_tokens
    if eos_token not in special:
        raise SpecialTokenError(
            f"eos_token is {eos_token!r}, which is no special token of the tokenizer; it has "
            f"{', '.join(map(repr, special)) or 'none'}"
        )
    return special[eos_token]


def _most_tokens(name: ShardFormatName, shard_tokens: int | None) -> int:
    limit = FORMATS[name].most_tokens
    if shard_tokens is None:
        return limit
    if isinstance(shard_tokens, bool) or not isinstance(shard_tokens, int):
        raise ArgumentTypeError(f"shard_tokens must be an int or None, not {type(shard_tokens).__name__}")
    if not 1 <= shard_tokens <= limit:
        raise OptionError(f"shard_tokens is {shard_tokens:,}; for {name} it must be from 1 to {limit:,}")
    return shard_tokens


def _with_eos(ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64], eos_id: int) -> Encoded:
    """Put an id behind each text of a ragged batch."""
    return np.insert(ids, offsets[1:], eos_id), offsets + np.arange(len(offsets))


def _digest(value: object) -> str:
    """Return what tells two values apart that are made of numbers, strings, lists and dicts."""
    return hashlib.sha256(repr(value).encode("utf-8", errors="surrogateescape")).hexdigest()


def _size(sources: Collection[Input]) -> int | None:
    """Return the bytes there are to read; None if nobody knows."""
    if any(source.path is None for source in sources):
        return None
    return sum(source.size for source in sources)
