"""The formats of token files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import BinaryIO, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from bpe_tokenizer.corpus.document_ends import DatatroveShard, MegatronShard, OlmoShard
from bpe_tokenizer.corpus.documents import Counts, Ids
from bpe_tokenizer.corpus.flat import LLM_C_MAX_TOKENS, FlatShard, Header, llm_c_header, no_header, npy_header
from bpe_tokenizer.corpus.parquet import ParquetShard
from bpe_tokenizer.corpus.streaming import MdsShard, litdata_header
from bpe_tokenizer.errors import OptionError

__all__ = ["FORMATS", "ShardFormat", "ShardFormatName", "ShardWriter", "TokenType", "choose_token_type"]

ShardFormatName: TypeAlias = Literal[
    "nanogpt", "llm.c", "megatron", "npy", "parquet", "olmo", "datatrove", "mds", "litdata"
]
TokenType: TypeAlias = Literal["uint16", "uint32", "int32"]

_UNLIMITED = 2**63 - 1
# Positions in the files of both are uint32. A document of one id takes eighteen bytes of MDS; litdata has a
# header of twelve bytes.
_MDS_MAX_TOKENS, _LITDATA_MAX_TOKENS = 200_000_000, (2**32 - 1 - 12) // 4
# Megatron's own preprocessing writes vocabularies of this size as int32 (DType.optimal_dtype). Its reader
# takes either type.
_MEGATRON_INT32_VOCABULARY = 65_500


class ShardWriter(Protocol):
    """Writes a shard incrementally. The files do not depend on how the documents are divided into calls."""

    def write(self, ids: Ids, lengths: Counts) -> None:
        """Add documents: their ids in sequence, and the number of ids of each."""

    def finish(self) -> None:
        """Write the end of the files."""

    def abandon(self) -> None:
        """Give up the unfinished shard."""


class ShardFormat(NamedTuple):
    """A format of token files.

    Args:
        suffixes: The suffix of each file of a shard.
        types: The possible types of an id, smallest first.
        open: Returns the writer of a shard, given its empty files and the type of an id.
        max_tokens: The maximum number of ids in a shard.
        max_document_tokens: The maximum number of ids in a document.
        header: What is before the ids in the first file; None if that has more than a sequence of ids.
    """

    suffixes: tuple[str, ...]
    types: tuple[TokenType, ...]
    open: Callable[[Sequence[BinaryIO], TokenType], ShardWriter]
    max_tokens: int = _UNLIMITED
    max_document_tokens: int = _UNLIMITED
    header: Header | None = no_header


def _with_header(
    header: Header, suffix: str, types: tuple[TokenType, ...], most: int = _UNLIMITED
) -> ShardFormat:
    return ShardFormat((suffix,), types, partial(FlatShard, header=header), most, most, header)


_UINT: tuple[TokenType, ...] = ("uint16", "uint32")
_INT: tuple[TokenType, ...] = ("uint16", "int32")
FORMATS: dict[ShardFormatName, ShardFormat] = {
    "nanogpt": _with_header(no_header, ".bin", _UINT),
    "llm.c": _with_header(llm_c_header, ".bin", _UINT, LLM_C_MAX_TOKENS),
    # The length of a sequence is an int32; positions are int64.
    "megatron": ShardFormat((".bin", ".idx"), _INT, MegatronShard, max_document_tokens=2**31 - 1),
    "npy": _with_header(npy_header, ".npy", _UINT),
    # Readers that make one list array of the column have offsets of int32.
    "parquet": ShardFormat((".parquet",), ("uint32",), ParquetShard, 2**31 - 1, 2**31 - 1, None),
    "olmo": ShardFormat((".npy", ".csv.gz"), _UINT, OlmoShard),
    "datatrove": ShardFormat((".ds", ".ds.index", ".ds.metadata"), _UINT, DatatroveShard),
    "mds": ShardFormat((".mds",), _INT, MdsShard, _MDS_MAX_TOKENS, 2**29, None),
    "litdata": _with_header(litdata_header, ".bin", _INT, _LITDATA_MAX_TOKENS),
}


def choose_token_type(name: ShardFormatName, largest_id: int, wanted: TokenType | None = None) -> TokenType:
    """Return the type of an id in a format.

    Args:
        name: The format.
        largest_id: The tokenizer's largest id.
        wanted: The type that the user wants; None for the smallest that holds every id. For nanoGPT, whose
            `train.py` reads `uint16` and cannot recognise another type, `"uint32"` must be wanted.

    Raises:
        OptionError: The format has no such type, or the type does not hold every id, or `"uint32"` must be
            wanted.

    >>> choose_token_type("nanogpt", 50256), choose_token_type("npy", 128255)
    ('uint16', 'uint32')
    """
    types = FORMATS[name].types
    if wanted is not None and wanted not in types:
        known = " or ".join(map(repr, types))
        raise OptionError(f"dtype is {wanted!r}, and {name} has ids of type {known}")
    largest = wanted or types[-1]
    if largest_id > np.iinfo(largest).max:
        raise OptionError(f"the tokenizer's largest id, {largest_id:,}, does not fit into {largest}")
    if wanted is not None:
        return wanted
    smallest = next(each for each in types if largest_id <= np.iinfo(each).max)
    if name == "nanogpt" and smallest != "uint16":
        raise OptionError(
            f"the largest id is {largest_id:,}, but nanoGPT's train.py reads uint16 (at most 65,535) without "
            "a check; write 32 bits with dtype='uint32' (--dtype uint32), and change both lines of its "
            "get_batch to np.memmap(..., dtype=np.uint32, mode='r')"
        )
    if name == "megatron" and largest_id + 1 >= _MEGATRON_INT32_VOCABULARY:
        return "int32"
    return smallest
