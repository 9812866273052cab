"""`val_fraction` and `pack` in runs: alone, in parts, shuffled, resumed."""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import TokenizedCorpus, merge_manifests
from bpe_tokenizer.corpus.packed_shards import PackedSequences
from bpe_tokenizer.corpus.validation import is_validation
from bpe_tokenizer.errors import OptionError
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import contents, flat, read_llm_c, read_mds, read_nanogpt

TEXTS = [f"{number} low lower" for number in range(60)]
SHARE = 0.2
Run = Callable[..., TokenizedCorpus]


@pytest.fixture
def sides(tokenizer: BPETokenizer) -> list[list[list[int]]]:
    """The ids of the documents for training, and of those for validation."""
    ids = [[*tokenizer.encode(text), tokenizer.eos_token_id or 0] for text in TEXTS]
    texts = [text.encode() for text in TEXTS]
    found = is_validation(np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)]), SHARE)
    assert 2 < found.sum() < 30
    return [[row for row, chosen in zip(ids, found, strict=True) if chosen == side] for side in (False, True)]


@pytest.fixture
def run(tmp_path: Path, tokenizer: BPETokenizer) -> Run:
    """Tokenizes three files into a directory, in parts if `of` is given."""
    corpus = [tmp_path / f"{number}.txt" for number in range(3)]
    for number, path in enumerate(corpus):
        path.write_text("\n".join(TEXTS[20 * number : 20 * number + 20]), encoding="utf-8")

    def run(out: Path, of: int = 0, **options: Any) -> TokenizedCorpus:
        if not of:
            return tokenize_corpus(corpus, out, tokenizer, **options)
        for part in random.Random(of).sample(range(of), of):
            tokenize_corpus(corpus, out, tokenizer, part=part, of=of, unit_bytes=200, **options)
        return merge_manifests(out)

    return run


def rows_of(tokens: Sequence[int], eos: int | None) -> list[list[int]]:
    """Cut tokens after each EOS."""
    rows: list[list[int]] = [[]]
    for token in tokens:
        rows[-1].append(token)
        if token == eos:
            rows.append([])
    assert rows.pop() == []
    return rows


def names(made: TokenizedCorpus) -> list[str]:
    return [path.name for path in made.files]


def nanogpt(made: TokenizedCorpus) -> list[list[int]]:
    assert names(made) == ["train.bin", "val.bin"]
    return [read_nanogpt([path], "<u2") for path in made.files]


# Validation


@pytest.mark.parametrize("shard_tokens", [None, 100])
def test_nanogpt(
    run: Run, tmp_path: Path, tokenizer: BPETokenizer, sides: list[list[list[int]]], shard_tokens: int | None
) -> None:
    out, options = tmp_path / "out", {"val_fraction": SHARE, "shard_tokens": shard_tokens}
    made = run(out, **options)
    assert nanogpt(made) == list(map(flat, sides))
    assert (made.documents, made.tokens) == (len(TEXTS), len(flat(flat(sides))))
    assert pickle.loads((out / "meta.pkl").read_bytes())["vocab_size"] == tokenizer.n_vocab
    # Again: nothing changes. After a loss: the same bytes.
    before = contents(out)
    again = run(out, **options)
    assert again == made._replace(kept=again.kept)
    assert again.kept > 0
    for name in ("train.bin", "meta.pkl", "tokens-00000.train.bin"):
        (out / name).unlink()
    run(out, **options)
    assert contents(out) == before


