"""Output directories in object stores: the files of a local run, whatever happens to the run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests
from bpe_tokenizer.corpus.directory import CorpusDirectory
from bpe_tokenizer.corpus.plan import plan_units
from bpe_tokenizer.corpus.remote_path import RemotePath, output_path
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.units import run_unit
from bpe_tokenizer.errors import CorpusError, OptionError, TokenizerError, WriteError
from bpe_tokenizer.readers import ReadOptions, find_inputs
from dying_steps import Died, DyingSteps
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import contents

OUT = "memory://bucket/tokens"


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty store, and a directory for temporary files, of which nothing is left."""
    system = pytest.importorskip("fsspec").filesystem("memory")
    system.store.clear()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    yield system
    system.store.clear()
    assert not list((tmp_path / "temporary").iterdir())


def stored(url: str = OUT) -> dict[str, bytes]:
    return contents(output_path(url))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("npy", {"shuffle": 1, "on_error": "skip"}),
        ("megatron", {"part": 0, "of": 1, "unit_bytes": 60, "shuffle": 1}),
        ("nanogpt", {"val_fraction": 0.3}),
        ("nanogpt", {"shard_tokens": None}),
        ("llm.c", {"val_fraction": 0.3, "part": 0, "of": 1, "unit_bytes": 60}),
        ("mds", {}),
    ],
)
def test_the_files_are_those_of_a_local_run(
    name: Any, options: dict[str, Any], corpus: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    with corpus.open("ab") as file:
        file.write(b"\n\xff\nlow" * ("on_error" in options))
    options = {"shard_tokens": 60, **options}
    made = [tokenize_corpus(corpus, out, tokenizer, name, **options) for out in (tmp_path / "local", OUT)]
    if "part" in options:
        made = [merge_manifests(out) for out in (tmp_path / "local", OUT)]
    expected = contents(tmp_path / "local")
    if options["shard_tokens"] is None:  # a second name of the only shard
        del expected["train.bin"]
    assert stored() == expected
    local, there = made
    assert [file.name for file in there.files] == [file.name for file in local.files]
    assert there[1:] == local[1:]
    assert str(there.files[0]).startswith("memory:///bucket/tokens/t")
    again = tokenize_corpus(corpus, OUT, tokenizer, name, **options, verify=True)
    assert again.kept == len({file.partition(".")[0] for file in expected if file.startswith("tokens-")})
    assert merge_manifests(str(there.files[0].parent), verify=True)[1:5] == local[1:5]
    assert stored() == expected


def test_tasks_of_an_engine(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    plan = plan_units(find_inputs(corpus), CorpusSettings.of(tokenizer, ReadOptions(documents="line")), 60)
    for out in (str(tmp_path / "local"), OUT):
        for unit in plan.units:
            run_unit(unit, plan, out, tokenizer)
        merge_manifests(out)
    assert stored() == contents(tmp_path / "local")


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("of", [0, 1])
def test_a_run_that_ends_at_any_step_goes_on(
    of: int,
    corpus: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
    memory: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options: dict[str, Any] = {"part": 0, "of": 1, "unit_bytes": 100} if of else {}
    patch_batches(2, monkeypatch)

    def run(out: Any) -> None:
        tokenize_corpus(corpus, out, tokenizer, shard_tokens=150, **options)
        if of:
            merge_manifests(out)

    run(tmp_path / "local")
    expected = contents(tmp_path / "local")
    steps = 0
    dying = DyingSteps(lambda: (Died, ConnectionResetError, RuntimeError)[steps % 3]("no more"))
    for name in ("put_file", "cat_file", "info", "ls", "rm_file"):
        monkeypatch.setattr(type(memory), name, dying(getattr(type(memory), name)))
    has_ended = False
    while not has_ended:
        steps += 1
        memory.store.clear()
        dying.left = steps
        with suppress(Died, WriteError, CorpusError):
            run(OUT)
        has_ended, dying.left = dying.left > 0, 0
        if not has_ended:
            run(OUT)
        assert stored() == expected
    assert steps > 20


def test_two_runs_at_once(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store has no lock. The same run writes the same files again; a different one is refused."""
    tokenize_corpus(corpus, tmp_path / "local", tokenizer, shard_tokens=60)
    save, calls = CorpusDirectory.save, 0

    def overtaken(self: CorpusDirectory, record: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            tokenize_corpus(corpus, OUT, tokenizer, shard_tokens=60)
        save(self, record)

    monkeypatch.setattr(CorpusDirectory, "save", overtaken)
    tokenize_corpus(corpus, OUT, tokenizer, shard_tokens=60)
    assert stored() == contents(tmp_path / "local")
    with pytest.raises(OptionError, match=r"tokens holds the shards of another run .*another directory$"):
        tokenize_corpus(corpus, OUT, tokenizer, shard_tokens=61)
    with pytest.raises(OptionError, match=r"overwrite is not possible in a store"):
        tokenize_corpus(corpus, OUT, tokenizer, shard_tokens=61, overwrite=True)
    # Both have written their plans, and the other one was later.
    other = output_path(OUT) / "plan.json"
    find = RemotePath.exists
    calls = 0
    monkeypatch.setattr(RemotePath, "exists", lambda self: self != other and find(self))
    check = CorpusDirectory.check
    monkeypatch.setattr(CorpusDirectory, "check", replaced(check, other, other.read_bytes()))
    tokenize_corpus(corpus, OUT, tokenizer, shard_tokens=60)
    monkeypatch.setattr(CorpusDirectory, "check", replaced(check, other, b"{}"))
    with pytest.raises(WriteError, match=r"another run has replaced plan\.json"):
        tokenize_corpus(corpus, OUT, tokenizer, shard_tokens=60)


def replaced(check: Any, plan: Any, data: bytes) -> Any:
    """Replace the plan before the check."""

    def run(self: CorpusDirectory) -> None:
        plan.system.pipe_file(plan.path, data)
        check(self)

    return run


def test_what_a_store_does_not_do_is_said(corpus: Path, tokenizer: BPETokenizer, memory: Any) -> None:
    with pytest.raises(OptionError, match=r"has no plan\.json"):
        merge_manifests(OUT)
    memory.pipe_file("/bucket/tokens/thesis.txt", b"mine")
    with pytest.raises(OptionError, match=r"tokens holds other files \(thesis\.txt\)"):
        tokenize_corpus(corpus, OUT, tokenizer)
    for url, problem in [
        ("s4://bucket", "output is 's4://bucket', which names no directory in a store"),
        ("memory://", "output is 'memory://', which names no directory in a store"),
        ("file://bucket", "'file://bucket' is a URL, and results are written to local"),
    ]:
        with pytest.raises(TokenizerError, match=problem):
            tokenize_corpus(corpus, url, tokenizer)
    assert list(stored()) == ["thesis.txt"]
