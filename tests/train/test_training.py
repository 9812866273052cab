from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from bpe_tokenizer import (
    GPT2_SPLIT_PATTERN,
    ArgumentTypeError,
    BPETokenizer,
    CorpusError,
    ModelError,
    NotTrainedError,
    OptionError,
    Progress,
    TokenizerError,
    report_progress,
    train_bpe,
)
from bpe_tokenizer.corpus import tokenize_corpus
from bpe_tokenizer.train import progress
from training import WORDS, merges_of, trained

TIE_BREAKS: list[Literal["largest", "huggingface"]] = ["largest", "huggingface"]


# -- merges ---------------------------------------------------------------------------------------------


# Few letters make many ties; the others bring in longer characters, line ends and contractions.
texts = st.text(alphabet=st.sampled_from("ab c'sé日\n1"), max_size=40)


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
@given(documents=st.lists(texts, min_size=1, max_size=8), data=st.data())
@settings(max_examples=150, deadline=None)
def test_merges_are_those_of_the_reference(
    tie_break: Literal["largest", "huggingface"], documents: list[str], data: st.DataObject
) -> None:
    tokens = data.draw(st.integers(0, 30), label="tokens to learn")
    min_frequency = data.draw(st.integers(0, 4), label="min_frequency")
    longest = data.draw(st.none() | st.integers(1, 6), label="max_token_length")
    counts = Counter(
        piece.encode() for document in documents for piece in oracle.split(document, GPT2_SPLIT_PATTERN)
    )
    if not counts or not tokens:
        return
    options = {"tie_break": tie_break, "min_frequency": min_frequency, "max_token_length": longest}
    expected = oracle.train_merges(counts, tokens, tie_break, min_frequency, longest)
    assert merges_of(documents, 256 + tokens, **options) == expected


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_the_way_a_corpus_is_handed_over_does_not_show(
    stdlib_files: list[Path],
    stdlib_texts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tie_break: Literal["largest", "huggingface"],
) -> None:
    expected = merges_of(stdlib_texts, 900, tie_break=tie_break)
    for size in (1000, 50_000):
        monkeypatch.setattr("bpe_tokenizer.train.corpus._BATCH_CHARACTERS", size)
        monkeypatch.setattr("bpe_tokenizer.train.corpus._STEP_BYTES", size)
        for threads in (1, 2, 5):
            options: dict[str, Any] = {"tie_break": tie_break, "threads": threads}
            assert merges_of(stdlib_texts, 900, **options) == expected
            assert merges_of(iter(stdlib_files), 900, **options) == expected
            assert merges_of(stdlib_files[::-1], 900, **options) == expected


def test_a_pair_occurs_twice_by_default() -> None:
    default = BPETokenizer("gpt2", None).train("ab ab cd", verbose=False)
    assert default.merges == [(b"a", b"b")]


# -- ids ------------------------------------------------------------------------------------------------


def test_a_list_of_special_tokens_takes_the_first_ids(stdlib_texts: list[str]) -> None:
    specials = ["<|endoftext|>", "<|user|>", "<|end|>"]
    tokenizer = trained(stdlib_texts[:1], 512, special_tokens=specials)
    assert tokenizer.special_tokens == {"<|endoftext|>": 256, "<|user|>": 257, "<|end|>": 258}
    assert len(tokenizer.merges) == 253
    assert tokenizer.vocab_size == len(tokenizer) == len(tokenizer.vocab) == 512
    assert sorted(tokenizer.vocab) == list(range(512))
    assert tokenizer.vocab[256] == b"<|endoftext|>"
    assert tokenizer.vocab[259] == b"".join(tokenizer.merges[0])


def test_merges_skip_reserved_ids(stdlib_texts: list[str]) -> None:
    tokenizer = trained(stdlib_texts[:1], 300, special_tokens={"<b>": 290, "<a>": 258, "<c>": 300})
    assert list(tokenizer.special_tokens.items()) == [("<a>", 258), ("<b>", 290), ("<c>", 300)]
    learned = [token_id for token_id in range(256, 300) if token_id not in (258, 290)]
    assert [tokenizer.vocab[token_id] for token_id in learned] == [
        left + right for left, right in tokenizer.merges
    ]
    assert tokenizer.vocab_size == 300
    assert len(tokenizer) == 301


