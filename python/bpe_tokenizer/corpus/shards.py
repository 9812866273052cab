"""The formats of token files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import BinaryIO, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.megatron import MegatronShard
from bpe_tokenizer.corpus.parquet import ParquetShard
from bpe_tokenizer.errors import OptionError

__all__ = ["FORMATS", "ShardFormat", "ShardFormatName", "ShardWriter", "TokenType", "choose_token_type"]

ShardFormatName: TypeAlias = Literal["nanogpt", "llm.c", "megatron", "npy", "parquet"]
TokenType: TypeAlias = Literal["uint16", "uint32", "int32"]


class ShardWriter(Protocol):
    """Writes a shard incrementally. The files do not depend on how the documents are divided into calls."""

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents: their ids in sequence, and the number of ids of each."""

    def finish(self) -> None:
        """Write the end of the files."""

    def sizes(self, documents: int, tokens: int) -> list[int]:
        """Return the size that each file of a finished shard must have."""

    def abandon(self) -> None:
        """Give up the unfinished shard."""


class ShardFormat(NamedTuple):
    """A format of token files.

    Args:
        suffixes: The suffix of each file of a shard.
        types: The possible types of an id, smallest first.
        open: Returns the writer of a shard, given its empty files and the type of an id.
        max_tokens: The maximum number of ids in a shard.
    """

    suffixes: tuple[str, ...]
    types: tuple[TokenType, ...]
    open: Callable[[Sequence[BinaryIO], TokenType], ShardWriter]
    max_tokens: int = 2**63 - 1


class FlatShard:
    """nanoGPT's files: the ids in sequence, little-endian, without a header.

    https://github.com/karpathy/nanoGPT/blob/master/data/openwebtext/prepare.py
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: TokenType) -> None:
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self._tokens = 0
        self._file = files[0]
        self._write_header(self._file)
        self._header_bytes = self._file.tell()

    def write(self, ids: npt.NDArray[np.uint32], lengths: npt.NDArray[np.int64]) -> None:
        """Add documents."""
        self._file.write(ids.astype(self._dtype).data)
        self._tokens += len(ids)

    def finish(self) -> None:
        """Write the header again with the final number of tokens."""
        self._file.seek(0)
        self._write_header(self._file)

    def sizes(self, documents: int, tokens: int) -> list[int]:
        """Return the size that the file must have."""
        return [self._header_bytes + tokens * self._dtype.itemsize]

    def abandon(self) -> None:
        """Do nothing: the file holds nothing that is not in place."""

    def _write_header(self, file: BinaryIO) -> None:
        pass


class NumpyShard(FlatShard):
    """A one-dimensional array, https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html."""

    def _write_header(self, file: BinaryIO) -> None:
        # NumPy pads the header for the length of the first axis, so all headers have the same size.
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
    "llm.c": ShardFormat((".bin",), ("uint16", "uint32"), LlmCShard, max_tokens=2**31 - 1),
    "megatron": ShardFormat((".bin", ".idx"), ("uint16", "int32"), MegatronShard, max_tokens=2**31 - 1),
    "npy": ShardFormat((".npy",), ("uint16", "uint32"), NumpyShard),
    "parquet": ShardFormat((".parquet",), ("uint32",), ParquetShard, max_tokens=2**31 - 1),
}


def choose_token_type(name: ShardFormatName, largest_id: int, wanted: TokenType | None = None) -> TokenType:
    """Return the type of an id in a format.

    Args:
        name: The format.
        largest_id: The tokenizer's largest id.
        wanted: The type that the user wants; None for the smallest that holds every id.

    Raises:
        OptionError: The format has no such type, or the type does not hold every id.

    >>> choose_token_type("nanogpt", 50256), choose_token_type("nanogpt", 128255)
    ('uint16', 'uint32')
    """
    types = FORMATS[name].types
    if wanted is not None and wanted not in types:
        known = " or ".join(map(repr, types))
        if wanted not in get_args(TokenType):
            raise OptionError(f"dtype is {wanted!r}; it must be {known}")
        raise OptionError(f"{name} has no ids of type {wanted!r}; dtype can be {known}")
    fitting = [each for each in types if largest_id <= _largest(name, each)]
    if not fitting or (wanted is not None and wanted not in fitting):
        raise OptionError(
            f"the tokenizer's largest id, {largest_id:,}, does not fit into {wanted or types[-1]}"
        )
    return wanted or fitting[0]


def _largest(name: ShardFormatName, dtype: TokenType) -> int:
    if name == "megatron" and dtype == "uint16":
        # Megatron reads vocabularies of 65,500 ids and more as 32 bits.
        return 65499 - 1
    return int(np.iinfo(dtype).max)
