"""Corpora to token files: every reader and format, and runs that are killed."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import lzma
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import batches, parquet, readers, tokenize_corpus
from bpe_tokenizer.corpus.inputs import Input
from bpe_tokenizer.corpus.portions import fitting
from bpe_tokenizer.corpus.readers import Reader, Row
from bpe_tokenizer.corpus.shards import FORMATS, token_type
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    MissingDependencyError,
    NotTrainedError,
    OptionError,
    SpecialTokenError,
)

DOCUMENTS = ["low lower", "naïve café 日本語", "x" * 50, "a", "newest 👩‍👩‍👧 widest", " "] * 3


@pytest.fixture
def ids(tokenizer: BPETokenizer) -> list[list[int]]:
    """What `DOCUMENTS` become, with EOS."""
    return [[*tokenizer.encode(text), tokenizer.eos_token_id or 0] for text in DOCUMENTS]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(DOCUMENTS), encoding="utf-8", newline="")
    return path


Item = TypeVar("Item")


def flat(rows: Iterable[Iterable[Item]]) -> list[Item]:
    return [each for row in rows for each in row]


def as_jsonl(texts: Sequence[str]) -> bytes:
    return "".join(json.dumps({"id": 1, "text": text}) + "\n" for text in texts).encode()


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


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


# Formats


@pytest.mark.parametrize("shard_tokens", [None, 25])
def test_nanogpt(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], shard_tokens: int | None
) -> None:
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, shard_tokens=shard_tokens)
    assert made.dtype == "uint16"
    assert read_nanogpt(made.files, "<u2") == flat(ids)
    assert (made.documents, made.tokens, made.skipped) == (len(ids), len(flat(ids)), 0)
    assert len(made.files) == (1 if shard_tokens is None else len(portions(ids, 25)))


def portions(rows: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Cut rows into shards, one after the other: what `fitting` does, the simple way."""
    shards: list[list[int]] = []
    for row in rows:
        if shards and (len(shards[-1]) + len(row) <= most or not row or not shards[-1]):
            shards[-1].extend(row)
        else:
            shards.append(list(row))
    return shards


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_llm_c(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], dtype: Any
) -> None:
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "llm.c", shard_tokens=25, dtype=dtype)
    assert [read_llm_c(path) for path in made.files] == portions(ids, 25)


@pytest.mark.parametrize("dtype", [None, "int32"])
def test_megatron(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], dtype: Any
) -> None:
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "megatron", shard_tokens=25, dtype=dtype)
    assert made.dtype == (dtype or "uint16")
    shards = [read_megatron(made.files[each], made.files[each + 1]) for each in range(0, len(made.files), 2)]
    assert flat(shards) == ids
    assert [flat(rows) for rows in shards] == portions(ids, 25)


def test_npy(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]) -> None:
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "npy", shard_tokens=25)
    arrays: list[npt.NDArray[Any]] = [np.load(path, mmap_mode="r", allow_pickle=False) for path in made.files]
    assert [array.tolist() for array in arrays] == portions(ids, 25)
    assert all(array.dtype == np.uint16 and array.ndim == 1 for array in arrays)


def test_parquet(
    corpus: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
    ids: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pyarrow, reader = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(parquet, "_ROW_GROUP_TOKENS", 10)
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "parquet")
    tables = [reader.read_table(path) for path in made.files]
    assert all(table.schema.field("input_ids").type == pyarrow.list_(pyarrow.uint32()) for table in tables)
    assert flat([table["input_ids"].to_pylist() for table in tables]) == ids
    assert reader.ParquetFile(made.files[0]).num_row_groups == len(portions(ids, 10))


