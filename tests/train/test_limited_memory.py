"""Counting and learning in little memory: the same counts and merges, and nothing is left on the disk."""

from __future__ import annotations

import json
import pickle
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import (
    BPETokenizer,
    CorpusError,
    FormatError,
    MismatchError,
    OptionError,
    PieceCounts,
    count,
    train_from_counts,
)
from bpe_tokenizer.errors import ArgumentTypeError
from bpe_tokenizer.options import sample_limit
from bpe_tokenizer.train import checkpoint
from bpe_tokenizer.train.counts_file import SMALL_FILE

# More distinct words than fit into the smallest limit: about three times its memory.
MANY_WORDS = 700_000


def words(number: int, seed: int = 1) -> Iterator[str]:
    """Lines of words that are ever new, and of ones that come again."""
    chance = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    for _ in range(number // 10):
        line = ("".join(chance.choices(syllables, k=chance.randrange(2, 6))) for _ in range(12))
        yield f"often {' '.join(line)} 日本{chance.randrange(99)} слово"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "corpus.txt"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in words(MANY_WORDS))
    return path


@pytest.fixture(scope="module")
def everything(corpus: Path) -> PieceCounts:
    return count(corpus, "gpt2")


@pytest.fixture(scope="module")
def learned(everything: PieceCounts) -> BPETokenizer:
    return BPETokenizer("gpt2").train_from_counts(everything, 3000, min_count=2, verbose=False)


@pytest.mark.sampled(0.33)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_counts_with_a_limit_are_exact(
    corpus: Path, everything: PieceCounts, tmp_path: Path, threads: int
) -> None:
    limited = count(corpus, "gpt2", max_memory="240MB", threads=threads, spill_directory=tmp_path)
    assert list(tmp_path.iterdir()) == []  # the files have no names
    assert limited == everything
    assert (limited.pieces, limited.distinct) == (everything.pieces, everything.distinct)
    assert list(limited) == list(everything)
    if threads == 2:
        for counts in (limited, everything):
            counts.save(tmp_path / f"{counts is limited}.counts")
        files = [path.read_bytes() for path in tmp_path.iterdir()]
        assert files[0] == files[1]
        assert limited.to_arrow().equals(everything.to_arrow())
        assert pickle.loads(pickle.dumps(limited)) == everything


@pytest.mark.sampled(0.25, "long tests")
def test_merges_with_a_limit_are_those_without(
    corpus: Path, everything: PieceCounts, learned: BPETokenizer, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OptionError, match=r"needs \d+ MB of memory, and max_memory leaves 36 MB") as refused:
        BPETokenizer("gpt2").train(corpus, 3000, max_memory="240MB")
    said = capsys.readouterr().err
    assert f"Learning from {everything.distinct:,} distinct pieces needs " in said
    numbers = re.search(r"by (\d+) MB.*min_count=(\d+) fits, and leaves (\d+) of them", str(refused.value))
    assert numbers is not None
    missing, min_count, left = map(int, numbers.groups())
    assert (min_count, left) == (2, sum(times >= 2 for _, times in everything))
    assert len(str(refused.value)) <= 300
    limited = BPETokenizer("gpt2").train(corpus, 3000, max_memory="240MB", min_count=2, verbose=False)
    assert limited.merges == learned.merges
    more = train_from_counts(everything, 300, max_memory=f"{240 + missing}MB", verbose=False)
    assert more.merges == train_from_counts(everything, 300, verbose=False).merges
    with pytest.raises(OptionError, match="raise max_memory by 1 MB"):
        train_from_counts([everything], 300, max_memory=f"{239 + missing}MB", verbose=False)


@pytest.mark.sampled(0.25, "long tests")
@pytest.mark.parametrize("tie_break", ["largest", "huggingface"])
def test_other_ways_of_training_keep_the_limit(
    everything: PieceCounts, tie_break: Any, tmp_path: Path, corpus: Path
) -> None:
    everything.save(tmp_path / "counts")
    options: dict[str, Any] = {
        "tie_break": tie_break,
        "verbose": False,
        "max_token_length": 6,
        "min_count": 2,
    }
    whole = train_from_counts(everything, 1500, **options)
    limited = train_from_counts(tmp_path / "counts", 1500, max_memory="240MB", **options)
    assert limited.merges == whole.merges
    del options["max_token_length"]
    base = BPETokenizer("gpt2").train(words(2000, seed=5), 600, verbose=False, special_tokens=["<s>"])
    extended = [pickle.loads(pickle.dumps(base)) for _ in range(2)]
    extended[0].extend(corpus, 1200, **options)
    extended[1].extend(corpus, 1200, max_memory="240MB", spill_directory=tmp_path, **options)
    assert extended[0].merges == extended[1].merges


