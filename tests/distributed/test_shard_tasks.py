"""Corpora to shards as tasks, on an engine whose tasks fail, without a real engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import TokenizedCorpus
from bpe_tokenizer.distributed.shards import tokenize_on_engine
from bpe_tokenizer.errors import WriteError
from distributed.local_tasks import LocalTasks
from distributed.shard_cases import Tokenizing, check_bad_rows, check_same_shards, corpus_files, parts
from token_files import contents


def tokenize(inputs: Any, output: Path, tokenizer: BPETokenizer, **options: Any) -> TokenizedCorpus:
    """As `tokenize_with_ray`."""
    tasks = options.pop("tasks", None) or LocalTasks()
    format_name = options.pop("format", "nanogpt")
    return tokenize_on_engine(tasks, inputs, output, tokenizer, format_name, options)  # type: ignore[arg-type]


def test_shards_are_those_of_the_parts(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    check_same_shards(Tokenizing(tokenize, tmp_path, tokenizer))


def test_bad_rows(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    check_bad_rows(Tokenizing(tokenize, tmp_path, tokenizer))


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


def test_files_of_killed_workers_are_removed(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    class Killed(LocalTasks):
        def run(self, work: Any, arguments: Any) -> Iterator[Any]:
            (tmp_path / "out" / ".tokens-00000-00000.bin.0123456789abcdef.tmp").touch()
            return super().run(work, arguments)

    files = corpus_files(tmp_path / "corpus")
    tokenize(files, tmp_path / "out", tokenizer, tasks=Killed(), verbose=False)
    parts(files, tmp_path / "local", tokenizer)
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


def test_attempts_with_other_rows(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    pyarrow = pytest.importorskip("pyarrow")

    class OtherRows(LocalTasks):
        def write_rows(self, work: Callable[..., Any], rows: Any) -> Iterator[Any]:
            for batch in rows[0]:
                yield work(0, [batch])

    rows = [[pyarrow.record_batch({"text": [text]}) for text in ("low", "lower")]]
    with pytest.raises(WriteError, match="another attempt of unit 0 has committed other bytes"):
        tokenize(rows, tmp_path / "out", tokenizer, tasks=OtherRows())
    assert not (tmp_path / "out" / "manifest.json").exists()
