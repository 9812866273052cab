"""Two runs in one output directory: the second is refused, or the first changes nothing more."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, WriteError, locks
from bpe_tokenizer.corpus import packer
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.shards import FORMATS
from bpe_tokenizer.corpus.unit_shards import FullShard, UnitShards
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import contents, visible


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Freezes a run at a step, and lets a second one run."""
    patch_batches(2, monkeypatch)

    def freeze(owner: type, name: str, call: int, second: Callable[[], object]) -> None:
        step, calls = getattr(owner, name), 0

        def frozen(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == call:
                second()
            return step(*arguments)

        monkeypatch.setattr(owner, name, frozen)

    return freeze


@pytest.mark.parametrize(
    ("owner", "step", "name", "does_second_finish"),
    [
        (packer.ShardPacker, "_write", "nanogpt", False),
        (packer.ShardPacker, "_finish_shard", "megatron", True),
        (UnitShards, "add", "megatron", False),
        (CorpusDirectory, "save", "nanogpt", True),
    ],
)
def test_a_run_that_was_overtaken_changes_nothing(
    owner: type,
    step: str,
    name: Any,
    does_second_finish: bool,
    corpus: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
    overtaken: Callable[..., None],
) -> None:
    tokenize_corpus(corpus, tmp_path / "whole", tokenizer, name, shard_tokens=60)
    out = tmp_path / "out"
    after_second: dict[str, bytes] = {}

    def second() -> None:
        (out / locks.RUN_LOCK).unlink()  # by someone who believes that the first run has ended
        with pytest.MonkeyPatch.context() as patch:
            if not does_second_finish:
                patch.setattr(UnitShards, "commit", interrupted)
            with contextlib.suppress(KeyboardInterrupt):
                tokenize_corpus(corpus, out, tokenizer, name, shard_tokens=60)
        after_second.update(visible(out))

    overtaken(owner, step, 3, second)
    with pytest.raises(WriteError, match=r"has lost its lock|another process removed its temporary file"):
        tokenize_corpus(corpus, out, tokenizer, name, shard_tokens=60)
    assert visible(out) == after_second
    tokenize_corpus(corpus, out, tokenizer, name, shard_tokens=60)
    assert contents(out) == contents(tmp_path / "whole")


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_shard_of_the_wrong_size_is_not_listed(
    name: Any, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    complete = FullShard.complete

    def grow(shard: FullShard) -> Any:
        shard.files[-1].stream.seek(0, os.SEEK_END)
        shard.files[-1].stream.write(b"\0")
        return complete(shard)

    monkeypatch.setattr(FullShard, "complete", grow)
    with pytest.raises(WriteError, match=r"tokens-00000\.[\w.]+: \d+ documents with \d+ ids take"):
        tokenize_corpus(corpus, tmp_path / "out", tokenizer, name)
    assert sorted(contents(tmp_path / "out")) == ["plan.json"]


@pytest.mark.parametrize("link_fails", [False, True])
def test_without_hard_links_too(
    link_fails: bool, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    if link_fails:
        monkeypatch.setattr("os.link", refuse)
    tokenize_corpus(corpus, tmp_path / "out", tokenizer, shard_tokens=60)
    assert not [name for name in contents(tmp_path / "out") if name.startswith(".")]
    assert all(path.stat().st_nlink == 1 for path in (tmp_path / "out").iterdir())