def test_nothing_is_learned_across_a_special_token() -> None:
    tokenizer = trained("ab<|x|>ab<|x|>" * 9, 300, special_tokens=["<|x|>"])
    assert tokenizer.merges == [(b"a", b"b")]
    longest = trained("ab<|x|><|x|y|>" * 9, 300, special_tokens=["<|x|>", "<|x|y|>", "<|x|><|x|y|>"])
    assert longest.merges == [(b"a", b"b")]


@pytest.mark.parametrize(
    ("special_tokens", "error", "message"),
    [
        ({"<a>": 300, "<b>": 300}, ModelError, "'<a>' and '<b>' both have the id 300"),
        ({"<a>": -1}, ModelError, "'<a>' is -1"),
        ({"<a>": 255}, ModelError, "'<a>' is 255; ids 0 to 255 are the bytes"),
        ({"<a>": 2**32}, ModelError, "4294967296"),
        ({"": 300}, ModelError, "empty"),
        ([""], ModelError, "empty"),
        (["<a>", "<a>"], ModelError, "'<a>' is listed twice"),
        (["<\ud800>"], ModelError, "lone surrogate"),
        ([f"<{i}>" for i in range(45)], OptionError, "45 special tokens .* vocab_size=300"),
        ("<a>", TypeError, "not a str"),
        ([b"<a>"], TypeError, "must be a str, not bytes"),
        ({"<a>": "300"}, TypeError, "must be an int, not str"),
        ({"<a>": 300.0}, TypeError, "must be an int, not float"),
        ({"<a>": True}, TypeError, "must be an int, not bool"),
    ],
)
def test_impossible_special_tokens_are_refused(
    special_tokens: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        trained(WORDS, 300, special_tokens=special_tokens)
    assert isinstance(caught.value, TypeError | TokenizerError)


def test_special_tokens_may_fill_the_vocabulary() -> None:
    tokenizer = trained(WORDS, 300, special_tokens=[f"<{i}>" for i in range(44)])
    assert tokenizer.merges == []
    assert tokenizer.vocab_size == 300


# -- options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"vocab_size": 256}, OptionError, "vocab_size is 256; it must be at least 257"),
        ({"vocab_size": 0}, OptionError, "vocab_size is 0"),
        ({"vocab_size": 2**31}, OptionError, "must be from 257 to 2,147,483,647"),
        ({"vocab_size": 300.0}, TypeError, "vocab_size must be an int"),
        ({"min_frequency": -1}, OptionError, "min_frequency is -1"),
        ({"tie_break": "smallest"}, OptionError, "'largest' or 'huggingface'"),
        ({"max_token_length": 0}, OptionError, "max_token_length is 0"),
        ({"threads": 0}, OptionError, "threads is 0"),
        ({"threads": "2"}, TypeError, "threads must be an int, not str"),
    ],
)
def test_an_option_out_of_range_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        trained(WORDS, **options)


def test_training_returns_the_tokenizer_and_replaces_what_was_there() -> None:
    tokenizer = BPETokenizer()
    assert tokenizer.train("aa aa", 257, verbose=False) is tokenizer
    assert tokenizer.encode("aa") == [256]
    tokenizer.train("bb bb", 258, special_tokens=["<x>"], verbose=False)
    assert tokenizer.encode("aabb") == [97, 97, 257]
    assert tokenizer.special_tokens == {"<x>": 256}


def test_a_failed_training_changes_nothing() -> None:
    def broken() -> Iterator[str]:
        yield "bb bb"
        raise KeyboardInterrupt

    tokenizer = BPETokenizer()
    with pytest.raises(KeyboardInterrupt):
        tokenizer.train(broken(), verbose=False)
    with pytest.raises(NotTrainedError):
        tokenizer.encode("bb")
    tokenizer.train("aa aa", 257, verbose=False)
    failures: list[tuple[Any, type[BaseException]]] = [
        (broken(), KeyboardInterrupt), ([], CorpusError), ([b"\xff"], CorpusError)
    ]  # fmt: skip
    for corpus, error in failures:
        with pytest.raises(error):
            tokenizer.train(corpus, verbose=False)
    assert tokenizer.encode("aabb") == [256, 98, 98]


