"""Runs that are stopped at any moment go on to the same result."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import ArgumentTypeError, BPETokenizer, FormatError, MismatchError, OptionError, WriteError
from bpe_tokenizer.locks import RUN_LOCK
from bpe_tokenizer.train import checkpoint
from sampling import DAY, sample_size

VOCAB_SIZE = 1000


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, stdlib_texts: list[str]) -> list[Path]:
    """Some files of different sizes, with words of their own."""
    directory = tmp_path_factory.mktemp("corpus")
    paths = []
    for number, text in enumerate([*stdlib_texts, *stdlib_texts[:3]]):
        paths.append(directory / f"{number}.txt")
        words = (f"{line} w{number}{place * 7919 % 4096:x}" for place, line in enumerate(text.splitlines()))
        paths[-1].write_text("\n".join(words) * (1 + 3 * number), encoding="utf-8")
    return paths


def trained(corpus: list[Path], directory: Path | None = None, **options: Any) -> tuple[Any, Any]:
    learned = BPETokenizer("gpt2").train(
        corpus, **{"vocab_size": VOCAB_SIZE, "verbose": False, "checkpoint": directory, **options}
    )
    return learned.vocab, learned.merges


PROGRAM = """
import sys
from functools import partial
from pathlib import Path
from bpe_tokenizer import BPETokenizer
options = {"max_memory": sys.argv[2]} if sys.argv[2] else {}
print("began", flush=True)
BPETokenizer("gpt2").train(
    [Path(path) for path in sys.argv[3:]], VOCAB_SIZE, verbose=False,
    checkpoint=sys.argv[1], checkpoint_seconds=0, **options
)
""".replace("VOCAB_SIZE", str(VOCAB_SIZE))


def run_and_kill(corpus: list[Path], directory: Path, seconds: float, memory: str = "") -> bool:
    """Run for so long at most; tell whether the run was killed."""
    command = [sys.executable, "-c", PROGRAM, str(directory), memory, *map(str, corpus)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            assert process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            process.kill()
    return process.returncode == -signal.SIGKILL


@pytest.mark.sampled(0.25, "long tests")
@pytest.mark.parametrize("memory", ["", pytest.param("240MB", marks=pytest.mark.slow)])
def test_kills_change_nothing(
    tmp_path: Path, corpus: list[Path], monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    options: dict[str, Any] = {"max_memory": memory} if memory else {}
    whole = trained(corpus, **options)
    began = time.monotonic()
    run_and_kill(corpus, tmp_path / "whole", 600, memory)
    length = time.monotonic() - began
    chance = random.Random(os.environ[DAY])
    kills, killed = sample_size(20, 0.25), 0
    for run in range(kills):
        # Each run is killed a little later than the one before it, and goes on from where that was.
        killed += run_and_kill(corpus, tmp_path / "run", chance.random() * length * (run + 1) / kills, memory)
    while killed <= kills // 6:  # on a busy machine the measured time may be too long: begin again, earlier
        length /= 2
        shutil.rmtree(tmp_path / "run")
        killed += run_and_kill(corpus, tmp_path / "run", length, memory)
    assert killed > kills // 6
    assert trained(corpus, tmp_path / "run", **options) == whole
    names = ["merges.json", "pieces.counts"]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == names
    for name in names:
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.sampled(0.25, "long tests")
def test_a_stop_at_every_save_changes_nothing(
    tmp_path: Path, corpus: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every save fails once, before it or behind it, and the run goes on from there."""
    whole = trained(corpus)
    monkeypatch.setattr("bpe_tokenizer.train.corpus._STEP_BYTES", 100_000)
    writers = {name: getattr(checkpoint, name) for name in ("write_atomically", "save_counts")}
    saves, before = 0, False

    class Stopped(BaseException):
        pass

    def stops(name: str, *arguments: Any, **options: Any) -> None:
        nonlocal saves
        if before:
            saves += 1
            raise Stopped
        writers[name](*arguments, **options)
        saves += 1
        raise Stopped

    with monkeypatch.context() as patch:
        for name in writers:
            patch.setattr(checkpoint, name, partial(stops, name))
        for run in range(60):
            # A run that is stopped before its first save comes no further: the next one is stopped behind it.
            before = run % 2 == 1
            with contextlib.suppress(Stopped):
                trained(corpus, tmp_path / "run", checkpoint_seconds=0)
    assert saves > 20
    assert trained(corpus, tmp_path / "run", checkpoint_seconds=0) == whole


def test_counts_serve_another_vocabulary(tmp_path: Path, corpus: list[Path]) -> None:
    trained(corpus, tmp_path)
    for options in ({"vocab_size": 4000}, {"vocab_size": 500}, {"tie_break": "huggingface"}):
        assert trained(corpus, tmp_path, **options) == trained(corpus, **options)


def test_more_files_may_follow(tmp_path: Path, corpus: list[Path]) -> None:
    trained(corpus[:4], tmp_path)
    assert trained(corpus, tmp_path) == trained(corpus)


def test_weights_are_kept(tmp_path: Path, corpus: list[Path]) -> None:
    weights = [1 + number % 3 for number in range(len(corpus))]
    assert trained(corpus, tmp_path, weights=weights) == trained(corpus, weights=weights)
    assert trained(corpus, tmp_path, weights=weights) == trained(corpus, weights=weights)
    with pytest.raises(MismatchError, match="its file 1 has the weight 2, not 1"):
        trained(corpus, tmp_path)


