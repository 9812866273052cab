"""Makes the files that a training program opens by name: nanoGPT's `train.bin`, the `index.json` of MDS."""

from __future__ import annotations

import os
import pickle
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bpe_tokenizer.atomic import AtomicFile, write_atomically
from bpe_tokenizer.corpus.checksums import read_errors, size_of
from bpe_tokenizer.corpus.flat import no_header
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormatName, TokenType
from bpe_tokenizer.corpus.streaming import INDEX, INDEXED_FORMATS, stream_index
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["join_shards", "joined_files", "link", "training_files", "unlink_training_name", "write_meta"]

_META = "meta.pkl"
# The sides of a division whose shards are joined, into `train.bin` and `val.bin`. llm.c reads many files for
# training; those of a small share for validation would be shorter than its batches.
_JOINED: dict[ShardFormatName, tuple[str, ...]] = {"nanogpt": ("train", "val"), "llm.c": ("val",)}
_CHUNK = 8 << 20


def joined_files(settings: Mapping[str, Any]) -> set[str]:
    """Return the names of all files that this module may have written for a run.

    Args:
        settings: The settings of the run, as JSON values.
    """
    if settings.get("format") in INDEXED_FORMATS:
        return {INDEX}
    return set() if settings.get("val_fraction") is None else {_META, "train.bin", "val.bin"}


def join_shards(
    directory: Path,
    shards: Sequence[str],
    format: ShardFormatName,  # noqa: A002 (the usual name)
    dtype: TokenType,
) -> list[Path]:
    """Join the shards of a finished run that divided its documents, where the format needs that.

    Each file is written next to its place and renamed. One shard gets a second name (a hard link) where that
    suffices. A file that is newer than its shards and has their size is kept.

    Args:
        directory: The directory of the shards.
        shards: The names of their files, in order: `tokens-00000.train.bin`, `tokens-00000.val.bin`, …
        format: The format of the shards.
        dtype: The type of an id.

    Returns:
        The files that the training program reads, those for validation last: joined files, and shards that
        are not joined.

    Raises:
        CorpusError: One side of the split has no ids, or the shards are too long for one file, or cannot be
            read.
        WriteError: A file cannot be written.
    """
    kind, header = np.dtype(dtype), FORMATS[format].header or no_header
    skip = len(header(kind, 0))
    others = [directory / shard for shard in shards]
    joined: list[tuple[Path, list[Path], bytes]] = []
    for side in _JOINED.get(format, ()):
        end = f".{side}.bin"
        parts = [part for part in others if part.name.endswith(end)]
        others = [part for part in others if not part.name.endswith(end)]
        tokens = sum(size_of(part) - skip for part in parts) // kind.itemsize
        _check_length(format, side, tokens)
        joined.append((directory / f"{side}.bin", parts, header(kind, tokens)))
    for path, parts, beginning in joined:
        _join(path, parts, beginning)
    return [*others, *(path for path, *_ in joined)]


def training_files(files: list[Path], settings: Mapping[str, Any]) -> list[Path]:
    """Give the shards of a finished run the names that the training program opens.

    With a division of the documents, shards are joined where the format needs that. The only shard of another
    run gets the name that nanoGPT opens, `train.bin`, where the file system has hard links. MDS and litdata
    get the list of their shards.

    Args:
        files: The files of the shards, in order.
        settings: The settings of the run, as JSON values.

    Returns:
        The files that the training program reads.

    Raises:
        CorpusError: As in `join_shards`.
        WriteError: As in `join_shards`.
    """
    if settings["format"] in INDEXED_FORMATS:
        write_atomically({files[0].with_name(INDEX): stream_index(files, settings)})
    if settings.get("val_fraction") is not None:
        names = [path.name for path in files]
        return join_shards(files[0].parent, names, settings["format"], settings["dtype"])
    if settings["format"] == "nanogpt" and len(files) == 1:
        link(files[0], files[0].with_name("train.bin"))
    return files


def unlink_training_name(shard: Path) -> None:
    """Remove the second name of a shard, and no other `train.bin`."""
    path = shard.with_name("train.bin")
    with suppress(OSError):
        if path.samefile(shard):
            path.unlink()


def write_meta(directory: Path, tokenizer: BPETokenizer) -> None:
    """Write nanoGPT's `meta.pkl`, unless it is there.

    Raises:
        WriteError: It cannot be written.
    """
    path, data = directory / _META, _nanogpt_meta(tokenizer)
    with suppress(OSError):
        if path.read_bytes() == data:
            return
    write_atomically({path: data})


def _check_length(name: ShardFormatName, side: str, tokens: int) -> None:
    if not tokens:
        what, change = ("validation", "larger") if side == "val" else ("training", "smaller")
        raise CorpusError(
            f"no document was chosen for {what}: the corpus is too small for this val_fraction; start again "
            f"with a {change} one and overwrite=True (--overwrite on the command line)"
        )
    if tokens > FORMATS[name].max_tokens:
        raise CorpusError(
            f"the documents for validation have {tokens:,} ids, and a file of {name} holds at most "
            f"{FORMATS[name].max_tokens:,}; start again with a smaller val_fraction and overwrite=True "
            "(--overwrite on the command line)"
        )


def _join(path: Path, parts: Sequence[Path], header: bytes) -> None:
    """Write the ids of files to one file."""
    skip = len(header)
    size = skip + sum(size_of(part) - skip for part in parts)
    with suppress(OSError):
        found = path.stat()
        if found.st_size == size and all(part.stat().st_mtime_ns <= found.st_mtime_ns for part in parts):
            return
    if len(parts) == 1 and link(parts[0], path):
        return
    with AtomicFile(path) as file:
        file.write(header)
        for part in parts:
            for chunk in _chunks(part, skip):
                file.write(chunk)


def link(part: Path, path: Path) -> bool:
    """Give a file a second name; return whether that was possible. A store has none."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with suppress(OSError):
        os.link(part, temporary)
        temporary.replace(path)
        # If both names were of the file before, `replace` has done nothing.
        temporary.unlink(missing_ok=True)
        return True
    return False


def _chunks(path: Path, skip: int) -> Iterator[bytes]:
    with read_errors(path), path.open("rb") as file:
        file.seek(skip)
        while chunk := file.read(_CHUNK):
            yield chunk


def _nanogpt_meta(tokenizer: BPETokenizer) -> bytes:
    """Return the contents of nanoGPT's `meta.pkl`.

    `train.py` takes the size of its embedding from `vocab_size`. `sample.py` prints `itos` of each id. It
    encodes its prompt character by character with `stoi`, which gives a longer text other ids than those of
    the training. So `stoi` has only the default prompt, a newline, and `sample.py` stops with a `KeyError` at
    any other. There it needs the tokenizer's `encode` and `decode`.

    Args:
        tokenizer: The tokenizer of the shards.
    """
    texts = dict.fromkeys(range(tokenizer.n_vocab), "\N{REPLACEMENT CHARACTER}")
    for token, data in tokenizer.vocab.items():
        # A part of a character is not a text.
        texts[token] = data.decode("utf-8", errors="replace")
    newline = tokenizer.encode("\n")
    stoi = {"\n": newline[0]} if len(newline) == 1 else {}
    return pickle.dumps({"vocab_size": tokenizer.n_vocab, "itos": texts, "stoi": stoi}, protocol=4)