# -- what is shown --------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_a_file_is_never_held_whole(tmp_path: Path, stdlib_texts: list[str]) -> None:
    path = tmp_path / "corpus.txt"
    # Not `ru_maxrss`, which a child process inherits from the one that started it.
    script = (
        "import sys; from pathlib import Path; from bpe_tokenizer import BPETokenizer;"
        "BPETokenizer().train(Path(sys.argv[1]), vocab_size=300, verbose=False, threads=2);"
        "print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0])"
    )
    text = "".join(stdlib_texts)[:400_000]
    peaks = []
    for copies in (50, 250):
        path.write_text(text * copies, encoding="utf-8")
        run = subprocess.run(
            [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
        )
        peaks.append(int(run.stdout))
    assert peaks[1] - peaks[0] < 16_000, f"{peaks} kB for 20 MB and 100 MB"


def test_the_summary_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    BPETokenizer("gpt2").train(["low low", "low"], vocab_size=258, min_frequency=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "2 documents: 3 pieces, 2 of them distinct; learned 2 merges" in shown.err
    assert "Stopped" not in shown.err
    BPETokenizer("gpt2").train(["low low"], vocab_size=300, min_frequency=9)
    assert "Stopped 44 merges short of 300 ids" in capsys.readouterr().err
    BPETokenizer("gpt2").train(["low low"], 300, max_token_length=1, min_count=2)
    said = "a count of at least 2, in pieces that occur at least 2 times, of at most 1 bytes"
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_summary_says_that_normalisation_changed_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    composed, decomposed = "café " * 10, "cafe\u0301 " * 10
    paths = [tmp_path / "composed.txt", tmp_path / "decomposed.txt"]
    for path, text in zip(paths, (composed, decomposed), strict=True):
        path.write_text(text, encoding="utf-8")

    def notes(corpus: Any, normalization: Any = "NFC", **options: Any) -> list[str]:
        BPETokenizer("gpt2", normalization).train(corpus, 258, **options)
        return [line for line in capsys.readouterr().err.splitlines() if "normalization" in line]

    note = "{} changed text in the corpus; normalization=None keeps every text as it is"
    for corpus in ([composed, decomposed], decomposed, paths, paths[1], (text for text in [decomposed])):
        assert notes(corpus) == [note.format("NFC")]
    assert notes(composed, "NFD") == [note.format("NFD")]
    for corpus in (composed, ["plain", composed], paths[:1]):
        assert notes(corpus) == []
    assert notes(paths, None) == []
    assert notes(paths, verbose=False) == []
    for _ in range(2):  # a finished run knows it too
        assert notes(paths, checkpoint=tmp_path / "run") == [note.format("NFC")]


def test_a_terminal_gets_a_progress_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], corpus_files: list[Path]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    corpora: list[Any] = [corpus_files, WORDS, iter(corpus_files)]
    for corpus in corpora:
        assert merges_of(corpus, verbose=True) == merges_of(corpus_files if corpus is not WORDS else WORDS)
        assert "Trained on" in capsys.readouterr().err


def test_a_narrow_terminal_shows_the_numbers_instead_of_the_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.ProgressBar.shown() as bar:
        bar.start("Learning merges", 32_000, "merges")
        bar.update(8_000, note="newest token 'abc'")
        bar.update(16_000, note="newest token 'abc'")
        shown = bar._bars
        assert shown is not None
        shown.refresh()
    line = re.findall(r"Learning merges [^\x1b\r\n]*", capsys.readouterr().err)[-1]
    assert line.startswith("Learning merges 50%, ")
    assert len(line) <= 40


def test_only_commands_print_lines_of_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], corpus_files: list[Path]
) -> None:
    times = itertools.count()
    monkeypatch.setattr(progress, "clock", lambda: 31.0 * next(times))
    merges_of(corpus_files, verbose=True)
    assert "Counting pieces: " not in capsys.readouterr().err
    with progress.progress_lines():
        merges_of(corpus_files, verbose=True)
        assert "Counting pieces: 0.00 of 0.00 MB" in capsys.readouterr().err
    monkeypatch.setattr(progress, "clock", lambda: 29.9 * (next(times) % 2))
    with progress.progress_lines():
        merges_of(corpus_files, verbose=True)
    assert "Counting pieces: " not in capsys.readouterr().err


