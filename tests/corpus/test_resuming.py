"""Runs that are killed and resumed."""

from __future__ import annotations

import errno
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus.flat import FlatShard
from bpe_tokenizer.corpus.shards import FORMATS
from bpe_tokenizer.corpus.unit_shards import FullShard
from bpe_tokenizer.errors import CorpusError, OptionError, WriteError
from dying_steps import Died, DyingSteps
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import DAMAGES, contents

# Runs that go on


@pytest.mark.parametrize("damage", [*DAMAGES, "shorter record", "no record"])
def test_finished_shards_are_verified(
    damage: str, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    out = tmp_path / "out"
    made = tokenize_corpus(corpus, out, tokenizer, "megatron", shard_tokens=25)
    expected = contents(out)
    broken = made.files[5]  # the index of the third shard
    if damage in DAMAGES:
        DAMAGES[damage](broken)
    elif damage == "shorter record":  # as a killed run leaves it
        record = json.loads((out / "unit-00000.json").read_bytes())
        record |= {"shards": record["shards"][:2], "skipped": None}
        (out / "unit-00000.json").unlink()
        (out / "unit-00000.unfinished.json").write_text(json.dumps(record), encoding="utf-8")
    else:
        (out / "unit-00000.json").write_bytes(b"{")
    (out / ".tokens-00002.bin.0123456789abcdef.tmp").write_bytes(b"left by a kill")
    again = tokenize_corpus(corpus, out, tokenizer, "megatron", shard_tokens=25)
    assert again == made._replace(kept=0 if damage == "no record" else 2)
    assert contents(out) == expected


def test_other_settings_are_refused(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer
) -> None:
    out = tmp_path / "out"
    tokenize_corpus(corpus, out, tokenizer, shard_tokens=25)
    before = contents(out)
    for used, options, named in (
        (tokenizer, {"shard_tokens": 26}, "shard_tokens"),
        (tokenizer, {"shard_tokens": 25, "append_eos": False}, "eos_id"),
        (tokenizer, {"shard_tokens": 25, "format": "npy"}, "format"),
        (plain_tokenizer, {"shard_tokens": 25, "append_eos": False}, "eos_id, tokenizer"),
    ):
        with pytest.raises(OptionError, match=f"another run \\(it differs in: {named}\\)"):
            tokenize_corpus(corpus, out, used, **options)
    corpus.write_text("other", encoding="utf-8")
    new = corpus.with_name("new.txt")
    new.write_text("low", encoding="utf-8")
    for inputs, named in (
        (corpus, rf" \(changed: '{corpus.name}'\)"),
        ([new], rf" \(added: 'new\.txt'; removed: '{corpus.name}'\)"),
    ):
        with pytest.raises(OptionError, match=rf"it differs in: inputs{named}\)"):
            tokenize_corpus(inputs, out, tokenizer, shard_tokens=25)
    assert contents(out) == before
    # A broken list.
    plan = json.loads(before["plan.json"])
    broken: list[tuple[Any, type[Exception], str]] = [
        ([1], OptionError, "it differs in: inputs"),
        ({}, CorpusError, "is not the plan of a run"),
        ("x", CorpusError, "is not the plan of a run"),
    ]
    for listed, error, said in broken:
        (out / "plan.json").write_text(json.dumps({**plan, "inputs": listed}), encoding="utf-8")
        with pytest.raises(error, match=said):
            tokenize_corpus(new, out, tokenizer, shard_tokens=25)
    (out / "plan.json").write_bytes(before["plan.json"])
    made = tokenize_corpus(corpus, out, tokenizer, "npy", overwrite=True)
    assert sorted(contents(out)) == ["manifest.json", "plan.json", "tokens-00000.npy", "unit-00000.json"]
    assert made.documents == 1


def test_a_directory_of_others_is_refused(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.txt").write_text("mine", encoding="utf-8")
    for overwrite in (False, True):
        with pytest.raises(OptionError, match=r"holds other files \(thesis.txt\)"):
            tokenize_corpus(corpus, out, tokenizer, overwrite=overwrite)
    for text in (
        "",
        "[]",
        '{"settings": {}}',
        '{"unit_bytes": null, "units": 1, "inputs": [], "settings": {}}',
    ):
        (out / "plan.json").write_text(text, encoding="utf-8")
        with pytest.raises(CorpusError, match=r"plan\.json is not the plan of a run"):
            tokenize_corpus(corpus, out, tokenizer, overwrite=True)
    assert (out / "thesis.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("name", list(FORMATS))
def test_a_run_that_dies_at_any_step_goes_on(
    name: Any, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    tokenize_corpus(corpus, tmp_path / "whole", tokenizer, name, shard_tokens=100)
    expected = contents(tmp_path / "whole")
    patch_batches(2, monkeypatch)
    dying = DyingSteps()
    monkeypatch.setattr(Path, "replace", dying(Path.replace))
    monkeypatch.setattr(os, "link", dying(os.link))
    monkeypatch.setattr(os, "fsync", dying(lambda _: None))
    steps = 0
    while dying.left <= 0:
        steps += 1
        out, dying.left = tmp_path / f"out{steps}", steps
        with suppress(Died):
            tokenize_corpus(corpus, out, tokenizer, name, shard_tokens=100)
        if dying.left <= 0:
            tokenize_corpus(corpus, out, tokenizer, name, shard_tokens=100)
        assert contents(out) == expected
    assert steps > 20


def test_a_failed_run_leaves_finished_shards_only(
    tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch_batches(1, monkeypatch)
    path = tmp_path / "c.txt"
    path.write_bytes(b"a\nb\nc\n")
    bad = tmp_path / "d.txt"
    bad.write_bytes(b"\xff\n")
    for name in FORMATS:
        if name == "parquet":
            pytest.importorskip("pyarrow")
        with pytest.raises(CorpusError, match=r"d\.txt, row 1"):
            tokenize_corpus([path, bad], tmp_path / name, tokenizer, name, shard_tokens=2)
        suffixes = FORMATS[name].suffixes
        # The third shard was not finished: whether the fourth document fits was not known.
        assert sorted(contents(tmp_path / name)) == [
            "plan.json",
            *(f"tokens-{shard:05d}{suffix}" for shard in range(2) for suffix in sorted(suffixes)),
            "unit-00000.unfinished.json",
        ]


@pytest.mark.parametrize("of", [0, 1])
@pytest.mark.parametrize("step", ["write", "complete"])
def test_no_shard_follows_one_that_failed(
    step: str, of: int, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batches wait for the writer when it fails, and it may take one of them."""
    patch_batches(1, monkeypatch)
    shutdown = ThreadPoolExecutor.shutdown
    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", lambda pool, **_: shutdown(pool, wait=True))
    parts: dict[str, Any] = {"part": 0, "of": 1, "shard_tokens": 25} if of else {"shard_tokens": 25}
    tokenize_corpus(corpus, tmp_path / "whole", tokenizer, **parts)
    owner = FlatShard if step == "write" else FullShard
    run, calls = getattr(owner, step), 0
    out = tmp_path / "out"

    def fail(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            time.sleep(0.05)  # until others wait
            raise WriteError.of(out, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        return run(*arguments)

    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(WriteError, match="No space left"):
        tokenize_corpus(corpus, out, tokenizer, **parts)
    made, expected = contents(out), contents(tmp_path / "whole")
    shards = [name for name in made if name.startswith("tokens-")]
    assert 0 < len(shards) < len(expected) - 1
    assert {name: made[name] for name in shards} == {name: expected[name] for name in shards}
    tokenize_corpus(corpus, out, tokenizer, **parts)
    assert contents(out) == expected
