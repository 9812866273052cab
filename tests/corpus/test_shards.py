"""Shards of each format: their ids, types, limits and EOS tokens."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import parquet
from bpe_tokenizer.corpus.shards import choose_token_type
from bpe_tokenizer.errors import CorpusError, OptionError, SpecialTokenError
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import DOCUMENTS, as_jsonl, contents, flat, read_nanogpt, read_shards

# Formats


def portions(rows: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Pack rows into shards in sequence, as `documents_that_fit` does, the simple way."""
    shards: list[list[int]] = []
    for row in rows:
        if shards and (len(shards[-1]) + len(row) <= most or not row or not shards[-1]):
            shards[-1].extend(row)
        else:
            shards.append(list(row))
    return shards


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("nanogpt", "uint16"), ("nanogpt", "uint32"), ("llm.c", "uint16"), ("llm.c", "uint32")),
        *(("megatron", "uint16"), ("megatron", "int32"), ("npy", "uint16"), ("npy", "uint32")),
        *(("olmo", "uint16"), ("olmo", "uint32"), ("datatrove", "uint16"), ("datatrove", "uint32")),
        *(("mds", "uint16"), ("mds", "int32"), ("litdata", "uint16"), ("litdata", "int32")),
        ("parquet", "uint32"),
    ],
)
@pytest.mark.parametrize("shard_tokens", [25, 1000])
def test_shards_have_whole_documents_in_their_order(
    name: Any, dtype: Any, shard_tokens: int, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer,
    ids: list[list[int]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if name == "parquet":
        pytest.importorskip("pyarrow")
        monkeypatch.setattr(parquet, "_ROW_GROUP_TOKENS", 10)
    options: dict[str, Any] = {"format": name, "shard_tokens": shard_tokens, "dtype": dtype}
    made = tokenize_corpus(corpus, tmp_path / "one", tokenizer, **options)
    assert read_shards(name, made.files, dtype) == portions(ids, shard_tokens)
    assert (made.documents, made.tokens, made.skipped) == (len(ids), len(flat(ids)), 0)
    assert made.dtype == dtype
    if dtype in ("uint16", "uint32"):
        assert tokenize_corpus(corpus, tmp_path / "default", tokenizer, name).dtype == (
            "uint32" if name == "parquet" else "uint16"
        )
    patch_batches(2, monkeypatch)
    tokenize_corpus(corpus, tmp_path / "two", tokenizer, threads=1, **options)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_row_groups_of_parquet(
    corpus: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
    ids: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(parquet, "_ROW_GROUP_TOKENS", 10)
    (file,) = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "parquet").files
    assert reader.read_table(file)["input_ids"].to_pylist() == ids
    assert reader.ParquetFile(file).num_row_groups == len(portions(ids, 10))


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
    said = r"(?s)128,255.*nanoGPT.*uint16.*--dtype uint32.*np\.memmap\(\.\.\., dtype=np\.uint32, mode='r'\)"
    with pytest.raises(OptionError, match=said) as raised:
        choose_token_type("nanogpt", 128_255)
    assert len(str(raised.value)) <= 300
    assert choose_token_type("nanogpt", 128_255, "uint32") == "uint32"


def test_megatron_reads_either_type() -> None:
    # Its preprocessing changes to 32 bits at 65,500 ids, but its GPTDataset expects 16 bits up to 65,536 ids
    # where it trusts the tokenizer instead of the index.
    assert choose_token_type("megatron", 65_535, "uint16") == "uint16"
    assert choose_token_type("megatron", 65_535) == "int32"


def test_ids_of_more_than_16_bits(tmp_path: Path, corpus: Path) -> None:
    wide = BPETokenizer().train("low lower", 260, special_tokens={"<|eos|>": 70000}, verbose=False)
    expected = flat([[*wide.encode(text), 70000] for text in DOCUMENTS])
    formats: list[tuple[Any, Any]] = [("nanogpt", "uint32"), ("llm.c", None), ("megatron", None)]
    for name, dtype in formats:
        made = tokenize_corpus(corpus, tmp_path / name, wide, name, dtype=dtype)
        assert flat(read_shards(name, made.files, made.dtype)) == expected
    with pytest.raises(OptionError, match="70,000, does not fit into uint16"):
        tokenize_corpus(corpus, tmp_path / "d", wide, dtype="uint16")
    assert not (tmp_path / "d").exists()


# EOS


def test_eos(tmp_path: Path, corpus: Path, tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer) -> None:
    pad = tokenizer.special_tokens["<|pad|>"]
    cases: list[tuple[BPETokenizer, dict[str, Any], list[int]]] = [
        (tokenizer, {"append_eos": False}, []),
        (tokenizer, {"eos_token": "<|pad|>"}, [pad]),
        (plain_tokenizer, {"append_eos": False}, []),
    ]
    for used, options, end in cases:
        made = tokenize_corpus(corpus, tmp_path / "out", used, overwrite=True, **options)
        assert read_nanogpt(made.files, "<u2") == flat([[*used.encode(text), *end] for text in DOCUMENTS])
    assert plain_tokenizer.eos_token is None
    with pytest.raises(SpecialTokenError, match="'<x>', which is not a special token"):
        tokenize_corpus(corpus, tmp_path / "x", tokenizer, eos_token="<x>")


def test_special_tokens_in_documents(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "c.txt"
    path.write_text("a<|pad|>b\n", encoding="utf-8")
    for allowed in ("none", {"<|pad|>"}):
        options: dict[str, Any] = {"append_eos": False, "allowed_special": allowed, "overwrite": True}
        made = tokenize_corpus(path, tmp_path / "out", tokenizer, **options)
        expected = tokenizer.encode("a<|pad|>b", allowed_special=allowed)
        assert read_nanogpt(made.files, "<u2") == expected
    with pytest.raises(SpecialTokenError):
        tokenize_corpus(path, tmp_path / "x", tokenizer, allowed_special={"<x>"})
    assert not (tmp_path / "x").exists()
