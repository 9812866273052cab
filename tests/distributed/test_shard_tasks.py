"""Corpora to shards as tasks, on an engine whose tasks fail, without a real engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import TokenizedCorpus
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.distributed.shards import tokenize_units
from bpe_tokenizer.errors import OptionError, TokenizerError
from bpe_tokenizer.readers import ReadOptions
from distributed.local_tasks import LocalTasks
from distributed.shard_cases import check_bad_rows, check_same_shards, corpus_files, parts
from token_files import DOCUMENTS, as_jsonl, contents, read_all

READ = tuple(ReadOptions.__dataclass_fields__)
RUN: dict[str, Any] = {
    "unit_bytes": "1GB",
    "threads": 1,
    "verify": False,
    "verbose": False,
    "on_event": None,
    "write_rows": None,
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


def test_rows_are_written_first(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    fails = [True]

    def write(directory: Path) -> None:
        directory.mkdir()
        for number in range(3):
            table = pyarrow.table({"text": DOCUMENTS[number::3]})
            parquet.write_table(table, directory / f"part-{number:05}.parquet")
            if fails:
                fails.pop()
                raise KeyboardInterrupt

    def run() -> TokenizedCorpus:
        return tokenize([], tmp_path / "out", tokenizer, write_rows=write)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert [*tmp_path.iterdir()] == []
    made = run()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert made.documents == len(DOCUMENTS)
    (tmp_path / "rows.jsonl").write_bytes(as_jsonl([text for n in range(3) for text in DOCUMENTS[n::3]]))
    parts(tmp_path / "rows.jsonl", tmp_path / "local", tokenizer)
    assert read_all("nanogpt", tmp_path / "out") == read_all("nanogpt", tmp_path / "local")
    (tmp_path / "out.rows").mkdir()
    with pytest.raises(OptionError, match=r"out\.rows holds the rows of a run that did not finish"):
        run()


@pytest.mark.parametrize("option", [{"unit_bytes": "much"}, {"threads": 0}, {"verify": "yes"}])
def test_options_are_checked_before_rows_are_written(
    option: dict[str, Any], tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    with pytest.raises(TokenizerError, match=next(iter(option))):
        tokenize([], tmp_path / "out", tokenizer, write_rows=lambda _: pytest.fail("written"), **option)