@pytest.mark.parametrize("name", list(FORMATS))
def test_batches_do_not_show(
    name: Any, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
        monkeypatch.setattr(parquet, "_ROW_GROUP_TOKENS", 10)
    tokenize_corpus(corpus, tmp_path / "one", tokenizer, name, shard_tokens=40)
    monkeypatch.setattr(batches, "_DOCUMENTS", 2)
    tokenize_corpus(corpus, tmp_path / "two", tokenizer, name, shard_tokens=40, threads=1)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@given(st.lists(st.integers(0, 6), max_size=30), st.lists(st.integers(0, 30), max_size=4), st.integers(1, 12))
def test_portions(lengths: list[int], cuts: list[int], most: int) -> None:
    rows = [[number] * length for number, length in enumerate(lengths)]
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    borders = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    shards: list[list[int]] = []
    for begin, stop in itertools.pairwise(borders):
        start = begin
        while start < stop:
            held = len(shards[-1]) if shards else 0
            end = min(fitting(offsets[: stop + 1], start, held, most), stop)
            shards = shards or [[]]
            shards[-1].extend(flat(rows[start:end]))
            if end < stop:
                shards.append([])
            start = end
    assert shards == portions(rows, most)


# The type of an id


@pytest.mark.parametrize(
    ("name", "largest", "kind"),
    [
        ("nanogpt", 65535, "uint16"),
        ("nanogpt", 65536, "uint32"),
        ("llm.c", 128255, "uint32"),
        ("megatron", 65498, "uint16"),
        ("megatron", 65499, "int32"),
        ("parquet", 255, "uint32"),
    ],
)
def test_token_type(name: Any, largest: int, kind: str) -> None:
    assert token_type(name, largest) == kind


def test_ids_of_more_than_16_bits(tmp_path: Path, corpus: Path) -> None:
    wide = BPETokenizer().train("low lower", 260, special_tokens={"<|eos|>": 70000}, verbose=False)
    expected = flat([[*wide.encode(text), 70000] for text in DOCUMENTS])
    assert read_nanogpt(tokenize_corpus(corpus, tmp_path / "a", wide).files, "<u4") == expected
    made = tokenize_corpus(corpus, tmp_path / "b", wide, "llm.c")
    assert read_llm_c(made.files[0]) == expected
    made = tokenize_corpus(corpus, tmp_path / "c", wide, "megatron")
    assert flat(read_megatron(*made.files)) == expected
    with pytest.raises(OptionError, match="70,000, which does not fit into uint16"):
        tokenize_corpus(corpus, tmp_path / "d", wide, dtype="uint16")
    assert not (tmp_path / "d").exists()


# EOS


def test_eos(tmp_path: Path, corpus: Path, tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer) -> None:
    def tokens(name: str, used: BPETokenizer, **options: Any) -> list[int]:
        return read_nanogpt(tokenize_corpus(corpus, tmp_path / name, used, **options).files, "<u2")

    assert tokens("none", tokenizer, append_eos=False) == flat([tokenizer.encode(text) for text in DOCUMENTS])
    pad = tokenizer.special_tokens["<|pad|>"]
    assert tokens("pad", tokenizer, eos_token="<|pad|>") == flat(
        [[*tokenizer.encode(text), pad] for text in DOCUMENTS]
    )
    assert plain_tokenizer.eos_token is None
    assert tokens("plain", plain_tokenizer) == flat([plain_tokenizer.encode(text) for text in DOCUMENTS])
    with pytest.raises(SpecialTokenError, match="'<x>', which is not a special token"):
        tokenize_corpus(corpus, tmp_path / "x", tokenizer, eos_token="<x>")


def test_special_tokens_in_documents(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "c.txt"
    path.write_text("a<|pad|>b\n", encoding="utf-8")
    made = tokenize_corpus(path, tmp_path / "plain", tokenizer, append_eos=False)
    assert read_nanogpt(made.files, "<u2") == tokenizer.encode("a<|pad|>b")
    made = tokenize_corpus(
        path, tmp_path / "special", tokenizer, append_eos=False, allowed_special={"<|pad|>"}
    )
    assert read_nanogpt(made.files, "<u2") == tokenizer.encode("a<|pad|>b", allowed_special={"<|pad|>"})
    with pytest.raises(SpecialTokenError):
        tokenize_corpus(path, tmp_path / "x", tokenizer, allowed_special={"<x>"})
    assert not (tmp_path / "x").exists()


# Readers


def rows(reader: Reader, data: bytes, name: str = "a.txt", after: int = 0) -> list[Row]:
    return list(reader.rows(Input(name, Path(name), len(data), 0), io.BytesIO(data), after))


def test_lines() -> None:
    data = "\ufeffa\r\n\n b \u2028c\rd\n\r\ne".encode()
    assert rows(Reader(), data) == [Row(1, "\ufeffa"), Row(3, " b \u2028c\rd"), Row(5, "e")]
    assert rows(Reader(), data, after=3) == [Row(5, "e")]
    assert rows(Reader(), b"\r\r\n\r") == [Row(1, "\r"), Row(2, "\r")]
    assert rows(Reader(), b"a\nb\xffc\n\xe6")[1:] == [
        Row(2, None, "is not UTF-8: byte 0xff at its offset 1"),
        Row(3, None, "is not UTF-8: byte 0xe6 at its offset 0"),
    ]


def test_a_file_is_a_document() -> None:
    assert rows(Reader(documents="file"), b"a\r\n\nb\n") == [Row(1, "a\r\n\nb\n")]
    assert rows(Reader(documents="file"), b"a", after=1) == []
    assert rows(Reader(documents="file"), b"") == []


@given(st.lists(st.text("ab<>", max_size=6), max_size=6), st.sampled_from(["<>", "<<>", "a", "é"]), st.data())
@settings(max_examples=200)
def test_separators(parts: list[str], separator: str, data: st.DataObject) -> None:
    text = separator.join(parts)
    chunk = data.draw(st.integers(1, 8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "_CHUNK", chunk)
        found = rows(Reader(separator=separator), text.encode())
    expected = [Row(number, part) for number, part in enumerate(text.split(separator), 1) if part]
    assert found == expected


def test_json_lines() -> None:
    data = (
        b'\xef\xbb\xbf{"text": "a\\nb"}\r\n\n{"text": ""}\n{"text": 3}\n{"body": "x"}\n["text"]\n'
        b'{"text": "x}\n{"text": "\xff"}\n' + b"[" * 100_000 + b'\n{"text": "\\ud83d\\ude42"}'
    )
    found = rows(Reader(), data, "c.jsonl")
    assert [(row.number, row.text) for row in found if row.text is not None] == [
        (1, "a\nb"),
        (3, ""),
        (10, "🙂"),
    ]
    problems = {row.number: row.problem for row in found if row.text is None}
    assert list(problems) == [4, 5, 6, 7, 8, 9]
    assert problems[4] == "has no text in the field 'text', but int"
    assert problems[5] == "has no field 'text' (its first fields: 'body')"
    assert problems[6] == "is no JSON object, but list"
    assert "is not valid JSON: " in problems[7]
    assert problems[8] == "is not UTF-8: byte 0xff at its offset 10"
    assert rows(Reader(field="body"), b'{"body": "x"}', "c.ndjson.gz") == [Row(1, "x")]
    assert rows(Reader(), data, "c.jsonl", after=9) == [Row(10, "🙂")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_format": "csv"}, "input_format is 'csv'"),
        ({"documents": "page"}, "documents is 'page'"),
        ({"separator": ""}, "separator is empty"),
        ({"separator": "\ud800"}, "separator holds a lone surrogate"),
        ({"separator": "x", "documents": "file"}, "contradict"),
        ({"format": "bin"}, "format is 'bin'"),
        ({"dtype": "uint8"}, "dtype is 'uint8'; it must be 'uint16' or 'uint32'"),
        ({"dtype": "int32"}, "nanogpt has no ids of type 'int32'"),
        ({"shard_tokens": 0}, "shard_tokens is 0"),
        ({"format": "llm.c", "shard_tokens": 2**31}, "from 1 to 2,147,483,647"),
        ({"on_error": "ignore"}, "on_error is 'ignore'"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_wrong_options(
    options: dict[str, Any], message: str, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    with pytest.raises(OptionError, match=message):
        tokenize_corpus(corpus, tmp_path / "out", tokenizer, **options)
    assert not (tmp_path / "out").exists()


def test_wrong_types(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    for inputs in (3, [b"x"]):
        with pytest.raises(ArgumentTypeError):
            tokenize_corpus(inputs, tmp_path / "out", tokenizer)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="BPETokenizer, not str"):
        tokenize_corpus(corpus, tmp_path / "out", "gpt2")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="shard_tokens"):
        tokenize_corpus(corpus, tmp_path / "out", tokenizer, shard_tokens=1.5)  # type: ignore[arg-type]
    with pytest.raises(NotTrainedError):
        tokenize_corpus(corpus, tmp_path / "out", BPETokenizer())


# Files


def zstandard(data: bytes) -> bytes:
    """Compress in two frames."""
    compressor = import_module("zstandard").ZstdCompressor()
    compressed: bytes = compressor.compress(data[:20]) + compressor.compress(data[20:])
    return compressed


COMPRESSIONS = [
    pytest.param("gz", gzip.compress, id="gzip"),
    pytest.param("gz", lambda data: gzip.compress(data[:20]) + gzip.compress(data[20:]), id="gzip-members"),
    pytest.param("xz", lzma.compress, id="xz"),
    pytest.param("zst", zstandard, id="zstandard"),
]


@pytest.mark.parametrize(("extension", "compress"), COMPRESSIONS)
def test_compressed_files(
    extension: str, compress: Callable[[bytes], bytes], tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    if extension == "zst":
        pytest.importorskip("zstandard")
    texts = [*DOCUMENTS, "".join(random.Random(1).choices("abcdefgh \u2028é", k=200_000))]
    expected = flat([[*tokenizer.encode(text), tokenizer.eos_token_id or 0] for text in texts])
    path = tmp_path / f"c.jsonl.{extension}"
    compressed = compress(as_jsonl(texts))
    path.write_bytes(compressed)
    made = tokenize_corpus(path, tmp_path / "out", tokenizer)
    assert read_nanogpt(made.files, "<u2") == expected
    for number, broken in enumerate(
        (compressed[:-9], compressed[:5000], compressed[:5000] + compressed[5500:])
    ):
        path.write_bytes(broken)
        with pytest.raises(CorpusError, match=r"c\.jsonl.* is broken or cut off compressed data"):
            tokenize_corpus(path, tmp_path / f"out{number}", tokenizer, on_error="skip")


def test_zstandard_that_is_not_installed(
    tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "c.txt"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(MissingDependencyError, match="pip install zstandard"):
        tokenize_corpus(path, tmp_path / "out", tokenizer)


def test_pyarrow_that_is_not_installed(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match="pip install pyarrow"):
        tokenize_corpus(corpus, tmp_path / "out", tokenizer, "parquet")
    with pytest.raises(MissingDependencyError, match="pip install pyarrow"):
        tokenize_corpus(corpus, tmp_path / "out2", tokenizer, input_format="arrow")


def write_table(path: Path, kind: str, texts: Sequence[str | None], column_type: Any) -> None:
    pyarrow = import_module("pyarrow")
    table = pyarrow.table({"id": list(range(len(texts))), "text": pyarrow.array(texts, column_type)})
    if kind == "parquet":
        import_module("pyarrow.parquet").write_table(table, path, row_group_size=4)
        return
    ipc = import_module("pyarrow.ipc")
    new = ipc.new_file if kind == "file" else ipc.new_stream
    with new(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=4)


@pytest.mark.parametrize("column", ["string", "large_string", "string_view", "dictionary"])
@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
def test_tables(
    kind: str, column: str, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    types = {"dictionary": lambda: pyarrow.dictionary(pyarrow.int32(), pyarrow.string())}
    path = tmp_path / ("c.parquet" if kind == "parquet" else "c.arrow")
    write_table(path, kind, DOCUMENTS, types.get(column, getattr(pyarrow, column, None))())  # type: ignore[misc]
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, shard_tokens=30)
    assert read_nanogpt(made.files, "<u2") == flat(ids)
    # Go on in the middle of the table.
    made.files[2].unlink()
    again = tokenize_corpus(path, tmp_path / "out", tokenizer, shard_tokens=30)
    assert (again.kept, read_nanogpt(again.files, "<u2")) == (2, flat(ids))


def test_bad_tables(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "c.parquet"
    write_table(path, "parquet", ["a", None, "b"], pyarrow.string())
    with pytest.raises(CorpusError, match=r"c\.parquet, row 2 is null"):
        tokenize_corpus(path, tmp_path / "out", tokenizer)
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, on_error="skip")
    assert (made.documents, made.skipped) == (2, 1)
    with pytest.raises(CorpusError, match="no column 'body'; it has 'id', 'text'"):
        tokenize_corpus(path, tmp_path / "out2", tokenizer, field="body")
    with pytest.raises(CorpusError, match="holds int64, not strings"):
        tokenize_corpus(path, tmp_path / "out2", tokenizer, field="id")
    for name, data in (("x.parquet", b"PAR1nonsense"), ("x.arrow", b"ARROW1\0\0nonsense"), ("y.arrow", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CorpusError, match=f"{name} cannot be read as"):
            tokenize_corpus(tmp_path / name, tmp_path / "out2", tokenizer)
    compressed = tmp_path / "c.parquet.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(CorpusError, match=r"c\.parquet\.gz is compressed or a pipe"):
        tokenize_corpus(compressed, tmp_path / "out2", tokenizer)
    write_table(tmp_path / "d.arrow", "stream", ["a", "b"], pyarrow.string())
    compressed = tmp_path / "d.arrow.gz"
    compressed.write_bytes(gzip.compress((tmp_path / "d.arrow").read_bytes()))
    assert tokenize_corpus(compressed, tmp_path / "out4", tokenizer).documents == 2
    # A text that is not UTF-8 spoils no other.
    broken = pyarrow.array([b"a", b"\xff", b"b"], pyarrow.binary()).view(pyarrow.string())
    import_module("pyarrow.parquet").write_table(pyarrow.table({"text": broken}), path)
    with pytest.raises(CorpusError, match="row 2 is not UTF-8: byte 0xff at its offset 0"):
        tokenize_corpus(path, tmp_path / "out3", tokenizer)
    made = tokenize_corpus(path, tmp_path / "out3", tokenizer, on_error="skip")
    assert (made.documents, made.skipped) == (2, 1)


def test_several_files_and_patterns(
    tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name, text in {
        "b.txt": "b",
        "a.txt": "a",
        "deep/c.txt": "c",
        "deep/d.jsonl": '{"text": "d"}',
    }.items():
        (tmp_path / "in" / name).write_text(text, encoding="utf-8")
    (tmp_path / "in" / "[x].txt").write_text("x", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "in")

    def letters(*inputs: str | Path) -> str:
        made = tokenize_corpus(inputs, tmp_path / "out", tokenizer, append_eos=False, overwrite=True)
        return tokenizer.decode(read_nanogpt(made.files, "<u2"))

    assert letters("deep/*", "b.txt", Path("a.txt")) == "cdba"
    assert letters("**/*.txt") == "xabc"
    assert letters(str(tmp_path / "in" / "?.txt")) == "ab"
    assert letters("[x].txt") == "x"
    with pytest.raises(CorpusError, match="no file matches"):
        letters("*.csv")
    with pytest.raises(CorpusError, match="there is no file nothing"):
        letters("nothing")
    with pytest.raises(CorpusError, match=r"deep is a directory; name its files, such as 'deep/\*\*"):
        letters("deep")
    with pytest.raises(OptionError, match="only once"):
        letters("-", "-")
    with pytest.raises(OptionError, match="no inputs"):
        letters()


def test_bad_rows(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(b"a\n\xff\nb\nc\n\xfe\n")
    with pytest.raises(CorpusError, match=r"c\.txt, row 2 is not UTF-8: byte 0xff at its offset 0"):
        tokenize_corpus(path, tmp_path / "out", tokenizer)
    # Skipped rows are counted once, also those of shards that are kept.
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, on_error="skip", shard_tokens=2)
    assert (made.documents, made.skipped, len(made.files)) == (3, 2, 3)
    made.files[2].unlink()
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, on_error="skip", shard_tokens=2)
    assert (made.documents, made.skipped, made.kept) == (3, 2, 2)


@pytest.mark.parametrize("data", [b"", b"\n\n", b'{"text": ""}\n'])
def test_an_empty_corpus(data: bytes, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / ("c.jsonl" if data.startswith(b"{") else "c.txt")
    path.write_bytes(data)
    with pytest.raises(CorpusError, match="the corpus is empty"):
        tokenize_corpus(path, tmp_path / "out", tokenizer, append_eos=False)
    assert list(contents(tmp_path / "out")) == ["manifest.json"]


# Runs that go on


@pytest.mark.parametrize("damage", ["missing", "shorter", "changed", "truncated manifest list"])
def test_finished_shards_are_verified(
    damage: str, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    out = tmp_path / "out"
    made = tokenize_corpus(corpus, out, tokenizer, "megatron", shard_tokens=25)
    expected = contents(out)
    broken = made.files[5]  # the index of the third shard
    data = broken.read_bytes()
    if damage == "missing":
        broken.unlink()
    elif damage == "shorter":
        broken.write_bytes(data[:-1])
    elif damage == "changed":
        broken.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    else:
        manifest = json.loads((out / "manifest.json").read_bytes())
        manifest |= {"shards": manifest["shards"][:2], "skipped": None, "complete": False}
        (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (out / ".tokens-00002.bin.part").write_bytes(b"left by a kill")
    again = tokenize_corpus(corpus, out, tokenizer, "megatron", shard_tokens=25)
    assert again == made._replace(kept=2)
    assert contents(out) == expected


def test_a_complete_run_is_not_repeated(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, shard_tokens=25)
    stamps = {path: path.stat().st_mtime_ns for path in made.files}
    again = tokenize_corpus(corpus, tmp_path / "out", tokenizer, shard_tokens=25)
    assert again == made._replace(kept=len(made.files))
    assert {path: path.stat().st_mtime_ns for path in made.files} == stamps


def test_other_settings_are_refused(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer
) -> None:
    out = tmp_path / "out"
    tokenize_corpus(corpus, out, tokenizer, shard_tokens=25)
    before = contents(out)
    for used, options, named in (
        (tokenizer, {"shard_tokens": 26}, "shard_tokens"),
        (tokenizer, {"shard_tokens": 25, "append_eos": False}, "eos_id"),
        (tokenizer, {"shard_tokens": 25, "format": "npy"}, "format"),
        (plain_tokenizer, {"shard_tokens": 25}, "eos_id, tokenizer"),
    ):
        with pytest.raises(OptionError, match=f"another run \\(it differs in: {named}\\)"):
            tokenize_corpus(corpus, out, used, **options)
    corpus.write_text("other", encoding="utf-8")
    with pytest.raises(OptionError, match="it differs in: inputs"):
        tokenize_corpus(corpus, out, tokenizer, shard_tokens=25)
    assert contents(out) == before
    made = tokenize_corpus(corpus, out, tokenizer, "npy", overwrite=True)
    assert sorted(contents(out)) == ["manifest.json", "tokens-00000.npy"]
    assert made.documents == 1


def test_a_directory_of_others_is_refused(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine", encoding="utf-8")
    for overwrite in (False, True):
        with pytest.raises(OptionError, match=r"holds other files \(thesis.txt\)"):
            tokenize_corpus(corpus, out, tokenizer, overwrite=overwrite)
    for text in (
        "",
        "[]",
        '{"shards": {}}',
        '{"version": 1, "settings": [], "shards": [], "skipped": null}',
        '{"version": 2, "settings": {}, "shards": [], "skipped": null}',
        '{"version": 1, "settings": {}, "skipped": null, "shards": [{"files": {"../x": [1, ""]}, '
        '"documents": 1, "tokens": 1, "end": {"input": 0, "row": 0, "skipped": 0}}]}',
    ):
        (out / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(CorpusError, match=r"manifest\.json is not the manifest of a run"):
            tokenize_corpus(corpus, out, tokenizer, overwrite=True)
    assert (out / "thesis.txt").read_text(encoding="utf-8") == "mine"


class Died(BaseException):
    pass


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_run_that_dies_at_any_step_goes_on(
    name: Any, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    tokenize_corpus(corpus, tmp_path / "whole", tokenizer, name, shard_tokens=100)
    expected = contents(tmp_path / "whole")
    monkeypatch.setattr(batches, "_DOCUMENTS", 2)
    replace = Path.replace
    left = 0

    def count_down() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Died

    def dying_replace(path: Path, target: Path) -> Path:
        count_down()
        return replace(path, target)

    def dying_fsync(descriptor: int) -> None:
        count_down()

    monkeypatch.setattr(Path, "replace", dying_replace)
    monkeypatch.setattr(os, "fsync", dying_fsync)
    steps = 0
    while left <= 0:
        steps += 1
        out, left = tmp_path / f"out{steps}", steps
        with suppress(Died):
            tokenize_corpus(corpus, out, tokenizer, name, shard_tokens=100)
        if left <= 0:
            tokenize_corpus(corpus, out, tokenizer, name, shard_tokens=100)
        assert contents(out) == expected
    assert steps > 20


def test_a_failed_run_leaves_finished_shards_only(
    tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_DOCUMENTS", 1)
    path = tmp_path / "c.txt"
    path.write_bytes(b"a\nb\nc\n\xff\n")
    for name in FORMATS:
        if name == "parquet":
            pytest.importorskip("pyarrow")
        with pytest.raises(CorpusError, match="row 4"):
            tokenize_corpus(path, tmp_path / name, tokenizer, name, shard_tokens=2)
        suffixes = FORMATS[name].suffixes
        # The second shard was not finished: whether the third document fits was not known yet.
        assert sorted(contents(tmp_path / name)) == [
            "manifest.json",
            *(f"tokens-00000{suffix}" for suffix in suffixes),
        ]


RUN = """
import sys
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import batches, tokenize_corpus
batches._DOCUMENTS = 7
tokenizer, corpus, out, name = sys.argv[1:]
tokenize_corpus(corpus, out, BPETokenizer.load(tokenizer), name, shard_tokens=2000)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing kills like SIGKILL here")
@pytest.mark.parametrize(
    ("name", "runs"),
    [("megatron", 4), *(pytest.param(name, 15, marks=pytest.mark.slow) for name in FORMATS)],
)
def test_a_killed_run_goes_on(name: Any, runs: int, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    tokenizer.save(tmp_path / "tokenizer")
    chance = random.Random(name)
    texts = ["".join(chance.choices("abcde fgh\n", k=chance.randrange(200))) for _ in range(2000)]
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(as_jsonl(texts)))
    with run(tmp_path, "whole", name) as process:
        assert process.wait() == 0
    expected = contents(tmp_path / "whole")
    assert len(expected) > 30
    kills = 0
    for _ in range(runs):
        with run(tmp_path, "killed", name) as process:
            wait_for_shards(process, tmp_path / "killed", chance.randrange(1, 6))
            time.sleep(chance.uniform(0, 0.03))
            process.kill()
            kills += process.wait() == -signal.SIGKILL
    assert json.loads((tmp_path / "killed" / "manifest.json").read_bytes())["shards"]
    with run(tmp_path, "killed", name) as process:
        assert process.wait() == 0
    assert kills >= 1
    assert contents(tmp_path / "killed") == expected
    assert read_all(name, tmp_path / "killed") == flat(
        [[*tokenizer.encode(text), tokenizer.eos_token_id or 0] for text in texts]
    )


def run(directory: Path, out: str, name: str) -> subprocess.Popen[bytes]:
    arguments = [str(directory / each) for each in ("tokenizer", "c.jsonl.gz", out)]
    return subprocess.Popen([sys.executable, "-c", RUN, *arguments, name])


def wait_for_shards(process: subprocess.Popen[bytes], directory: Path, more: int) -> None:
    """Wait until a run has written some files more than there were, or ended."""
    wanted = len(list(directory.glob("tokens-*"))) + more
    while process.poll() is None and len(list(directory.glob("tokens-*"))) < wanted:
        time.sleep(0.001)


def read_all(name: str, directory: Path) -> list[int]:
    files = sorted(directory.glob("tokens-*"))
    if name == "nanogpt":
        return read_nanogpt(files, "<u2")
    if name == "llm.c":
        return flat([read_llm_c(path) for path in files])
    if name == "megatron":
        pairs = zip(files[::2], files[1::2], strict=True)
        return flat(flat(read_megatron(*pair) for pair in pairs))
    if name == "npy":
        return flat([np.load(path).tolist() for path in files])
    read_table = import_module("pyarrow.parquet").read_table
    return flat(flat(read_table(path)["input_ids"].to_pylist() for path in files))
