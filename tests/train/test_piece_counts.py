"""Piece counts as a value: what they hold, how they add up, their file, and training on them."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import (
    CL100K_SPLIT_PATTERN,
    GPT2_SPLIT_PATTERN,
    ArgumentTypeError,
    BPETokenizer,
    CorpusError,
    FormatError,
    MismatchError,
    OptionError,
    PieceCounts,
    count,
    train_from_counts,
)
from bpe_tokenizer.cli import main
from bpe_tokenizer.options import memory_bytes

pyarrow = pytest.importorskip("pyarrow")
END = "<|end|>"
texts = st.text(alphabet=st.sampled_from("ab c'sé日\n1e\u0301<|end>"), max_size=60)


def oracle(documents: Sequence[str], pattern: str, form: Literal["NFC"] | None = None) -> dict[bytes, int]:
    """Count with Python's regex engine."""
    parts = [part for document in documents for part in document.split(END)]
    normal = [unicodedata.normalize(form, part) if form else part for part in parts]
    pieces = (piece for part in normal for piece in regex.findall(pattern, part))
    return dict(Counter(piece.encode() for piece in pieces))


def saved(counts: PieceCounts, tmp_path: Path) -> bytes:
    counts.save(tmp_path / "saved.counts")
    return (tmp_path / "saved.counts").read_bytes()


# -- what they hold -------------------------------------------------------------------------------------


@given(documents=st.lists(texts, max_size=4))
def test_counts_are_those_of_a_regex_engine(documents: list[str]) -> None:
    for pattern, form in [(GPT2_SPLIT_PATTERN, None), (CL100K_SPLIT_PATTERN, "NFC")]:
        counts = PieceCounts(pattern, form, [END]).add(documents)
        expected = oracle(documents, pattern, form)  # type: ignore[arg-type]
        assert dict(counts.items()) == expected
        assert list(counts) == sorted(expected.items())
        assert (counts.documents, counts.pieces) == (len(documents), sum(expected.values()))
        assert len(counts) == counts.distinct == len(expected)


def test_files_and_their_texts_count_the_same(stdlib_files: list[Path], stdlib_texts: list[str]) -> None:
    for threads in (1, 3):
        from_files = count(stdlib_files, "gpt2", None, threads=threads)
        assert from_files == count(stdlib_texts, "gpt2", None)
        assert dict(from_files.items()) == oracle(stdlib_texts, GPT2_SPLIT_PATTERN)


def test_parts_add_up_in_any_order(stdlib_texts: list[str]) -> None:
    whole = PieceCounts().add(stdlib_texts)
    parts = [PieceCounts(threads=1).add(text) for text in stdlib_texts]
    for order in (parts, parts[::-1]):
        merged = PieceCounts()
        for part in order:
            assert merged.merge(part) is merged
        assert merged == whole
    assert parts[0] == PieceCounts().add(stdlib_texts[0])  # what is added stays what it is
    assert parts[0].merge(parts[0]) == PieceCounts().add([stdlib_texts[0]] * 2)


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.jsonl", b'{"text": "low"}\n', "jsonl"),
        ("a", b'{"text": "low"}\n{"text": "lower"}\n', "jsonl"),
        ("a.txt", gzip.compress(b"low lower", mtime=0), "gzip"),
        ("a.jsonl.gz", gzip.compress(b'{"text": "low"}\n', mtime=0), "gzip"),
        ("a.parquet", b"PAR1\x15\x04", "parquet"),
        ("a.arrow", b"ARROW1\0\0", "arrow"),
    ],
)
def test_a_range_of_what_is_no_plain_text_is_refused(
    name: str, data: bytes, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    counts = PieceCounts()
    with pytest.raises(OptionError, match=rf"{re.escape(name)}.* holds {kind}, .*add\(path\)"):
        counts.add_range(path, 0, 100)
    assert counts == PieceCounts()
    if data.startswith(b"{"):
        read = counts.add_range(path, 0, 100, input_format="text")
        assert read == PieceCounts().add(path, input_format="text")


def test_files_have_weights(stdlib_files: list[Path], stdlib_texts: list[str]) -> None:
    files, texts = stdlib_files[:4], stdlib_texts[:4]
    mixture = count(files, weights=[2, 2, 1, 3])
    repeated = PieceCounts()
    for text, weight in zip(texts, [2, 2, 1, 3], strict=True):
        repeated.add([text] * weight)
    assert list(mixture) == list(repeated)
    for weights, error, message in [
        ([1, 2], OptionError, "2 weights for 4 files"),
        ([0, 1, 1, 1], OptionError, "from 1"),
        ([0.7, 0.1, 0.1, 0.1], ArgumentTypeError, "7 and 3"),
    ]:
        with pytest.raises(error, match=message):
            count(files, weights=weights)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="list of files"):
        count(texts, weights=[1, 1, 1, 1])
    for wrong in (5, {7, 3}, dict.fromkeys((1, 2))):
        with pytest.raises(ArgumentTypeError, match="weights must be a list of int, one for each file"):
            count(stdlib_files[:2], weights=wrong)  # type: ignore[arg-type]