def test_parts_do_not_show(
    run: Run, tmp_path: Path, sides: list[list[list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for of in (1, 2, 5):
        patch_batches(of, monkeypatch)
        assert nanogpt(run(tmp_path / str(of), of, val_fraction=SHARE, shard_tokens=100)) == [
            *map(flat, sides)
        ]
        found.append(contents(tmp_path / str(of)))
        assert "meta.pkl" in found[-1]
    assert found[0] == found[1] == found[2]


def test_each_side_is_shuffled(
    run: Run, tmp_path: Path, tokenizer: BPETokenizer, sides: list[list[list[int]]]
) -> None:
    made = []
    for number, (seed, threads) in enumerate([(1, 1), (1, 2), (2, None)]):
        options: dict[str, Any] = {"val_fraction": SHARE, "shard_tokens": 100}
        made.append(nanogpt(run(tmp_path / str(number), shuffle=seed, threads=threads, **options)))
        assert made[-1] != list(map(flat, sides))
        for tokens, side in zip(made[-1], sides, strict=True):
            assert sorted(rows_of(tokens, tokenizer.eos_token_id)) == sorted(side)
    assert made[0] == made[1] != made[2]


def test_llm_c(run: Run, tmp_path: Path, sides: list[list[list[int]]]) -> None:
    out = tmp_path / "out"
    made = run(out, format="llm.c", val_fraction=SHARE, shard_tokens=100)
    assert made.files == [*sorted(out.glob("*.train.bin")), out / "val.bin"]
    assert flat([read_llm_c(path) for path in made.files[:-1]]) == flat(sides[0])
    assert read_llm_c(made.files[-1]) == flat(sides[1])
    assert not (out / "meta.pkl").exists()


@pytest.mark.parametrize("name", ["megatron", "npy", "parquet"])
def test_other_formats_keep_their_shards(
    name: Any, run: Run, tmp_path: Path, sides: list[list[list[int]]]
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    made = run(out, format=name, val_fraction=SHARE, shard_tokens=300)
    assert sorted(made.files) == sorted(out.glob("tokens-*"))
    assert {path.name.split(".")[1] for path in made.files} == {"train", "val"}
    if name == "npy":
        for part, side in zip(("train", "val"), sides, strict=True):
            assert flat([np.load(path).tolist() for path in sorted(out.glob(f"*.{part}.npy"))]) == flat(side)


def test_another_fraction(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out, val_fraction=SHARE)
    for options in ({"val_fraction": SHARE / 2}, {}):
        with pytest.raises(OptionError, match=r"differs in: val_fraction"):
            run(out, **options)
    assert names(run(out, overwrite=True)) == ["tokens-00000.bin"]
    kept = {"tokens-00000.bin", "train.bin", "manifest.json", "plan.json", "unit-00000.json"}
    assert {path.name for path in out.iterdir() if path.name[0] != "."} == kept


def test_a_single_shard_has_the_name_that_nanogpt_opens(run: Run, tmp_path: Path) -> None:
    out, named = tmp_path / "out", tmp_path / "out" / "train.bin"
    made = run(out)
    assert np.memmap(named, np.uint16, "r").tolist() == np.fromfile(made.files[0], np.uint16).tolist()
    assert named.samefile(made.files[0])
    for options in ({"shard_tokens": 50}, {"format": "llm.c"}):
        run(out, overwrite=True, **options)
        assert not named.exists()


# Packing


@pytest.mark.parametrize("strategy", ["concat", "best-fit"])
def test_pack_npy(
    strategy: str, run: Run, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = flat([[*tokenizer.encode(text), tokenizer.eos_token_id] for text in TEXTS])
    out, options = tmp_path / "out", {"format": "npy", "pack": 16, "shard_tokens": 100}
    options["pack_strategy"] = strategy
    shards = [PackedSequences.load(path) for path in run(out, **options).files[::3]]
    assert len(shards) > 2
    found = []
    for shard in shards:
        used = shard.document_ids(0, len(shard.ids)) >= 0
        assert used.sum(axis=1).tolist() == shard.lengths.tolist()
        assert set(shard.ids[~used].tolist()) <= {tokenizer.pad_token_id}
        found.extend(shard.ids[used].tolist())
    assert Counter(found) == Counter(ids)
    assert strategy != "concat" or found == ids
    before = contents(out)
    patch_batches(2, monkeypatch)
    run(tmp_path / "again", threads=1, **options)
    assert contents(tmp_path / "again") == before
    (out / "tokens-00001.cu_seqlens.npy").unlink()
    assert run(out, **options).kept == 1
    assert contents(out) == before
    parts = [len(run(tmp_path / f"parts{of}", of, **options).files) for of in (1, 2)]
    assert contents(tmp_path / "parts1") == contents(tmp_path / "parts2")
    assert parts[0] % 3 == 0


def test_pack_parquet_with_validation(run: Run, tmp_path: Path, sides: list[list[list[int]]]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = run(tmp_path / "out", format="parquet", val_fraction=SHARE, pack=16)
    assert names(made) == ["tokens-00000.train.parquet", "tokens-00000.val.parquet"]
    for path, side in zip(made.files, sides, strict=True):
        rows = parquet.read_table(path).to_pylist()
        assert flat([row["input_ids"] for row in rows]) == flat(side)
        assert all(sum(row["seq_lengths"]) == 16 for row in rows[:-1])


def test_pack_mds(run: Run, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    made = run(tmp_path / "out", format="mds", pack=16, shard_tokens=100, dtype="int32")
    index = json.loads((tmp_path / "out" / "index.json").read_bytes())
    samples = flat([read_mds(*each) for each in zip(made.files, index["shards"], strict=True)])
    rows = [[*tokenizer.encode(text), tokenizer.eos_token_id] for text in TEXTS]
    assert flat([sample["tokens"] for sample in samples]) == flat(rows)
    assert all(sum(sample["seq_lengths"]) == len(sample["tokens"]) <= 16 for sample in samples)


@pytest.mark.parametrize("name", ["mds", "litdata"])
def test_one_index_lists_all_shards(name: str, run: Run, tmp_path: Path) -> None:
    found = []
    for of in (1, 3):
        made = run(tmp_path / str(of), of, format=name, shard_tokens=50)
        found.append(contents(tmp_path / str(of)))
        index = json.loads(found[-1]["index.json"])
        listed = [each["raw_data"]["basename"] for each in index.get("shards", [])]
        listed += [each["filename"] for each in index.get("chunks", [])]
        assert listed == [path.name for path in made.files]
        assert len({each.split("-")[1] for each in listed}) > 2
    assert found[0] == found[1]
    with pytest.raises(OptionError, match=r"one index\.json, so val_fraction cannot divide them"):
        run(tmp_path / "divided", format=name, val_fraction=SHARE)


def test_an_index_goes_with_its_shards(run: Run, tmp_path: Path) -> None:
    run(tmp_path / "out", format="mds")
    run(tmp_path / "out", format="npy", overwrite=True)
    assert not (tmp_path / "out" / "index.json").exists()