PEAK = r"""
import re, sys
from pathlib import Path
from bpe_tokenizer import BPETokenizer
BPETokenizer("gpt2").train(Path(sys.argv[1]), 3000, verbose=False, max_memory="240MB", min_count=20)
# The peak of `resource` includes that of the process that started this one.
print(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    peaks = []
    for size in (1, 3):
        path = tmp_path / f"{size}.txt"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in words(2 * size * MANY_WORDS, seed=size))
        done = subprocess.run(
            [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True
        )
        peaks.append(1024 * int(done.stdout))
    assert max(peaks) < 120e6
    assert max(peaks) < 1.15 * min(peaks)


COUNT_PEAK = r"""
import re, sys
from pathlib import Path
from bpe_tokenizer import count
assert count(Path(sys.argv[1]), "gpt2", max_memory="240MB", threads=16).distinct > 1e6
print(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_least_limit_holds_with_pyarrow_and_many_threads(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    # Random letters, about every ninth a space: more words than fit into the limit.
    letters = bytes(32 if byte < 28 else 97 + byte % 26 for byte in range(256))
    text = random.Random(1).randbytes(15 * 10**6).translate(letters).decode()
    rows = [text[start : start + 50_000] for start in range(0, len(text), 50_000)]
    path = tmp_path / "corpus.parquet"
    parquet.write_table(pyarrow.table({"text": rows}), path, row_group_size=100)
    done = subprocess.run(
        [sys.executable, "-c", COUNT_PEAK, path], capture_output=True, text=True, check=True
    )
    assert 1024 * int(done.stdout) < 240e6


STOPPED = """
import sys
from pathlib import Path
from bpe_tokenizer import BPETokenizer
print("began", flush=True)
corpus = [Path(sys.argv[1])] * 2000  # it never ends by itself
limits = {"max_memory": "240MB", "spill_directory": sys.argv[2], "min_count": 2}
BPETokenizer("gpt2").train(corpus, 30000, verbose=False, **limits)
"""


@pytest.mark.sampled(0.33)
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("seconds", [0.2, 0.8, 1.6])
def test_a_stop_leaves_no_files(corpus: Path, tmp_path: Path, sent: signal.Signals, seconds: float) -> None:
    command = [sys.executable, "-c", STOPPED, str(corpus), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(sent)
        process.communicate()
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []


FULL = """
import resource, signal, sys
from pathlib import Path
from bpe_tokenizer import BPETokenizer, PieceCounts, WriteError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
counts = PieceCounts("gpt2", max_memory="240MB", spill_directory=sys.argv[2]).add("low low")
try:
    counts.add(Path(sys.argv[1]))
except WriteError as error:
    print(error)
print(counts, list(counts))
"""


def test_a_full_disk_is_named_and_changes_no_counts(corpus: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(corpus), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    error, counts = done.stdout.splitlines()
    assert error.startswith(f"{tmp_path}: ")
    assert "spill_directory" in error
    assert len(error) <= 300
    assert counts == "PieceCounts(documents=1, pieces=2, distinct=2) [(b' low', 1), (b'low', 1)]"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sampled(0.25, "long tests")
def test_large_files_are_streams(everything: PieceCounts, tmp_path: Path) -> None:
    path = tmp_path / "large.counts"
    everything.save(path)
    assert path.stat().st_size > SMALL_FILE
    loaded = PieceCounts.load(path, max_memory="240MB", spill_directory=tmp_path)
    assert repr(loaded) == repr(everything)
    assert loaded == everything
    loaded.save(tmp_path / "again.counts")
    assert (tmp_path / "again.counts").read_bytes() == path.read_bytes()
    # Sums with weights, with counts in memory and with texts.
    loaded.merge(PieceCounts.load(path), 2).merge(PieceCounts("gpt2").add("often often"), 3).add("often")
    expected = {piece: 3 * times for piece, times in everything}
    expected[b"often"] += 4
    expected[b" often"] = expected.get(b" often", 0) + 3
    assert dict(loaded) == expected
    assert loaded.documents == 4
    with pytest.raises(CorpusError, match="64 bits"):
        loaded.merge(PieceCounts.load(path), 2**60)
    assert dict(loaded) == expected
    with pytest.raises(MismatchError):
        PieceCounts().merge(loaded)
    counts = PieceCounts.load(path).prune(3)
    assert dict(counts) == {piece: times for piece, times in everything if times >= 3}


@pytest.mark.sampled(0.25, "long tests")
def test_a_stopped_run_goes_on_in_little_memory(
    corpus: Path, learned: BPETokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saves fail, before they are made or behind them, in counting and in learning."""
    monkeypatch.setattr("bpe_tokenizer.train.corpus._STEP_BYTES", 4_000_000)
    saves = {name: getattr(checkpoint, name) for name in ("write_atomically", "save_counts")}
    calls, stop_at = 0, 0

    def stops(name: str, *arguments: Any, **options: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == stop_at:
            if stop_at % 2:
                saves[name](*arguments, **options)
            raise KeyboardInterrupt
        saves[name](*arguments, **options)

    for name in saves:
        monkeypatch.setattr(checkpoint, name, partial(stops, name))
    limits = {"max_memory": "240MB", "spill_directory": tmp_path, "min_count": 2}
    options: dict[str, Any] = {"verbose": False, "checkpoint": tmp_path / "run", **limits}
    for stop_at in (2, 1, 3, 4, 9):  # noqa: B007
        calls = 0
        with pytest.raises(KeyboardInterrupt):
            BPETokenizer("gpt2").train([corpus], 3000, checkpoint_seconds=0, **options)
    calls, stop_at = 0, 0
    trained = BPETokenizer("gpt2").train([corpus], 3000, checkpoint_seconds=0.5, **options)
    assert trained.merges == learned.merges
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["merges.json", "pieces.counts"]


@pytest.mark.sampled(0.25, "long tests")
def test_the_commands_take_the_limits(corpus: Path, tmp_path: Path) -> None:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bpe_tokenizer", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    limits = ("--max-memory", "240MB", "--spill-directory", tmp_path)
    pattern = ("--split-pattern", "gpt2")
    saved = tmp_path / "some.counts"
    done = run("count", "--corpus", corpus, *pattern, *limits, "--min-count", 3, "--output", saved, "--json")
    said = json.loads(done.stdout)
    assert said["distinct"] == PieceCounts.load(saved).distinct
    directory = tmp_path / "tokenizer"
    done = run("train", "--counts", saved, *limits, "--vocab-size", 300, "--output", directory)
    assert done.returncode == 0, done.stderr
    done = run("train", "--corpus", corpus, *pattern, *limits, "--output", tmp_path / "other")
    assert (done.returncode, "--min-count 2 fits" in done.stderr) == (1, True)
    done = run("count", "--corpus", corpus, "--sample", "1/10", "--output", saved)
    assert (done.returncode, "by line" in done.stderr) == (1, True)


def test_a_broken_large_file_gives_no_counts(everything: PieceCounts, tmp_path: Path) -> None:
    path = tmp_path / "large.counts"
    everything.save(path)
    data = bytearray(path.read_bytes())
    for place in (len(data) // 2, len(data) - 1):
        broken = data.copy()
        broken[place] ^= 1
        path.write_bytes(broken)
        counts = PieceCounts.load(path)
        uses: list[Callable[[PieceCounts], object]] = [
            lambda counts: counts.distinct,
            list,
            PieceCounts("gpt2").merge,
            lambda counts: counts.save(tmp_path / "other.counts"),
            lambda counts: train_from_counts(counts, 300, verbose=False),
        ]
        for use in uses:
            with pytest.raises(FormatError, match=rf"large\.counts: byte {len(data) - 8}: the checksum"):
                use(counts)
        assert not (tmp_path / "other.counts").exists()
    path.write_bytes(data[:-1])
    with pytest.raises(FormatError, match="byte"):
        list(PieceCounts.load(path))


def test_rare_pieces_are_removed(tmp_path: Path) -> None:
    texts = ["low low lower", "low lowest", "slow"]
    counts = count(texts, "gpt2", min_count=2)
    assert dict(counts) == {b"low": 2}
    counts.save(tmp_path / "counts")
    assert PieceCounts.load(tmp_path / "counts") == counts
    options: dict[str, Any] = {"min_frequency": 1, "verbose": False}
    learned = BPETokenizer("gpt2").train(texts, 300, min_count=2, **options)
    assert learned.merges == [(b"o", b"w"), (b"l", b"ow")]
    everything = count(texts, "gpt2")
    again = train_from_counts(everything, 300, min_count=2, **options)
    assert again.merges == learned.merges
    assert everything.distinct == 5  # unchanged
    with pytest.raises(OptionError, match="min_count"):
        count(texts, min_count=-1)


def test_a_sample_is_the_same_everywhere(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(2000)]
    whole = PieceCounts("gpt2", sample="1/10").add(texts)
    shuffled = texts.copy()
    random.Random(1).shuffle(shuffled)
    parts = PieceCounts("gpt2", sample=0.1, threads=1)
    for start in range(0, 2000, 77):
        parts.add(iter(shuffled[start : start + 77]))
    assert parts == whole
    assert 150 < whole.documents < 250
    weighted = PieceCounts("gpt2", sample=0.1).add(texts, weight=3)
    assert dict(weighted) == {piece: 3 * times for piece, times in whole}
    assert PieceCounts("gpt2", sample=1.0).add(texts).documents == 2000
    # A document has its number in the corpus, not in the sample.
    broken: list[str | bytes] = [*texts, b"\xff"]
    with pytest.raises(CorpusError, match="document 2000"):
        PieceCounts("gpt2", sample=0.1).add(broken)
    with pytest.raises(CorpusError, match="empty"):
        count(["just one"], sample="1/1000000000")
    file = tmp_path / "file.txt"
    file.write_text("some text")
    with pytest.raises(OptionError, match="by line"):
        BPETokenizer().train(file, 300, sample=0.5, verbose=False)


@pytest.mark.parametrize("rate", [0, -0.5, 1.5, "0", "2", "half", "1/0", float("nan")])
def test_rates_that_make_no_sense_are_refused(rate: float | str) -> None:
    with pytest.raises(OptionError, match="sample"):
        PieceCounts(sample=rate)
    with pytest.raises(ArgumentTypeError):
        sample_limit([0.5])  # type: ignore[arg-type]


def test_limits_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no directory"):
        PieceCounts(spill_directory=tmp_path / "nowhere")
