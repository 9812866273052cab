"""`val_fraction` and `pack` in runs: alone, in parts, shuffled, resumed."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests
from bpe_tokenizer.corpus.packed_shards import PackedSequences
from bpe_tokenizer.corpus.validation import is_validation
from bpe_tokenizer.errors import OptionError
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import contents, flat, read_llm_c, read_nanogpt

TEXTS = [f"{number} low lower" for number in range(60)]
SHARE = 0.2


@pytest.fixture
def ids(tokenizer: BPETokenizer) -> list[list[int]]:
    return [[*tokenizer.encode(text), tokenizer.eos_token_id or 0] for text in TEXTS]


@pytest.fixture
def corpus(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.txt" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text("\n".join(TEXTS[20 * number : 20 * number + 20]), encoding="utf-8")
    return paths


def side(ids: Sequence[list[int]], validation: bool) -> list[list[int]]:
    texts = [text.encode() for text in TEXTS]
    found = is_validation(np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)]), SHARE)
    assert 2 < found.sum() < 30
    return [row for row, chosen in zip(ids, found, strict=True) if chosen == validation]


def rows_of(tokens: Sequence[int], eos: int) -> list[list[int]]:
    """Cut tokens after each EOS."""
    rows: list[list[int]] = [[]]
    for token in tokens:
        rows[-1].append(token)
        if token == eos:
            rows.append([])
    assert rows.pop() == []
    return rows


def in_parts(
    corpus: Sequence[Path], out: Path, tokenizer: BPETokenizer, of: int, **options: Any
) -> list[Path]:
    numbers = list(range(of))
    random.Random(of).shuffle(numbers)
    for part in numbers:
        tokenize_corpus(corpus, out, tokenizer, part=part, of=of, unit_bytes=200, **options)
    return merge_manifests(out).files


# Validation


@pytest.mark.parametrize("shard_tokens", [None, 100])
def test_nanogpt(
    corpus: list[Path],
    tmp_path: Path,
    tokenizer: BPETokenizer,
    ids: list[list[int]],
    shard_tokens: int | None,
) -> None:
    out = tmp_path / "out"
    made = tokenize_corpus(corpus, out, tokenizer, val_fraction=SHARE, shard_tokens=shard_tokens)
    assert made.files == [out / "train.bin", out / "val.bin"]
    assert [read_nanogpt([path], "<u2") for path in made.files] == [
        flat(side(ids, False)),
        flat(side(ids, True)),
    ]
    assert (made.documents, made.tokens) == (len(ids), len(flat(ids)))
    assert pickle.loads((out / "meta.pkl").read_bytes())["vocab_size"] == tokenizer.n_vocab
    # Again: nothing changes. After a loss: the same bytes.
    before = contents(out)
    again = tokenize_corpus(corpus, out, tokenizer, val_fraction=SHARE, shard_tokens=shard_tokens)
    assert again == made._replace(kept=again.kept)
    assert again.kept > 0
    for name in ("train.bin", "meta.pkl", "tokens-00000.train.bin"):
        (out / name).unlink()
    tokenize_corpus(corpus, out, tokenizer, val_fraction=SHARE, shard_tokens=shard_tokens)
    assert contents(out) == before


def test_parts_and_order_do_not_show(
    corpus: list[Path],
    tmp_path: Path,
    tokenizer: BPETokenizer,
    ids: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    eos = tokenizer.eos_token_id
    assert eos is not None
    options: dict[str, Any] = {"val_fraction": SHARE, "shard_tokens": 100}
    expected = [flat(side(ids, False)), flat(side(ids, True))]
    found = []
    for of in (1, 2, 5):
        patch_batches(of, monkeypatch)
        files = in_parts(corpus, tmp_path / f"parts{of}", tokenizer, of, **options)
        assert [read_nanogpt([path], "<u2") for path in files] == expected
        assert (tmp_path / f"parts{of}" / "meta.pkl").exists()
        found.append(contents(tmp_path / f"parts{of}"))
    assert found[0] == found[1] == found[2]
    shuffled: list[list[list[int]]] = []
    for seed, threads in ((1, 1), (1, 2), (2, None)):
        out = tmp_path / f"shuffled{len(shuffled)}"
        made = tokenize_corpus(corpus, out, tokenizer, shuffle=seed, threads=threads, **options)
        tokens = [read_nanogpt([path], "<u2") for path in made.files]
        assert tokens != expected
        for each, validation in zip(tokens, (False, True), strict=True):
            assert sorted(rows_of(each, eos)) == sorted(side(ids, validation))
        shuffled.append(tokens)
    assert shuffled[0] == shuffled[1] != shuffled[2]


def test_llm_c(corpus: list[Path], tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]) -> None:
    out = tmp_path / "out"
    made = tokenize_corpus(corpus, out, tokenizer, "llm.c", val_fraction=SHARE, shard_tokens=100)
    assert made.files == [*sorted(out.glob("*.train.bin")), out / "val.bin"]
    assert flat([read_llm_c(path) for path in made.files[:-1]]) == flat(side(ids, False))
    assert read_llm_c(made.files[-1]) == flat(side(ids, True))
    assert not (out / "meta.pkl").exists()


@pytest.mark.parametrize("name", ["megatron", "npy", "parquet"])
def test_other_formats_keep_their_shards(
    name: Any, corpus: list[Path], tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, name, val_fraction=SHARE, shard_tokens=300)
    assert sorted(made.files) == sorted((tmp_path / "out").glob("tokens-*"))
    assert {path.name.split(".")[1] for path in made.files} == {"train", "val"}
    if name == "npy":
        for part, validation in (("train", False), ("val", True)):
            tokens = [np.load(path).tolist() for path in sorted((tmp_path / "out").glob(f"*.{part}.npy"))]
            assert flat(tokens) == flat(side(ids, validation))


def test_another_fraction(corpus: list[Path], tmp_path: Path, tokenizer: BPETokenizer) -> None:
    out = tmp_path / "out"
    tokenize_corpus(corpus, out, tokenizer, val_fraction=SHARE)
    with pytest.raises(OptionError, match=r"differs in: val_fraction"):
        tokenize_corpus(corpus, out, tokenizer, val_fraction=SHARE / 2)
    with pytest.raises(OptionError, match=r"differs in: val_fraction"):
        tokenize_corpus(corpus, out, tokenizer)
    made = tokenize_corpus(corpus, out, tokenizer, overwrite=True)
    assert {path.name for path in out.iterdir() if path.name[0] != "."} == {
        "tokens-00000.bin",
        "train.bin",
        "manifest.json",
        "plan.json",
        "unit-00000.json",
    }
    assert made.files == [out / "tokens-00000.bin"]


def test_a_single_shard_has_the_name_that_nanogpt_opens(
    corpus: list[Path], tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    out, named = tmp_path / "out", tmp_path / "out" / "train.bin"
    made = tokenize_corpus(corpus, out, tokenizer)
    assert np.memmap(named, np.uint16, "r").tolist() == np.fromfile(made.files[0], np.uint16).tolist()
    assert named.samefile(made.files[0])
    for options in ({"shard_tokens": 50}, {"format": "llm.c"}):
        tokenize_corpus(corpus, out, tokenizer, overwrite=True, **options)
        assert not named.exists()


# Packing


@pytest.mark.parametrize("strategy", ["concat", "best-fit"])
def test_pack_npy(
    strategy: Any,
    corpus: list[Path],
    tmp_path: Path,
    tokenizer: BPETokenizer,
    ids: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: dict[str, Any] = {"format": "npy", "pack": 16, "pack_strategy": strategy, "shard_tokens": 100}
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, **options)
    shards = [PackedSequences.load(path) for path in made.files[::3]]
    assert len(shards) > 2
    found = []
    for shard in shards:
        used = shard.document_ids(0, len(shard.ids)) >= 0
        assert used.sum(axis=1).tolist() == shard.lengths.tolist()
        assert set(shard.ids[~used].tolist()) <= {tokenizer.pad_token_id}
        found.extend(shard.ids[used].tolist())
    assert sorted(found) == sorted(flat(ids))
    if strategy == "concat":
        assert found == flat(ids)
    patch_batches(2, monkeypatch)
    tokenize_corpus(corpus, tmp_path / "again", tokenizer, threads=1, **options)
    assert contents(tmp_path / "again") == contents(tmp_path / "out")
    (tmp_path / "out" / "tokens-00001.cu_seqlens.npy").unlink()
    assert tokenize_corpus(corpus, tmp_path / "out", tokenizer, **options).kept == 1
    assert contents(tmp_path / "again") == contents(tmp_path / "out")
    parts = [in_parts(corpus, tmp_path / f"parts{of}", tokenizer, of, **options) for of in (1, 2)]
    assert contents(tmp_path / "parts1") == contents(tmp_path / "parts2")
    assert len(parts[0]) % 3 == 0


def test_pack_parquet_with_validation(
    corpus: list[Path], tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "parquet", val_fraction=SHARE, pack=16)
    assert [path.name for path in made.files] == ["tokens-00000.train.parquet", "tokens-00000.val.parquet"]
    for path, validation in zip(made.files, (False, True), strict=True):
        rows = parquet.read_table(path).to_pylist()
        assert flat([row["input_ids"] for row in rows]) == flat(side(ids, validation))
        assert all(sum(row["seq_lengths"]) == 16 for row in rows[:-1])
