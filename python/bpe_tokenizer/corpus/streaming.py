"""Shards of streaming datasets, which one `index.json` lists: MosaicML's MDS and Lightning's litdata."""

from __future__ import annotations

import json
import shutil
import struct
import tempfile
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.corpus.checksums import read_errors, size_of
from bpe_tokenizer.corpus.documents import Counts, Ids
from bpe_tokenizer.errors import CorpusError

__all__ = ["INDEX", "INDEXED_FORMATS", "MdsShard", "litdata_header", "mds_columns", "stream_index"]

INDEX = "index.json"
INDEXED_FORMATS = ("mds", "litdata")

# Positions in the files of both formats are uint32.
_MAX_BYTES = 2**32 - 1
# A chunk of litdata is one item: the number of items, its start and its end.
_LITDATA_HEADER = struct.Struct("<III")
# The numbers of types in litdata's constants.py. PyTorch's list has no uint16.
_LITDATA_TYPES = {"uint16": "no_header_numpy:5", "int32": "no_header_tensor:16"}
# What its `treespec_dumps` returns for an item that is one array.
_LITDATA_LEAF = '[1, {"type": null, "context": null, "children_spec": []}]'

_TOKENS = "tokens"


def mds_columns(is_packed: bool, has_loss: bool) -> list[str]:
    """Return the columns of MDS, in alphabetical order."""
    return [*(["labels"] if has_loss else []), *(["seq_lengths"] if is_packed else []), _TOKENS]


class MdsShard:
    """Writes a sample for each document, with the ids in the column `tokens`.

    https://github.com/mosaicml/streaming, streaming/base/format/mds/writer.py and encodings.py: the number of
    samples, the position of each, the columns as JSON, and the samples, each with the sizes of its arrays
    first. The positions are known last, so the samples wait in a temporary file until the end.

    Args:
        files: The file to write.
        dtype: The type of an id.
        columns: The columns, in alphabetical order.
    """

    def __init__(self, files: Sequence[BinaryIO], dtype: str, columns: Sequence[str] = (_TOKENS,)) -> None:
        self._file = files[0]
        self._types = [np.dtype(_column_type(name, dtype)).newbyteorder("<") for name in columns]
        self._config = json.dumps(_mds_config(dtype, columns), sort_keys=True).encode()
        name = getattr(self._file, "name", None)
        directory = Path(name).parent if isinstance(name, (str, Path)) else None
        self._samples = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 (`finish` and `abandon` close it)
        self._sizes = array("I")

    def write(self, ids: Ids, lengths: Counts) -> None:
        """Add documents."""
        end = 0
        for length in lengths.tolist():
            self.add(ids[end : end + length])
            end += length

    def add(self, *columns: npt.NDArray[Any]) -> None:
        """Add a sample, of an array for each column."""
        arrays = [_mds_array(values.astype(kind)) for values, kind in zip(columns, self._types, strict=True)]
        sample = struct.pack(f"<{len(arrays)}I", *map(len, arrays)) + b"".join(arrays)
        self._samples.write(sample)
        self._sizes.append(len(sample))

    def finish(self) -> None:
        """Write the positions, and the samples after them."""
        count = len(self._sizes)
        start = 4 + 4 * (count + 1) + len(self._config)
        ends = start + np.cumsum([0, *self._sizes], dtype=np.int64)
        if ends[-1] > _MAX_BYTES:
            raise CorpusError(
                f"a shard of mds has {ends[-1]:,} bytes, and its positions are 32 bits; start again with "
                "fewer shard_tokens and overwrite=True (--overwrite on the command line)"
            )
        self._file.write(struct.pack("<I", count) + ends.astype("<u4").tobytes() + self._config)
        self._samples.seek(0)
        shutil.copyfileobj(self._samples, self._file, 1 << 20)
        self._samples.close()

    def abandon(self) -> None:
        """Close the temporary file, which has no name."""
        self._samples.close()


def litdata_header(dtype: np.dtype[Any], items: int) -> bytes:
    """Return the beginning of a chunk of litdata with one item: the ids, which its `TokensLoader` cuts.

    https://github.com/Lightning-AI/litdata, src/litdata/streaming/writer.py (`_create_chunk`).
    """
    return _LITDATA_HEADER.pack(1, _LITDATA_HEADER.size, _LITDATA_HEADER.size + items * dtype.itemsize)


def stream_index(files: Sequence[Path], settings: Mapping[str, Any]) -> bytes:
    """Return the contents of the `index.json` of a finished run.

    Args:
        files: The files of the shards, in order.
        settings: The settings of the run, as JSON values.

    Raises:
        CorpusError: A file cannot be read.
    """
    dtype = settings["dtype"]
    if settings["format"] == "mds":
        columns = mds_columns(settings["pack"] is not None, settings["content"] == "messages")
        config = _mds_config(dtype, columns)
        index: Any = {"version": 2, "shards": [_mds_entry(path, config) for path in files]}
    else:
        chunks = [_litdata_entry(path, np.dtype(dtype).itemsize) for path in files]
        index = {
            "chunks": chunks,
            "config": {
                "chunk_bytes": max(each["chunk_bytes"] for each in chunks),
                "chunk_size": None,
                "compression": None,
                "data_format": [_LITDATA_TYPES[dtype]],
                "data_spec": _LITDATA_LEAF,
                "encryption": None,
                "item_loader": "TokensLoader",
            },
        }
    return (json.dumps(index, sort_keys=True) + "\n").encode()


def _column_type(name: str, dtype: str) -> str:
    return dtype if name == _TOKENS else "int32"


def _mds_config(dtype: str, columns: Sequence[str]) -> dict[str, Any]:
    return {
        "version": 2,
        "format": "mds",
        "compression": None,
        "hashes": [],
        "size_limit": None,
        "column_names": list(columns),
        "column_encodings": [f"ndarray:{_column_type(name, dtype)}" for name in columns],
        "column_sizes": [None] * len(columns),
    }


def _mds_array(values: npt.NDArray[Any]) -> bytes:
    """Return an array of one dimension: the types of the shape, the shape, and the values."""
    code = int(np.searchsorted([1 << 8, 1 << 16], len(values), side="right"))
    return bytes([1 << 2 | code]) + len(values).to_bytes(1 << code, "little") + values.tobytes()


def _mds_entry(path: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    with read_errors(path), path.open("rb") as file:
        (samples,) = struct.unpack("<I", file.read(4))
    stored = {"basename": path.name, "bytes": size_of(path), "hashes": {}}
    return {**config, "samples": samples, "raw_data": stored, "zip_data": None}


def _litdata_entry(path: Path, itemsize: int) -> dict[str, Any]:
    size = size_of(path)
    tokens = (size - _LITDATA_HEADER.size) // itemsize
    return {"chunk_bytes": size, "chunk_size": 1, "dim": tokens, "filename": path.name}