def test_another_run_is_refused(tmp_path: Path, corpus: list[Path]) -> None:
    trained(corpus, tmp_path)
    with pytest.raises(MismatchError, match="of at least 10 files, not 9"):
        trained(corpus[:-1], tmp_path)
    with pytest.raises(MismatchError, match="its file 0 has the path"):
        trained(corpus[::-1], tmp_path)
    with pytest.raises(MismatchError, match="special tokens"):
        trained(corpus, tmp_path, special_tokens=["<|end|>"])
    with pytest.raises(MismatchError, match="split pattern"):
        BPETokenizer("cl100k").train(corpus, 300, verbose=False, checkpoint=tmp_path)
    changed = [path.with_suffix(".changed") for path in corpus]
    for path, copy in zip(corpus, changed, strict=True):
        copy.write_bytes(path.read_bytes())
    trained(changed, tmp_path / "other")
    changed[2].write_text("something else")
    with pytest.raises(MismatchError, match="its file 2 has the size"):
        trained(changed, tmp_path / "other")


@pytest.mark.parametrize(
    ("before", "now", "message"),
    [
        ({"sample": 0.5}, {"sample": "1/4"}, "the sample 0.5, not 0.25"),
        ({"sample": 0.5}, {}, "the sample 0.5, not None"),
        ({}, {"sample": 0.5}, "the sample None, not 0.5"),
        ({"field": "other"}, {}, "the reading .*, not None"),
    ],
)
def test_other_documents_are_refused(
    tmp_path: Path, before: dict[str, Any], now: dict[str, Any], message: str
) -> None:
    path = tmp_path / "rows.jsonl"
    rows = ({"text": f"number {row * 7919}", "other": f"other {row}"} for row in range(50))
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    first = trained([path], tmp_path / "run", **before)
    assert trained([path], tmp_path / "run", **before) == first
    with pytest.raises(MismatchError, match=message):
        trained([path], tmp_path / "run", **now)


def test_a_checkpoint_needs_files(tmp_path: Path) -> None:
    for documents in ("low low lower", ["low", "lower"], iter([Path(__file__)])):
        with pytest.raises(OptionError, match="checkpoint needs files"):
            BPETokenizer().train(documents, 300, verbose=False, checkpoint=tmp_path)


def test_seconds_are_checked_before_the_work(tmp_path: Path, corpus: list[Path]) -> None:
    wrong: tuple[Any, ...] = (None, "5", -1, float("nan"), float("inf"))
    for seconds in wrong:
        with pytest.raises((ArgumentTypeError, OptionError), match="checkpoint_seconds"):
            trained(corpus, tmp_path / "run", checkpoint_seconds=seconds)
    assert not (tmp_path / "run").exists()


def test_a_broken_checkpoint_is_refused(tmp_path: Path, corpus: list[Path]) -> None:
    trained(corpus, tmp_path)
    counts, merges = tmp_path / "pieces.counts", tmp_path / "merges.json"
    good = counts.read_bytes()
    counts.write_bytes(good[:-100])
    with pytest.raises(FormatError, match=r"pieces\.counts"):
        trained(corpus, tmp_path)
    BPETokenizer("gpt2").count(corpus).save(counts)
    with pytest.raises(FormatError, match="without a position to resume from"):
        trained(corpus, tmp_path)
    counts.write_bytes(good)
    content = json.loads(merges.read_bytes())
    for broken in ("{", "[]", json.dumps({**content, "merges": ["*"]}), json.dumps({**content, "merges": 3})):
        merges.write_text(broken)
        with pytest.raises(FormatError, match=r"merges\.json is broken: delete it"):
            trained(corpus, tmp_path)
    merges.write_text(json.dumps({**content, "version": 2}))
    assert trained(corpus, tmp_path) == trained(corpus)


def test_what_a_kill_left_is_cleared(tmp_path: Path, corpus: list[Path]) -> None:
    left = [tmp_path / f".{name}.0123456789abcdef.tmp" for name in ("pieces.counts", "merges.json")]
    for path in left:
        path.write_bytes(b"half")
    trained(corpus, tmp_path)
    assert not any(path.exists() for path in left)


STOPS_ITSELF = """
import os, signal
from bpe_tokenizer.train import checkpoint
save_counts = checkpoint.save_counts

def save_and_stop(*arguments, **options):
    save_counts(*arguments, **options)
    os.kill(os.getpid(), signal.SIGSTOP)

checkpoint.save_counts = save_and_stop
"""


def test_a_stopped_run_keeps_its_checkpoint(tmp_path: Path, corpus: list[Path]) -> None:
    directory = tmp_path / "run"
    command = [sys.executable, "-c", STOPS_ITSELF + PROGRAM, str(directory), "", *map(str, corpus)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        os.waitpid(first.pid, os.WUNTRACED)
        with pytest.raises(WriteError, match=f"run is in use by process {first.pid} on"):
            trained(corpus, directory)
        first.kill()
        first.wait()
    assert trained(corpus, directory) == trained(corpus)
    assert sorted(path.name for path in directory.iterdir()) == ["merges.json", "pieces.counts"]


def test_a_run_that_was_overtaken_writes_nothing_more(
    tmp_path: Path, corpus: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine whose locks others do not see."""
    write = checkpoint.Checkpoint._write
    after_second: dict[str, bytes] = {}

    def frozen(self: checkpoint.Checkpoint, path: Path, data: bytes) -> None:
        if path.name == "merges.json" and not after_second:
            (tmp_path / RUN_LOCK).unlink()
            after_second["pieces.counts"] = b""
            trained(corpus, tmp_path, vocab_size=400)
            after_second.update({path.name: path.read_bytes() for path in tmp_path.iterdir()})
        write(self, path, data)

    monkeypatch.setattr(checkpoint.Checkpoint, "_write", frozen)
    with pytest.raises(WriteError, match="has lost its lock"):
        trained(corpus, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == after_second
