"""Runs that every engine must turn into the same shards as the parts of `tokenize_corpus`."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import TokenDataset, TokenizedCorpus, merge_manifests, tokenize_corpus
from bpe_tokenizer.corpus.unit_shards import UnitShards
from bpe_tokenizer.distributed import shards as on_shards
from bpe_tokenizer.errors import CorpusError, OptionError
from distributed.killing import killed_around
from token_files import DOCUMENTS, as_jsonl, contents

UNIT = 400


class Tokenizing(NamedTuple):
    """An engine that tokenizes, and what it needs.

    Args:
        tokenize: The engine's function.
        directory: A directory for files.
        tokenizer: The tokenizer.
        rows: Makes a dataset of texts with ids in two partitions: the first half, and the rest.
        monkeypatch: Lets workers be killed.
    """

    tokenize: Callable[..., TokenizedCorpus]
    directory: Path
    tokenizer: BPETokenizer
    rows: Any = None
    monkeypatch: Any = None


def corpus_files(directory: Path) -> list[Path]:
    """Files of several kinds and sizes; the tests' units divide some of them."""
    directory.mkdir()
    lines = [text for text in DOCUMENTS if "\n" not in text]
    (directory / "a.txt").write_text("\n".join(lines * 3), encoding="utf-8")
    (directory / "b.jsonl").write_bytes(as_jsonl(DOCUMENTS))
    (directory / "c.jsonl.gz").write_bytes(gzip.compress(as_jsonl(DOCUMENTS * 5)))
    for number, text in enumerate(DOCUMENTS[:6]):
        (directory / f"d{number}.txt").write_text(text, encoding="utf-8")
    return sorted(directory.iterdir())


def parts(files: Any, output: Path, tokenizer: BPETokenizer, **options: Any) -> TokenizedCorpus:
    """The run in parts on this machine."""
    for part in (1, 0):
        tokenize_corpus(files, output, tokenizer, part=part, of=2, **options)
    return merge_manifests(output)


def check_same_shards(engine: Tokenizing) -> None:
    """The shards, the plan, the records and the manifest have the same bytes, also after a second run."""
    tokenize, directory, tokenizer, *_ = engine
    files = corpus_files(directory / "corpus")
    options = {
        "unit_bytes": UNIT,
        "shard_tokens": 50,
        "format": "megatron",
        "documents": "line",
        "verbose": False,
    }
    local = parts(files, directory / "local", tokenizer, **options)
    events: list[dict[str, Any]] = []
    made = tokenize(files, directory / "out", tokenizer, on_event=events.append, **options)
    assert contents(directory / "out") == contents(directory / "local")
    assert made[1:5] == local[1:5]
    assert made.kept == 0
    assert [path.name for path in made.files] == [path.name for path in local.files]
    units = json.loads((directory / "out" / "plan.json").read_bytes())["units"]
    assert len(units) > 3
    assert sorted(event["unit"] for event in events if event["event"] == "unit") == [*range(len(units))]
    # A unit is gone: only this one is done again.
    (directory / "out" / "unit-00001.json").unlink()
    events.clear()
    again = tokenize(files, directory / "out", tokenizer, on_event=events.append, **options)
    assert [event["unit"] for event in events if event["event"] == "unit" and not event["kept"]] == [1]
    assert 0 < again.kept < len(again.files)
    assert contents(directory / "out") == contents(directory / "local")
    with pytest.raises(OptionError, match="differs in: shard_tokens"):
        tokenize(files, directory / "out", tokenizer, **{**options, "shard_tokens": 60})


def check_bad_rows(engine: Tokenizing) -> None:
    """A bad row is named with its file, or listed."""
    tokenize, directory, tokenizer, *_ = engine
    files = corpus_files(directory / "corpus")
    with files[1].open("ab") as file:
        file.write(b'{"text": 5}\n')
    options = {"verbose": False}
    with pytest.raises(CorpusError, match=r"^[^\n]*b\.jsonl, row 19\b[^\n]*$") as caught:
        tokenize(files, directory / "out", tokenizer, **options)
    assert type(caught.value) is CorpusError
    assert not (directory / "out" / "manifest.json").exists()
    local = parts(files, directory / "local", tokenizer, on_error="skip", **options)
    made = tokenize(files, directory / "out", tokenizer, on_error="skip", **options)
    assert made.skipped == local.skipped == 1
    assert contents(directory / "out") == contents(directory / "local")
    listed = json.loads((directory / "out" / "skipped.jsonl").read_text(encoding="utf-8"))
    assert (listed["file"], listed["row"]) == ("b.jsonl", 19)


