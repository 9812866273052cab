"""`tokenize_corpus`: turns files of text into files of ids."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.arguments import check_integer
from bpe_tokenizer.console import count_noun
from bpe_tokenizer.corpus.batches import BatchReader
from bpe_tokenizer.corpus.packer import Encoded, ShardPacker
from bpe_tokenizer.corpus.shard_directory import ShardDirectory
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormatName, TokenType, choose_token_type
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, SpecialTokenError, shorten
from bpe_tokenizer.readers.inputs import Input, PathLike, find_inputs
from bpe_tokenizer.readers.options import DocumentEnd, InputFormat, OnError, ReadOptions
from bpe_tokenizer.special_tokens import AllowedSpecial
from bpe_tokenizer.tokenizer import BPETokenizer
from bpe_tokenizer.train.progress import ProgressBar

__all__ = ["TokenizedCorpus", "tokenize_corpus"]


class TokenizedCorpus(NamedTuple):
    """The result of `tokenize_corpus`.

    Args:
        files: The token files, in the order of the documents.
        documents: Number of documents.
        tokens: Number of ids, with those of EOS.
        skipped: Number of bad rows that were skipped.
        dtype: The type of an id in the files.
        kept: Number of shards that an earlier run had finished.
    """

    files: list[Path]
    documents: int
    tokens: int
    skipped: int
    dtype: TokenType
    kept: int

    def __repr__(self) -> str:
        files = shorten([str(file) for file in self.files])
        return (
            f"{type(self).__name__}(files={files}, documents={self.documents}, tokens={self.tokens}, "
            f"skipped={self.skipped}, dtype={self.dtype!r}, kept={self.kept})"
        )


def tokenize_corpus(
    inputs: PathLike | Iterable[PathLike],
    output: PathLike,
    tokenizer: BPETokenizer,
    format: ShardFormatName = "nanogpt",  # noqa: A002 (the usual name)
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

    The ids are those of `tokenizer.encode` for each document, in the order of the inputs. Memory is bounded
    by a few batches of some megabytes, and by the longest document. A killed run resumes after its last
    finished shard when it is started again with the same arguments, and gives the same files.

    Args:
        inputs: Files of text, JSON Lines, Parquet or Arrow; all but Parquet may be compressed (gzip, xz,
            Zstandard, bzip2). Also directories, patterns such as `"data/**/*.jsonl.gz"`, URLs such as
            `"s3://bucket/data"`, and `"-"` for standard input.
        output: A directory for the shards, `tokens-00000.bin` and so on, and `manifest.json`.
        tokenizer: Encodes the documents.
        format: `"nanogpt"`, `"llm.c"`, `"megatron"`, `"npy"` or `"parquet"`.
        input_format: `"text"`, `"jsonl"`, `"parquet"` or `"arrow"`; None decides by the content of each
            file.
        documents: Whether a document of text is a `"line"` or a `"file"`.
        separator: Text that separates documents instead, such as `"<|endoftext|>"`.
        field: The field of JSON Lines or the column of tables that holds the text.
        append_eos: Whether to add the tokenizer's EOS token, if any, after each document.
        eos_token: Another special token to add instead.
        shard_tokens: Maximum number of ids in a shard; None for the maximum of the format. Documents are not
            split, so a longer document gets a larger shard.
        dtype: `"uint16"` or `"uint32"` (`"megatron"`: `"int32"`); None for the smallest that holds all ids.
        allowed_special: The special tokens to recognise in documents: `"none"`, `"all"` or a set.
        on_error: `"stop"` at or `"skip"` a row that is not valid UTF-8 or JSON or has no text.
        threads: Number of threads that encode; None for all processors.
        overwrite: Whether to remove the shards of an earlier run instead of resuming it.
        verbose: Whether to show a progress bar on standard error, if that is a terminal.

    Returns:
        The files, with the numbers of documents and tokens.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        CorpusError: A file cannot be read, a row is bad, or the corpus has no text.
        MissingDependencyError: `pyarrow` or `zstandard`, which a format needs, is not installed.
        NotTrainedError: The tokenizer has no vocabulary yet.
        OptionError: An option is unknown or out of range, or the directory holds other files.
        SpecialTokenError: `eos_token` or a token of `allowed_special` is unknown.
        WriteError: Another run writes into the directory, also one that is stopped, or a file cannot be
            written.

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
    options = ReadOptions(input_format, documents, separator, field, on_error)
    if format not in FORMATS:
        raise OptionError(f"format is {format!r}; it must be one of {', '.join(map(repr, FORMATS))}")
    limit = _shard_limit(format, shard_tokens)
    eos_id = _eos_id(tokenizer, eos_token) if append_eos else None
    token_type = choose_token_type(format, max(tokenizer.vocab), dtype)
    sources = find_inputs(inputs)

    def encode(texts: Sequence[str]) -> Encoded:
        ids, offsets = tokenizer.encode_ragged(texts, allowed_special=allowed_special, threads=threads)
        return (ids, offsets) if eos_id is None else _with_eos(ids, offsets, eos_id)

    encode([])  # Checks its arguments before anything is written.
    settings = {
        "format": format,
        "dtype": token_type,
        "shard_tokens": limit,
        "eos_id": eos_id,
        "allowed_special": allowed_special if isinstance(allowed_special, str) else sorted(allowed_special),
        "input_format": input_format,
        "documents": documents,
        "separator": separator,
        "field": field,
        "tokenizer": _digest(tokenizer.model.core.__getnewargs_ex__()),
        "inputs": _digest(
            [(each.location and PurePath(each.location).name, each.size, each.modified) for each in sources]
        ),
    }
    with ShardDirectory.open(Path(output), settings, overwrite) as directory:
        kept = len(directory.shards)
        if kept and not all(source.is_regular for source in sources):
            raise OptionError(
                f"{output} holds shards of a run from standard input, which cannot be read again: "
                "overwrite them, or put the corpus into a file"
            )
        if directory.skipped is None:
            found = BatchReader(sources, options, directory.end, threads)
            with ProgressBar.shown(verbose) as bar:
                bar.start("Tokenizing", _size(sources), "MB", 1e6)
                ShardPacker(directory, FORMATS[format], token_type, limit).run(
                    found, encode, lambda done, tokens: bar.update(done, note=count_noun(tokens, "token"))
                )
            directory.complete(found.position.skipped)
    return TokenizedCorpus(
        [directory.directory / name for shard in directory.shards for name in shard.files],
        sum(shard.documents for shard in directory.shards),
        sum(shard.tokens for shard in directory.shards),
        directory.skipped or 0,
        token_type,
        kept,
    )


def _eos_id(tokenizer: BPETokenizer, eos_token: str | None) -> int | None:
    if eos_token is None:
        return tokenizer.eos_token_id
    special = tokenizer.special_tokens
    if eos_token not in special:
        raise SpecialTokenError(
            f"eos_token is {eos_token!r}, which is not a special token of the tokenizer; it has "
            f"{', '.join(map(repr, special)) or 'none'}"
        )
    return special[eos_token]


def _shard_limit(name: ShardFormatName, shard_tokens: int | None) -> int:
    limit = FORMATS[name].max_tokens
    if shard_tokens is None:
        return limit
    return check_integer("shard_tokens", shard_tokens, 1, f"the limit of {name}", maximum=limit)


def _with_eos(ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64], eos_id: int) -> Encoded:
    """Add an id after each text of a ragged batch."""
    return np.insert(ids, offsets[1:], eos_id), offsets + np.arange(len(offsets))


def _file_name(source: Input) -> str | None:
    return None if source.location is None else PurePath(source.location).name


def _digest(value: object) -> str:
    """Return the SHA-256 of a value of numbers, strings, lists and dicts."""
    return hashlib.sha256(repr(value).encode("utf-8", errors="surrogateescape")).hexdigest()


def _size(sources: Collection[Input]) -> int | None:
    """Return the total number of bytes to read; None for standard input."""
    if not all(source.is_regular for source in sources):
        return None
    return sum(source.size for source in sources)
