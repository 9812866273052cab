"""Corpora to shards as tasks, on an engine whose tasks fail, without a real engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import TokenizedCorpus
from bpe_tokenizer.corpus.manifest import UnitRecord
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.distributed.shards import ShardWork, tokenize_units, write_partition
from bpe_tokenizer.errors import WriteError
from bpe_tokenizer.readers import ReadOptions
from distributed.local_tasks import LocalTasks
from distributed.shard_cases import check_bad_rows, check_same_shards, corpus_files, parts
from token_files import contents

READ = tuple(ReadOptions.__dataclass_fields__)
RUN: dict[str, Any] = {
    "unit_bytes": "1GB",
    "threads": 1,
    "verify": False,
    "verbose": False,
    "on_event": None,
}


def tokenize(inputs: Any, output: Path, tokenizer: BPETokenizer, **options: Any) -> TokenizedCorpus:
    """As `tokenize_with_ray`."""
    tasks = options.pop("tasks", None) or LocalTasks()
    read = ReadOptions(**{name: options.pop(name) for name in READ if name in options})
    run = {name: options.pop(name, default) for name, default in RUN.items()}
    settings = CorpusSettings.of(tokenizer, read, **options)
    return tokenize_units(tasks, inputs, output, tokenizer, settings, **run)


def test_shards_are_those_of_the_parts(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    check_same_shards(tokenize, tmp_path, tokenizer)


def test_bad_rows(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    check_bad_rows(tokenize, tmp_path, tokenizer)


@pytest.mark.parametrize(
    ("units", "seed"),
    [
        *((8, seed) for seed in range(3)),
        pytest.param(1000, 3, marks=pytest.mark.sampled(0.25, "long tests")),
        *(
            pytest.param(10_000, seed, marks=[pytest.mark.slow, pytest.mark.sampled(0.3)])
            for seed in range(3)
        ),
    ],
)
def test_tasks_that_fail(
    units: int, seed: int, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # No power fails here.
    files = corpus_files(tmp_path / "corpus")
    options: dict[str, Any] = {"unit_bytes": 200, "shard_tokens": 60, "verbose": False, "format": "megatron"}
    if units > 8:
        rows = (f"low lower {number:06d} lowest\n" for number in range(2 * units))
        files[0].write_text("".join(rows), encoding="utf-8")
        options |= {"unit_bytes": files[0].stat().st_size // units, "documents": "line"}
    tasks = LocalTasks(seed, failures=0.04)
    tokenize(files, tmp_path / "out", tokenizer, tasks=tasks, **options)
    assert tasks.attempts > units
    parts(files, tmp_path / "local", tokenizer, **options)
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


def test_attempts_with_other_rows(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    pyarrow = pytest.importorskip("pyarrow")

    def write(work: ShardWork) -> Iterator[UnitRecord]:
        for text in ("low", "lower"):
            yield write_partition(work, 0, [pyarrow.record_batch({"text": [text]})])

    with pytest.raises(WriteError, match="another attempt of unit 0 has committed other bytes"):
        tokenize(write, tmp_path / "out", tokenizer)
    assert not (tmp_path / "out" / "manifest.json").exists()
