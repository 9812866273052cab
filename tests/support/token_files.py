"""Reads token files as training programs do, from their documentation."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

DOCUMENTS = ["low lower", "naïve café 日本語", "x" * 50, "a", "newest 👩‍👩‍👧 widest", " "] * 3

Item = TypeVar("Item")


def flat(rows: Iterable[Iterable[Item]]) -> list[Item]:
    return [each for row in rows for each in row]


def as_jsonl(texts: Sequence[str], field: str = "text") -> bytes:
    return "".join(json.dumps({"id": 1, field: text}) + "\n" for text in texts).encode()


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def visible(directory: Path) -> dict[str, bytes]:
    """The files of a run, without those that a killed one leaves."""
    return {name: data for name, data in contents(directory).items() if not name.startswith(".")}


# What may happen to a finished file.
DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "shorter": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "changed": lambda path: path.write_bytes(path.read_bytes()[:-1] + bytes([path.read_bytes()[-1] ^ 1])),
}


# What the readers of each format do, written from its documentation


def read_nanogpt(files: Sequence[Path], dtype: str) -> list[int]:
    return flat([np.memmap(path, dtype=dtype, mode="r").tolist() for path in files])


def read_llm_c(path: Path) -> list[int]:
    """Do what `dataloader_load_shard_` of llm.c's dataloader.h does (and its data_common.py for 32 bits)."""
    data = path.read_bytes()
    magic, version, tokens = struct.unpack_from("<3i", data)
    assert (magic, version) in ((20240520, 1), (20240801, 7))
    kind = "<u2" if version == 1 else "<u4"
    assert not any(data[12:1024])
    assert len(data) == 1024 + tokens * np.dtype(kind).itemsize
    ids: list[int] = np.frombuffer(data, dtype=kind, offset=1024).tolist()
    return ids


def read_megatron(data: Path, index: Path) -> list[list[int]]:
    """Do what `_IndexReader` and `IndexedDataset` of Megatron-LM's indexed_dataset.py do."""
    with index.open("rb") as stream:
        assert stream.read(9) == b"MMIDIDX\x00\x00"
        assert struct.unpack("<Q", stream.read(8)) == (1,)
        (code,) = struct.unpack("<B", stream.read(1))
        (sequences,) = struct.unpack("<Q", stream.read(8))
        (documents,) = struct.unpack("<Q", stream.read(8))
        buffer = stream.read()
    kind: np.dtype[Any] = np.dtype({4: "<i4", 8: "<u2"}[code])
    lengths = np.frombuffer(buffer, "<i4", sequences)
    pointers = np.frombuffer(buffer, "<i8", sequences, lengths.nbytes)
    ends = np.frombuffer(buffer, "<i8", documents, lengths.nbytes + pointers.nbytes)
    assert len(buffer) == lengths.nbytes + pointers.nbytes + ends.nbytes
    assert ends.tolist() == list(range(sequences + 1))
    tokens = data.read_bytes()
    assert len(tokens) == lengths.sum() * kind.itemsize
    return [
        np.frombuffer(tokens, kind, length, pointer).tolist()
        for length, pointer in zip(lengths, pointers, strict=True)
    ]


def read_shards(name: str, files: Sequence[Path], dtype: str = "uint16") -> list[list[int]]:
    """The ids of each shard."""
    if name == "nanogpt":
        return [read_nanogpt([path], dtype) for path in files]
    if name == "llm.c":
        return [read_llm_c(path) for path in files]
    if name == "megatron":
        return [flat(read_megatron(*pair)) for pair in zip(files[::2], files[1::2], strict=True)]
    if name == "npy":
        return [np.load(path).tolist() for path in files]
    read_table = import_module("pyarrow.parquet").read_table
    return [flat(read_table(path)["input_ids"].to_pylist()) for path in files]


def read_all(name: str, directory: Path) -> list[int]:
    return flat(read_shards(name, sorted(directory.glob("tokens-*"))))
