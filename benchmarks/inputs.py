"""The inputs of the benchmarks: corpora, rank files, and their tokenizers."""

from __future__ import annotations

import base64
import lzma
import os
from collections.abc import Iterator
from pathlib import Path

from bpe_tokenizer import BPETokenizer

__all__ = [
    "SEPARATOR",
    "chunks",
    "cut_at_lines",
    "cut_to_size",
    "fixture",
    "load_ranks",
    "ours",
    "read_documents",
]

SEPARATOR = "<|endoftext|>"


def fixture(*parts: str) -> Path:
    """Return a file of the directory of real vocabularies and corpora, BPE_TOKENIZER_FIXTURES.

    Args:
        parts: The file's path in the directory.

    Returns:
        The path.

    Raises:
        SystemExit: The variable is not set.
    """
    root = os.environ.get("BPE_TOKENIZER_FIXTURES")
    if not root:
        raise SystemExit(
            f"set BPE_TOKENIZER_FIXTURES to the directory with {'/'.join(parts)}, or name the file"
        )
    return Path(root, *parts)


def chunks(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    """Read a plain or `.xz` file in chunks.

    Args:
        path: The file.
        size: Bytes in a chunk.

    Yields:
        The chunks.
    """
    with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as file:
        while chunk := file.read(size):
            yield chunk


def read_documents(path: Path, limit: int | None = None) -> list[str]:
    """Read a corpus of documents with `<|endoftext|>` between them.

    Args:
        path: A plain or `.xz` file in UTF-8.
        limit: Bytes to read; None reads all.

    Returns:
        The documents.
    """
    data = bytearray()
    for chunk in chunks(path):
        data += chunk
        if limit is not None and len(data) >= limit:
            break
    text = bytes(data[:limit]).decode("utf-8", errors="ignore" if limit is not None else "strict")
    return [document for document in text.split(SEPARATOR) if document]


def cut_at_lines(text: str, size: int) -> list[str]:
    """Split a text at line ends into documents of about a size.

    Args:
        text: The text.
        size: UTF-8 bytes; a document ends with the line that brings it there.

    Returns:
        The documents, which joined are the text.
    """
    documents, lines, length = [], [], 0
    for line in text.splitlines(keepends=True):
        lines.append(line)
        length += len(line.encode("utf-8"))
        if length >= size:
            documents.append("".join(lines))
            lines, length = [], 0
    if lines:
        documents.append("".join(lines))
    return documents


def cut_to_size(text: str, size: int, total: int | None = None) -> list[str]:
    """Split a text into parts of a size, between characters.

    Args:
        text: The text.
        size: UTF-8 bytes; a character across a boundary is dropped.
        total: UTF-8 bytes of the text to take; None takes all.

    Returns:
        The parts.
    """
    data = text.encode("utf-8")[:total]
    return [data[at : at + size].decode("utf-8", "ignore") for at in range(0, len(data), size)]


def load_ranks(path: Path) -> dict[bytes, int]:
    """Read a `.tiktoken` file: each line has a token in base64 and its rank.

    Args:
        path: The file.

    Returns:
        Token to rank.
    """
    ranks = {}
    for line in path.read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return ranks


def ours(ranks: dict[bytes, int], split_pattern: str) -> BPETokenizer:
    """Make a tokenizer from a rank file.

    Args:
        ranks: Token to rank.
        split_pattern: The name of the pattern that belongs to the file, or the pattern.

    Returns:
        The tokenizer, without normalisation and special tokens.
    """
    vocab = {rank: token for token, rank in ranks.items()}
    return BPETokenizer.from_vocab(vocab, split_pattern=split_pattern)