def test_a_count_beyond_64_bits_is_an_error() -> None:
    with pytest.raises(CorpusError, match="64 bits"):
        PieceCounts().add("a a", weight=2**64 - 1).add(" a")
    with pytest.raises(CorpusError, match="64 bits"):
        PieceCounts().merge(PieceCounts().add("a a a a", weight=2**62), weight=4)


def test_what_fails_changes_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"some text \xff")
    counts = PieceCounts().add("low lower")
    for corpus in ([b"more", b"\xff"], broken, ["more", 3], tmp_path / "none"):
        with pytest.raises((CorpusError, ArgumentTypeError)):
            counts.add(corpus)  # type: ignore[arg-type]
    assert counts == PieceCounts().add("low lower")
    with pytest.raises(CorpusError, match="empty"):
        count("")
    with pytest.raises(OptionError, match="range"):
        counts.add_range(__file__, 5, 4)
    with pytest.raises(ArgumentTypeError, match="start must be an int"):
        counts.add_range(__file__, 0.5, 4)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="documents is -1"):
        counts.add_arrow(counts.to_arrow(), -1)
    with pytest.raises(ArgumentTypeError, match="columns 'piece' and 'n'"):
        counts.add_arrow(pyarrow.table({"piece": ["low"]}))
    assert counts.add_range(broken, 100, 2**70) == PieceCounts().add("low lower")


def test_counts_are_values(tmp_path: Path) -> None:
    counts = PieceCounts("gpt2", None, [END, "<|b|>"]).add("low lower")
    other = PieceCounts("gpt2", None, ["<|b|>", END]).add("low lower")
    assert counts == other != PieceCounts("gpt2", None).add("low lower")
    assert counts != PieceCounts("gpt2", None, [END, "<|b|>"]).add("low")
    assert counts != "low"
    copy = pickle.loads(pickle.dumps(counts))
    assert copy == counts
    assert copy.special_tokens == (END, "<|b|>")
    with pytest.raises(TypeError):
        hash(counts)
    assert repr(counts) == "PieceCounts(documents=1, pieces=2, distinct=2)"


def test_processes_count_parts(stdlib_files: list[Path]) -> None:
    from multiprocessing import get_context

    for method in ("fork", "spawn"):
        with get_context(method).Pool(2) as pool:
            merged = PieceCounts()
            for part in pool.map(PieceCounts().add, stdlib_files):
                merged.merge(part)
        assert merged == count(stdlib_files)


# -- memory ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("500MB", 500_000_000),
        ("2 GiB", 2 << 30),
        ("0.5gb", 500_000_000),
        (10**9, 10**9),
        ("300000000", 3 * 10**8),
    ],
)
def test_memory_is_said_in_many_ways(said: int | str, meant: int) -> None:
    assert memory_bytes(said) == meant


@pytest.mark.parametrize("said", ["lots", "500 pounds", "", "-5MB", 10, "239MB", -1])
def test_memory_that_makes_no_sense_is_refused(said: int | str) -> None:
    with pytest.raises(OptionError):
        PieceCounts(max_memory=said)
    with pytest.raises(ArgumentTypeError):
        PieceCounts(max_memory=1.5e9)  # type: ignore[arg-type]


def test_counts_know_whether_normalisation_changed_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def is_said(counts: PieceCounts) -> bool:
        train_from_counts(counts, 258)
        return "NFC changed text" in capsys.readouterr().err

    composed, decomposed = (count(text, "gpt2") for text in ("café café", "cafe\u0301 café"))
    assert not is_said(composed)
    assert is_said(decomposed)
    assert composed == decomposed
    assert is_said(pickle.loads(pickle.dumps(decomposed)))
    assert not is_said(pickle.loads(pickle.dumps(composed)))
    assert is_said(PieceCounts("gpt2").merge(decomposed))
    assert is_said(PieceCounts("gpt2").add("plain").add("cafe\u0301"))
    # A file of counts has nothing about it: equal counts give equal files.
    decomposed.save(tmp_path / "a.counts")
    assert not is_said(PieceCounts.load(tmp_path / "a.counts"))