def check_killed_workers(engine: Tokenizing) -> None:
    """A worker is killed after it moved shards into place, before the unit is committed."""
    record = engine.directory / "killed"
    engine.monkeypatch.setattr(
        on_shards, "_run_unit", killed_around(on_shards._run_unit, UnitShards, "commit", record)
    )
    check_same_shards(engine)
    assert record.exists()


def check_two_runs(engine: Tokenizing) -> None:
    """Two runs at the same time write the same bytes."""
    tokenize, directory, tokenizer, *_ = engine
    files = corpus_files(directory / "corpus")
    options = {"unit_bytes": UNIT, "shard_tokens": 50, "verbose": False}
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(tokenize, files, directory / "out", tokenizer, **options) for _ in range(2)]
        made, other = (run.result() for run in runs)
    assert made.files == other.files
    assert made.tokens == other.tokens
    parts(files, directory / "local", tokenizer, **options)
    assert contents(directory / "out") == contents(directory / "local")


def own_id(text: str | None) -> str:
    return f"d{text}"


def check_rows(engine: Tokenizing) -> None:
    """The rows of each partition become the shards of a run over a file with these rows."""
    tokenize, directory, tokenizer, rows, monkeypatch = engine
    texts = [*DOCUMENTS[:8], None, *DOCUMENTS[8:]]
    half = len(texts) // 2
    (directory / "corpus").mkdir()
    for name, part in (("a", texts[:half]), ("b", texts[half:])):
        lines = "".join(f"{json.dumps({'text': text, 'id': own_id(text)})}\n" for text in part)
        (directory / "corpus" / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    size = max(path.stat().st_size for path in (directory / "corpus").iterdir())
    options: dict[str, Any] = {"on_error": "skip", "verbose": False, "shard_tokens": 80}
    record = directory / "killed"
    with monkeypatch.context() as patched:
        killed = killed_around(on_shards.write_partition, UnitShards, "commit", record)
        patched.setattr(on_shards, "write_partition", killed)
        for chosen in (
            {"val_fraction": 0.3, "index": True, "id_field": "id"},
            {"format": "npy", "pack": 20, "pack_strategy": "best-fit"},
        ):
            output, local = directory / f"out-{len(str(chosen))}", directory / f"local-{len(str(chosen))}"
            made = tokenize(rows(texts), output, tokenizer, **options, **chosen)
            parts(directory / "corpus", local, tokenizer, unit_bytes=size, **options, **chosen)
            assert _tokens(output) == _tokens(local)
            assert _indexes(output) == _indexes(local)
            assert (made.documents, made.skipped) == (len(DOCUMENTS), 1)
            assert all(path.exists() for path in made.files)
    assert record.exists()
    listed = json.loads((output / "skipped.jsonl").read_text(encoding="utf-8"))
    assert listed == {"file": "partition 0", "row": 9, "problem": "is null"}
    assert len(TokenDataset(output, 20)) > 0
    with pytest.raises(OptionError, match="holds rows of another run"):
        tokenize(rows(texts), output, tokenizer, **options, **chosen)
    with pytest.raises(OptionError, match="holds rows of an engine"):
        merge_manifests(output)
    with pytest.raises(CorpusError, match=r"^partition 0, row 9 is null") as caught:
        tokenize(rows(texts), directory / "stopped", tokenizer, verbose=False)
    assert type(caught.value) is CorpusError
    assert not (directory / "stopped" / "manifest.json").exists()


def _tokens(directory: Path) -> dict[str, bytes]:
    made = contents(directory)
    return {name: made[name] for name in made if name.split(".")[-1] in {"bin", "npy", "pkl"}}


def _indexes(directory: Path) -> dict[str, list[list[str]]]:
    """The start, the end and the id of each document, without its place."""
    return {
        path.name: [row[:3] for row in csv.reader(gzip.decompress(path.read_bytes()).decode().splitlines())]
        for path in directory.glob("*.index.csv.gz")
    }


SHARD_CHECKS = [check_killed_workers, check_rows, check_bad_rows]
