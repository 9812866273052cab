"""Shards of each format: their ids, types, limits and EOS tokens."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import parquet
from bpe_tokenizer.corpus.shard_limits import documents_that_fit
from bpe_tokenizer.corpus.shards import FORMATS, choose_token_type
from bpe_tokenizer.errors import (
    CorpusError,
    OptionError,
    SpecialTokenError,
)
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import DOCUMENTS, as_jsonl, contents, flat, read_llm_c, read_megatron, read_nanogpt

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
    """Pack rows into shards in sequence, as `documents_that_fit` does, the simple way."""
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


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_npy(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], dtype: Any) -> None:
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "npy", shard_tokens=25, dtype=dtype)
    arrays: list[npt.NDArray[Any]] = [np.load(path, mmap_mode="r", allow_pickle=False) for path in made.files]
    assert [array.tolist() for array in arrays] == portions(ids, 25)
    assert all(array.dtype == dtype and array.ndim == 1 for array in arrays)


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
    patch_batches(2, monkeypatch)
    tokenize_corpus(corpus, tmp_path / "two", tokenizer, name, shard_tokens=40, threads=1)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@settings(max_examples=30)
@given(
    st.lists(st.text("ab \n", max_size=9), min_size=1, max_size=20),
    st.integers(1, 21),
    st.integers(1, 30),
    st.booleans(),
)
def test_batches_of_any_size(texts: list[str], documents: int, shard_tokens: int, has_eos: bool) -> None:
    tokenizer = BPETokenizer().train("low lower", 257, special_tokens=["<|eos|>"], verbose=False)
    options: dict[str, Any] = {"shard_tokens": shard_tokens, "append_eos": has_eos}
    rows = [tokenizer.encode(text) + [256] * has_eos for text in texts]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        path = Path(name, "c.jsonl")
        path.write_bytes(as_jsonl(texts))
        for size in (documents, 1):
            patch_batches(size, patch)
            with contextlib.suppress(CorpusError):  # no ids
                tokenize_corpus(path, Path(name, str(size)), tokenizer, "npy", **options)
        files = sorted(Path(name, "1").glob("tokens-*"))
        assert contents(Path(name, str(documents))) == contents(Path(name, "1"))
        found = [np.load(file).tolist() for file in files]
        assert found == [shard for shard in portions(rows, shard_tokens) if shard]


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
            end = min(documents_that_fit(offsets[: stop + 1], start, held, most), stop)
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
        ("npy", 65536, "uint32"),
        ("llm.c", 128255, "uint32"),
        ("megatron", 65498, "uint16"),
        ("megatron", 65499, "int32"),
        ("parquet", 255, "uint32"),
    ],
)
def test_token_type(name: Any, largest: int, kind: str) -> None:
    assert choose_token_type(name, largest) == kind


def test_nanogpt_reads_16_bits() -> None:
    with pytest.raises(OptionError) as raised:
        choose_token_type("nanogpt", 128_255)
    message = str(raised.value)
    assert len(message) <= 300
    for part in (
        "128,255",
        "nanoGPT",
        "uint16",
        "--dtype uint32",
        "np.memmap(..., dtype=np.uint32, mode='r')",
    ):
        assert part in message
    assert choose_token_type("nanogpt", 128_255, "uint32") == "uint32"


def test_megatron_reads_either_type() -> None:
    # Its preprocessing changes to 32 bits at 65,500 ids, but its GPTDataset expects 16 bits up to 65,536 ids
    # where it trusts the tokenizer instead of the index.
    assert choose_token_type("megatron", 65_535, "uint16") == "uint16"
    assert choose_token_type("megatron", 65_535) == "int32"


def test_ids_of_more_than_16_bits(tmp_path: Path, corpus: Path) -> None:
    wide = BPETokenizer().train("low lower", 260, special_tokens={"<|eos|>": 70000}, verbose=False)
    expected = flat([[*wide.encode(text), 70000] for text in DOCUMENTS])
    made = tokenize_corpus(corpus, tmp_path / "a", wide, dtype="uint32")
    assert read_nanogpt(made.files, "<u4") == expected
    made = tokenize_corpus(corpus, tmp_path / "b", wide, "llm.c")
    assert read_llm_c(made.files[0]) == expected
    made = tokenize_corpus(corpus, tmp_path / "c", wide, "megatron")
    assert flat(read_megatron(*made.files)) == expected
    with pytest.raises(OptionError, match="70,000, does not fit into uint16"):
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
    assert tokens("plain", plain_tokenizer, append_eos=False) == flat(
        [plain_tokenizer.encode(text) for text in DOCUMENTS]
    )
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