# -- the file -------------------------------------------------------------------------------------------


@given(documents=st.lists(texts, max_size=4), special=st.booleans())
def test_what_was_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, documents: list[str], special: bool
) -> None:
    path = tmp_path_factory.mktemp("counts") / "a.counts"
    counts = PieceCounts("o200k", None, [END] if special else []).add(documents)
    counts.save(path)
    loaded = PieceCounts.load(path)
    assert loaded == counts
    assert loaded.split_patterns == counts.split_patterns
    assert (loaded.normalization, loaded.special_tokens) == (None, counts.special_tokens)
    assert loaded.documents == len(documents)


def test_equal_counts_are_equal_files(tmp_path: Path, stdlib_texts: list[str]) -> None:
    whole = saved(PieceCounts().add(stdlib_texts), tmp_path)
    parts = PieceCounts(threads=2).add(stdlib_texts[3:]).add(stdlib_texts[:3])
    assert saved(parts, tmp_path) == whole
    assert len(whole) < 12 * parts.distinct


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.counts"
    whole = saved(
        PieceCounts("gpt2").add("low lower lowest, é and a piece of more than fifteen bytes"), tmp_path
    )
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError, match=r"broken\.counts: "):
            PieceCounts.load(path)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        with pytest.raises(FormatError, match=r"broken\.counts: "):
            PieceCounts.load(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(FormatError, match="checksum"):
        PieceCounts.load(path)
    path.write_bytes(whole.replace(b"counts 1\n", b"counts 2\n"))
    with pytest.raises(FormatError, match=r"version 2; this package reads version 1"):
        PieceCounts.load(path)


# -- Arrow ----------------------------------------------------------------------------------------------


def test_counts_go_through_arrow(stdlib_texts: list[str]) -> None:
    counts = PieceCounts().add(stdlib_texts)
    batch = counts.to_arrow()
    assert [str(field.type) for field in batch.schema] == ["large_binary", "uint64"]
    assert batch.to_pylist()[:3] == [{"piece": piece, "n": n} for piece, n in list(counts)[:3]]
    signed = batch.set_column(1, "n", batch.column("n").cast(pyarrow.int64()))
    for rows in (batch, signed, pyarrow.Table.from_batches([batch[:99], batch[99:]])):
        assert PieceCounts().add_arrow(rows, counts.documents) == counts
    for column, message in [([1, None], "null"), ([1, -1], "negative")]:
        bad = pyarrow.record_batch({"piece": [b"a", b"b"], "n": column})
        with pytest.raises(CorpusError, match=message):
            PieceCounts().add_arrow(bad)
    with pytest.raises(ArgumentTypeError, match="double"):
        PieceCounts().add_arrow(pyarrow.record_batch({"piece": [b"a"], "n": [1.5]}))


# -- training -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tie_break", ["largest", "huggingface"])
def test_training_on_counts_is_training_on_the_text(
    tmp_path: Path, stdlib_texts: list[str], tie_break: Literal["largest", "huggingface"]
) -> None:
    special = {"self": 300, "<|end|>": 100_000}
    whole = BPETokenizer().train(
        stdlib_texts, 700, special_tokens=special, verbose=False, tie_break=tie_break, max_token_length=9
    )
    parts: list[Any] = []
    for number, text in enumerate(stdlib_texts):
        part = BPETokenizer().count(text, special)
        part.save(tmp_path / f"{number}.counts")
        parts.append(part if number % 2 else tmp_path / f"{number}.counts")
    learned = BPETokenizer().train_from_counts(
        parts, 700, special_tokens=special, verbose=False, tie_break=tie_break, max_token_length=9
    )
    assert (learned.vocab, learned.merges) == (whole.vocab, whole.merges)
    assert learned.special_tokens == whole.special_tokens == special


def test_the_special_tokens_of_the_counts_are_the_default(stdlib_texts: list[str]) -> None:
    tokens = ["self", "<|end|>", "def"]
    counts = BPETokenizer("gpt2").count(stdlib_texts, tokens)
    learned = BPETokenizer("gpt2").train_from_counts(counts, 500, verbose=False)
    assert learned.special_tokens == {"self": 256, "<|end|>": 257, "def": 258}
    assert learned.merges == BPETokenizer("gpt2").train(stdlib_texts, 500, 2, tokens, False).merges
    alone = train_from_counts(counts, 500, verbose=False)
    assert (alone.merges, alone.special_tokens) == (learned.merges, learned.special_tokens)
    assert alone.split_pattern == learned.split_pattern
    assert alone.normalization == "NFC"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("gpt2", "NFC", [END]), "split pattern"),
        (("cl100k", None, [END]), "normalisation None"),
        (("cl100k", "NFC", []), "special tokens"),
    ],
)
def test_counts_that_were_cut_otherwise_are_refused(settings: Any, message: str) -> None:
    counts = PieceCounts(*settings).add("low low lower")
    with pytest.raises(MismatchError, match=message):
        PieceCounts("cl100k", "NFC", [END]).merge(counts)
    with pytest.raises(MismatchError, match=message):
        BPETokenizer().train_from_counts(counts, 300, special_tokens=[END], verbose=False)
    with pytest.raises(MismatchError, match=message):
        train_from_counts([PieceCounts("cl100k", "NFC", [END]).add("low"), counts], 300, verbose=False)


