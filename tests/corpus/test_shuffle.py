"""Documents in the order of a seed."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests, shuffle
from bpe_tokenizer.corpus.batch_encoder import EncodedBatch
from bpe_tokenizer.corpus.shards import TokenType
from bpe_tokenizer.corpus.shuffle import document_keys, shuffle_documents
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import as_jsonl, contents, read_megatron

TEXTS = [f"document {number}" + " low" * (number % 7) for number in range(300)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "c.jsonl"
    path.write_bytes(as_jsonl(TEXTS))
    return path


def documents(files: list[Path]) -> list[list[int]]:
    return [
        row for data, index in zip(files[::2], files[1::2], strict=True) for row in read_megatron(data, index)
    ]


def test_a_shuffle_is_a_permutation(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    eos = tokenizer.eos_token_id or 0
    rows = [[*tokenizer.encode(text), eos] for text in TEXTS]
    made = {
        seed: documents(
            tokenize_corpus(corpus, tmp_path / str(seed), tokenizer, "megatron", shuffle=seed).files
        )
        for seed in (0, 1, 2**64 - 1)
    }
    for found in made.values():
        assert sorted(found) == sorted(rows)
        assert found != rows
        # Neighbours of the corpus are not neighbours.
        places = {tuple(row): place for place, row in enumerate(found)}
        apart = [abs(places[tuple(a)] - places[tuple(b)]) for a, b in itertools.pairwise(rows)]
        assert np.mean(apart) > len(rows) / 5
    assert made[0] != made[1]
    with pytest.raises(Exception, match="differs in: shuffle"):
        tokenize_corpus(corpus, tmp_path / "0", tokenizer, "megatron")


def test_memory_and_batches_do_not_show(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"format": "megatron", "shuffle": 3, "shard_tokens": 200}
    tokenize_corpus(corpus, tmp_path / "memory", tokenizer, **options)
    patch_batches(7, monkeypatch)
    # Files from the first batch on, and buckets that are divided again and again.
    for buffered, held in ((1, 1 << 30), (1, 200), (1 << 30, 0)):
        monkeypatch.setattr(shuffle, "_BUFFER_BYTES", buffered)
        monkeypatch.setattr(shuffle, "_SORTED_BYTES", held)
        out = tmp_path / f"{buffered}-{held}"
        tokenize_corpus(corpus, out, tokenizer, threads=1, **options)
        assert contents(out) == contents(tmp_path / "memory")


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
@given(st.lists(st.integers(0, 5), max_size=40), st.integers(0, 2**64 - 1), st.integers(0, 45))
def test_against_sorting_by_key(dtype: TokenType, lengths: list[int], seed: int, skip: int) -> None:
    rows = [[number] * length for number, length in enumerate(lengths)]
    keys = document_keys(seed, 0, len(rows)).tolist()
    assert len(set(keys)) == len(keys)
    batches: list[EncodedBatch] = []
    for first in range(0, len(rows), 7):
        part = rows[first : first + 7]
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in part])]).astype(np.int64)
        ids = np.array([each for row in part for each in row], dtype=np.uint32)
        batches.append(EncodedBatch(0, ids, offsets, np.arange(first, first + len(part)), (), 0))
    found: list[list[int]] = []
    for batch in shuffle_documents(batches, seed, Path(), dtype, skip):
        found.extend(
            batch.ids[start:end].tolist()
            for start, end in zip(batch.offsets, batch.offsets[1:], strict=False)
        )
    assert found == [row for _, row in sorted(zip(keys, rows, strict=True))][skip:]


def test_a_shuffled_run_resumes(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with corpus.open("ab") as file:
        file.write(b'{"text": 1}\n')
    options: dict[str, Any] = {"shuffle": 3, "shard_tokens": 300, "on_error": "skip"}
    out = tmp_path / "out"
    made = tokenize_corpus(corpus, out, tokenizer, **options)
    expected = contents(out)
    assert len(made.files) > 5
    assert len(expected["skipped.jsonl"].splitlines()) == 1
    for kept in (0, 2, len(made.files) - 1):
        made.files[kept].unlink()
        assert tokenize_corpus(corpus, out, tokenizer, **options) == made._replace(kept=kept)
        assert contents(out) == expected
    assert not list(out.glob(".shuffle*"))


def test_parts_are_shuffled_by_unit(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    size = corpus.stat().st_size // 3 + 1
    plain = tokenize_corpus(corpus, tmp_path / "plain", tokenizer, "megatron")
    made: list[dict[str, bytes]] = []
    for of in (1, 2):
        out = tmp_path / str(of)
        for part in random.Random(of).sample(range(of), of):
            tokenize_corpus(corpus, out, tokenizer, "megatron", part=part, of=of, unit_bytes=size, shuffle=1)
        files = merge_manifests(out).files
        made.append(contents(out))
    assert made[0] == made[1]
    assert len(json.loads(made[0]["plan.json"])["units"]) == 3
    assert documents(files) != documents(plain.files)
    assert sorted(documents(files)) == sorted(documents(plain.files))
    # The first unit has the documents of the first third.
    first = documents(files[:2])
    assert sorted(first) == sorted(documents(plain.files)[: len(first)])