def test_progress_is_reported_to_a_function(corpus_files: list[Path], tmp_path: Path) -> None:
    seen: list[Progress] = []
    with report_progress(seen.append):
        tokenizer = trained(WORDS)
        merges_of(corpus_files)
        merges_of(iter(corpus_files))
        tokenizer.extend(corpus_files, len(tokenizer) + 5, verbose=False)
        tokenize_corpus(corpus_files, tmp_path / "ids", tokenizer, append_eos=False, verbose=False)
    assert {each.stage: each.unit for each in seen} == {
        "Counting documents": "documents",
        "Counting pieces": "MB",
        "Learning merges": "merges",
        "Tokenizing": "MB",
    }
    size = sum(path.stat().st_size for path in corpus_files) / 1e6
    assert next(each for each in seen[::-1] if each.stage == "Counting pieces").done == pytest.approx(size)
    assert seen[-1] == Progress("Tokenizing", size, size, "MB")
    before = len(seen)
    trained(WORDS)
    assert len(seen) == before
    with report_progress(seen.append):
        short = BPETokenizer().train("low low lower", 5000, verbose=False)
    assert seen[-1] == Progress("Learning merges", len(short.merges), len(short.merges), "merges")
    with pytest.raises(ArgumentTypeError, match="report_progress takes a function, not int"):
        report_progress(5).__enter__()  # type: ignore[arg-type]

    def stop(_: Progress) -> None:
        raise TimeoutError("enough")

    with report_progress(stop), pytest.raises(TimeoutError, match="enough"):
        trained(WORDS)


def test_a_program_that_logs_gets_facts_and_lines_in_its_log(
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    corpus_files: list[Path],
) -> None:
    times = itertools.count()
    monkeypatch.setattr(progress, "clock", lambda: 31.0 * next(times))
    with caplog.at_level("INFO", "bpe_tokenizer"):
        merges_of(corpus_files, verbose=True)
        merges_of(corpus_files)
    assert capsys.readouterr().err == ""
    messages = [record.getMessage() for record in caplog.records]
    for begin in ("Counted ", "Counting pieces: ", "Trained on "):
        assert any(message.startswith(begin) for message in messages), begin
    assert sum(message.startswith("Trained on") for message in messages) == 1


# -- train_bpe ------------------------------------------------------------------------------------------


def test_train_bpe(corpus_files: list[Path]) -> None:
    vocab, merges = train_bpe(corpus_files[0], 262, ["<|endoftext|>"])
    counts = Counter(piece.encode() for piece in oracle.split(WORDS, GPT2_SPLIT_PATTERN))
    assert merges == oracle.train_merges(counts, 5, "largest")
    expected = {byte: bytes([byte]) for byte in range(256)} | {256: b"<|endoftext|>"}
    expected |= {257 + rank: left + right for rank, (left, right) in enumerate(merges)}
    assert vocab == expected
    assert train_bpe(str(corpus_files[0]), 262, ["<|endoftext|>"]) == (vocab, merges)
    tokenizer = BPETokenizer.from_vocab(vocab, merges, ["<|endoftext|>"])
    assert tokenizer.vocab == vocab
    assert tokenizer.merges == merges
    assert tokenizer.special_tokens == {"<|endoftext|>": 256}


def test_train_bpe_takes_a_dict_and_no_special_tokens(corpus_files: list[Path]) -> None:
    vocab, merges = train_bpe(corpus_files[0], 260, {"<|end|>": 1000})
    assert vocab[1000] == b"<|end|>"
    assert len(merges) == 4
    assert len(train_bpe(corpus_files[0], 260, [])[1]) == 4


def test_train_bpe_never_takes_a_missing_file_for_text(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="there is no file"):
        train_bpe("missing.txt", 300, [])
    with pytest.raises(OptionError, match="vocab_size is 256"):
        train_bpe(tmp_path, 256, [])