@pytest.mark.parametrize("wrong", [END, None, 5])
def test_special_tokens_are_a_collection(wrong: Any) -> None:
    for call in (PieceCounts, lambda special_tokens: count("a", special_tokens=special_tokens)):
        with pytest.raises(ArgumentTypeError, match="special_tokens must be a list or a dict"):
            call(special_tokens=wrong)


def test_counts_of_nothing_are_refused() -> None:
    with pytest.raises(CorpusError, match="no counts"):
        BPETokenizer().train_from_counts([])
    with pytest.raises(CorpusError, match="empty"):
        BPETokenizer().train_from_counts(PieceCounts())
    with pytest.raises(ArgumentTypeError, match="int"):
        BPETokenizer().train_from_counts([3])  # type: ignore[list-item]


# -- the command ----------------------------------------------------------------------------------------


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command in this process, for a new process of Python takes a second to start."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess([], ended.value.code, *capfd.readouterr())

    return run


def test_the_commands_count_and_train(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, stdlib_files: list[Path]
) -> None:
    options = ("--pattern", "gpt2", "--special", END)
    counted = run("count", "--corpus", *stdlib_files[:3], *options, "--output", "a.counts", "--json")
    assert counted.returncode == 0, counted.stderr
    said = json.loads(counted.stdout)
    assert said["documents"] == 3
    assert "normalization" not in counted.stderr
    Path("decomposed.txt").write_text("cafe\u0301", encoding="utf-8")
    changed = run("count", "--corpus", "decomposed.txt", "--output", "c.counts")
    assert "NFC changed text in the corpus; normalization=None" in changed.stderr
    assert run("count", "--corpus", *stdlib_files[3:], *options, "--output", "b.counts").returncode == 0
    from_counts = run("train", "--counts", "a.counts", "b.counts", "--output", "one", "--vocab-size", 600)
    assert from_counts.returncode == 0, from_counts.stderr
    arguments = ("--corpus", *stdlib_files, *options, "--output", "two", "--vocab-size", 600)
    assert run("train", *arguments).returncode == 0
    one, two = (tmp_path / name / "tokenizer.json" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    weighted = run("train", *arguments[:-3], "three", "--weights", *range(1, len(stdlib_files) + 1))
    assert weighted.returncode == 0, weighted.stderr


def test_the_commands_refuse_what_does_not_go_together(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    PieceCounts("gpt2").add("low low lower").save(tmp_path / "a.counts")
    (tmp_path / "text").write_text("low low")
    for code, arguments, message in [
        (1, ("--counts", "a.counts", "--pattern", "cl100k"), "split pattern"),
        (1, ("--counts", "a.counts", "--normalization", "none"), "normalisation"),
        (1, ("--counts", "a.counts", "--special", END), "special tokens"),
        (2, ("--counts", "a.counts", "--sample", "1/10"), "need a --corpus"),
        (2, ("--counts", "a.counts", "--field", "body"), "need a --corpus"),
        (1, ("--counts", "text"), "not a file of piece counts"),
        (1, ("--counts", "none"), "none"),
        (2, (), "either --corpus or --counts"),
        (2, ("--corpus", "-", "--checkpoint", "c"), "standard input"),
        (1, ("--corpus", "text", "--max-memory", "plenty"), "500MB"),
    ]:
        result = run("train", *arguments, "--output", "out")
        assert (result.returncode, result.stdout) == (code, "")
        assert message in result.stderr
        assert "Traceback" not in result.stderr
