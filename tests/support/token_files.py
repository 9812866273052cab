"""Reads token files as training programs do, from their documentation."""

from __future__ import annotations

import gzip
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


def read_olmo(data: Path, documents: Path, dtype: str) -> list[list[int]]:
    """Cut ids where `iter_document_indices` of OLMo-core's data/utils.py says."""
    ids = np.fromfile(data, dtype)
    with gzip.open(documents, "rt") as lines:
        borders = [tuple(map(int, line.split(","))) for line in lines]
    return [ids[start:end].tolist() for start, end in borders]


def read_datatrove(data: Path, index: Path, metadata: Path, dtype: str) -> list[list[int]]:
    """Cut ids where datatrove's `load_doc_ends` says."""
    ids, ends = np.fromfile(data, dtype), np.fromfile(index, "<u8")
    name, count, _ = metadata.read_text().split("\n")
    assert int(name.split("|")[1]) == np.dtype(dtype).itemsize
    assert int(count) == len(ids) == ends[-1]
    return [part.tolist() for part in np.split(ids, ends[:-1].astype(int))]


def read_mds(path: Path, entry: dict[str, Any]) -> list[dict[str, list[int]]]:
    """Do what `MDSReader` of mosaicml-streaming does for arrays of one dimension."""
    data = path.read_bytes()
    assert (entry["raw_data"]["basename"], entry["raw_data"]["bytes"]) == (path.name, len(data))
    (count,) = struct.unpack_from("<I", data)
    assert count == entry["samples"]
    samples = []
    for start in struct.unpack_from(f"<{count}I", data, 4):
        place = start + 4 * len(entry["column_names"])
        sample = {}
        for name, encoding in zip(entry["column_names"], entry["column_encodings"], strict=True):
            width = 1 << data[place] % 4
            assert data[place] >> 2 == 1
            length = int.from_bytes(data[place + 1 : place + 1 + width], "little")
            sample[name] = np.frombuffer(data, encoding[8:], length, place + 1 + width).tolist()
            place += 1 + width + length * np.dtype(encoding[8:]).itemsize
        samples.append(sample)
    return samples


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
    if name == "olmo":
        return [flat(read_olmo(*pair, dtype)) for pair in zip(files[::2], files[1::2], strict=True)]
    if name == "datatrove":
        groups = zip(files[::3], files[1::3], files[2::3], strict=True)
        return [flat(read_datatrove(*group, dtype)) for group in groups]
    if name in ("mds", "litdata"):
        index = json.loads(files[0].with_name("index.json").read_bytes())
    if name == "mds":
        shards = zip(files, index["shards"], strict=True)
        return [flat(sample["tokens"] for sample in read_mds(*shard)) for shard in shards]
    if name == "litdata":
        assert [(chunk["filename"], chunk["chunk_size"]) for chunk in index["chunks"]] == [
            (path.name, 1) for path in files
        ]
        # TokensLoader skips (1 + chunk_size + 1) * 4 bytes.
        return [
            np.fromfile(path, dtype, chunk["dim"], offset=12).tolist()
            for path, chunk in zip(files, index["chunks"], strict=True)
        ]
    read_table = import_module("pyarrow.parquet").read_table
    return [flat(read_table(path)["input_ids"].to_pylist()) for path in files]


def read_all(name: str, directory: Path) -> list[int]:
    return flat(read_shards(name, sorted(directory.glob("tokens-*"))))
