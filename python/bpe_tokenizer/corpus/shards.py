"""The formats of token files: ids of whole documents in, a file or two out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.megatron import MegatronShard
from bpe_tokenizer.corpus.parquet import ParquetShard
from bpe_tokenizer.errors import OptionError

__all__ = ["FORMATS", "ShardFormat", "ShardFormatName", "ShardWriter", "TokenType", "token_type"]

ShardFormatName: TypeAlias = Literal["nanogpt", "llm.c", "megatron", "npy", "parquet"]
TokenType: TypeAlias = Literal["uint16", "uint32", "int32"]


class ShardWriter(Protocol):
    """Writes a shard, some documents at a time; how they were portioned does not show in the files."""

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents: the ids of all of them, and how many each has."""

    def finish(self) -> None:
        """Write what comes last, and close the files."""

    def abandon(self) -> None:
        """Close the files as they are."""


class ShardFormat(NamedTuple):
    """A format of token files.

    Args:
        suffixes: Of the files of a shard.
        types: Of an id in them, smallest first.
        open: Takes the shard's files, which do not exist yet, and the type.
        most_tokens: As many a shard can hold.
    """

    suffixes: tuple[str, ...]
    types: tuple[TokenType, ...]
    open: Callable[[Sequence[Path], TokenType], ShardWriter]
    most_tokens: int = 2**63 - 1


class FlatShard:
    """nanoGPT's files: the ids, one after the other, little-endian, and nothing else.

    https://github.com/karpathy/nanoGPT/blob/master/data/openwebtext/prepare.py
    """

    def __init__(self, paths: Sequence[Path], kind: TokenType) -> None:
        self._dtype = np.dtype(kind).newbyteorder("<")
        self._tokens = 0
        self._file = paths[0].open("xb")
        self._write_header(self._file)

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        self._file.write(ids.astype(self._dtype).data)
        self._tokens += len(ids)

    def finish(self) -> None:
        """Write the header again, now that the number of tokens is known."""
        self._file.seek(0)
        self._write_header(self._file)
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is."""
        self._file.close()

    def _write_header(self, file: BinaryIO) -> None:
        pass


class NumpyShard(FlatShard):
    """A one-dimensional array, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html."""

    def _write_header(self, file: BinaryIO) -> None:
        # NumPy leaves room for the length of the first axis to grow, so every header is of the same size.
        np.lib.format.write_array_header_1_0(
            file, {"descr": self._dtype.str, "fortran_order": False, "shape": (self._tokens,)}
        )


class LlmCShard(FlatShard):
    """llm.c's files: 256 int32 (magic, version, number of tokens), and the ids.

    https://github.com/karpathy/llm.c/blob/master/dev/data/data_common.py: version 1 has ids of 16 bits (its
    "gpt-2"), version 7 of 32 bits (its "llama-3").
    """

    def _write_header(self, file: BinaryIO) -> None:
        header = np.zeros(256, dtype="<i4")
        magic, version = (20240520, 1) if self._dtype.itemsize == 2 else (20240801, 7)
        header[:3] = magic, version, self._tokens
        file.write(header.data)


FORMATS: dict[ShardFormatName, ShardFormat] = {
    "nanogpt": ShardFormat((".bin",), ("uint16", "uint32"), FlatShard),
    "llm.c": ShardFormat((".bin",), ("uint16", "uint32"), LlmCShard, most_tokens=2**31 - 1),
    "megatron": ShardFormat((".bin", ".idx"), ("uint16", "int32"), MegatronShard, most_tokens=2**31 - 1),
    "npy": ShardFormat((".npy",), ("uint16", "uint32"), NumpyShard),
    "parquet": ShardFormat((".parquet",), ("uint32",), ParquetShard, most_tokens=2**31 - 1),
}


def token_type(name: ShardFormatName, largest_id: int, asked: TokenType | None = None) -> TokenType:
    """Return the type of ids in a format.

    Args:
        name: Of the format.
        largest_id: Of the tokenizer.
        asked: What the user wants; None for the smallest that every id fits into.

    Raises:
        OptionError: The format has no such type, or the ids do not fit into it.

    >>> token_type("nanogpt", 50256), token_type("nanogpt", 128255), token_type("megatron", 50256)
    ('uint16', 'uint32', 'uint16')
    """
    types = FORMATS[name].types
    if asked is not None and asked not in types:
        known = " or ".join(map(repr, types))
        if asked not in get_args(TokenType):
            raise OptionError(f"dtype is {asked!r}; it must be {known}")
        raise OptionError(f"{name} has no ids of type {asked!r}; dtype can be {known}")
    fitting = [each for each in types if largest_id <= _largest(name, each)]
    if not fitting or (asked is not None and asked not in fitting):
        raise OptionError(
            f"the tokenizer's ids go up to {largest_id:,}, which does not fit into {asked or types[-1]}"
        )
    return asked or fitting[0]


def _largest(name: ShardFormatName, kind: TokenType) -> int:
    if name == "megatron" and kind == "uint16":
        # Megatron takes vocabularies of 65,500 ids and more for 32 bits.
        return 65499 - 1
    return int(np.iinfo(kind).max)
