"""Many processors stay busy: what follows the encoding happens beside it, and units run at the same time."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests
from bpe_tokenizer.corpus.batch_encoder import BatchEncoder, EncodedBatch
from bpe_tokenizer.corpus.unit_shards import FullShard
from bpe_tokenizer.errors import CorpusError
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import contents

PARTS: dict[str, Any] = {"part": 0, "of": 1, "unit_bytes": 200, "shard_tokens": 60}


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A corpus of many units of two hundred bytes."""
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"lower {number} lowest\n" for number in range(150)), encoding="utf-8")
    return path


def test_sixteen_threads_encode_at_the_same_time(
    lines: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_batches(1, monkeypatch)
    tokenize_corpus(lines, tmp_path / "one", tokenizer, **PARTS, threads=1)
    everyone = threading.Barrier(16)
    encode = BatchEncoder.encode

    def encode_together(encoder: BatchEncoder, *arguments: Any) -> EncodedBatch:
        if not everyone.broken and not is_done.is_set():
            everyone.wait(200)
            is_done.set()
        return encode(encoder, *arguments)

    is_done = threading.Event()
    monkeypatch.setattr(BatchEncoder, "encode", encode_together)
    tokenize_corpus(lines, tmp_path / "sixteen", tokenizer, **PARTS, threads=16)
    assert is_done.is_set()
    assert contents(tmp_path / "sixteen") == contents(tmp_path / "one")
    merge_manifests(tmp_path / "sixteen")


def test_a_shard_is_hashed_while_the_next_ones_are_written(
    lines: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_batches(1, monkeypatch)
    tokenize_corpus(lines, tmp_path / "one", tokenizer, shard_tokens=60, threads=1)
    complete = FullShard.complete
    together = threading.Barrier(3)

    def complete_together(shard: FullShard) -> Any:
        number = int(shard.files[0].path.stem.split("-")[1])
        if number < 3:
            together.wait(200)
        return complete(shard)

    monkeypatch.setattr(FullShard, "complete", complete_together)
    tokenize_corpus(lines, tmp_path / "three", tokenizer, shard_tokens=60, threads=4)
    assert contents(tmp_path / "three") == contents(tmp_path / "one")


@pytest.mark.parametrize("error", [CorpusError("a broken file"), KeyboardInterrupt()])
def test_an_error_of_a_unit_stops_the_others(
    error: BaseException,
    lines: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error comes from a unit, Ctrl-C from the thread of the run."""
    patch_batches(1, monkeypatch)
    tokenize_corpus(lines, tmp_path / "whole", tokenizer, **PARTS, threads=1)

    def fail(event: dict[str, Any]) -> None:
        if event["event"] == ("unit" if isinstance(error, KeyboardInterrupt) else "shard"):
            raise error

    with pytest.raises(type(error)):
        tokenize_corpus(lines, tmp_path / "out", tokenizer, **PARTS, threads=4, on_event=fail)
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]
    assert not list((tmp_path / "out").glob(".*.tmp"))
    assert len(list((tmp_path / "out").glob("unit-?????.json"))) < 10
    tokenize_corpus(lines, tmp_path / "out", tokenizer, **PARTS, threads=4)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
