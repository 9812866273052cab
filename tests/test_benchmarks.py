"""The benchmark suite's own logic, with packages that are made up: no time is asserted."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pythons

# `python -m pytest` finds it; a bare `pytest` does not look beside `tests`.
pytest.importorskip("benchmarks")

from benchmarks import cases as suite_cases
from benchmarks import hostile, instructions, interpreters, page, records
from benchmarks.cases import BASELINES, CALL_SIZES, CORPORA, MIXED, MODES, Case, declared, select
from benchmarks.inputs import SEPARATOR, cut_at_lines, cut_to_size
from benchmarks.jobs import Inputs, job
from benchmarks.measure import on_processors
from benchmarks.peers import OURS, PEERS, Side, SkippedError
from benchmarks.suite import Suite
from benchmarks.vocabularies import OPENAI, VOCABULARIES, Vocabulary

from bpe_tokenizer import BPETokenizer

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TEXT = "One line.\r\nAnother line, naïve café\n日本語のテキスト\n" * 40


def side(tokenizer: BPETokenizer) -> Side:
    """Return our side with everything that the suite can use, whatever this version has."""

    def files(path: Path, threads: int) -> Any:
        return tokenizer.encode_ragged(path.read_bytes().decode().split(SEPARATOR), threads=threads)

    return Side(
        to_list=tokenizer.encode,
        to_numpy=tokenizer.encode_to_numpy,
        in_threads=lambda text, threads: tokenizer.encode_ragged([text], threads=threads)[0],
        batch=lambda texts, threads: tokenizer.encode_ragged(texts, threads=threads),
        files=files,
        flat=lambda result: result[0],
        to_str=tokenizer.decode,
        to_bytes=tokenizer.decode_bytes,
        ours_alone={
            "count": tokenizer.count_tokens,
            "offsets": tokenizer.encode_with_offsets,
            "offset-arrays": tokenizer.encode_to_numpy_with_offsets,
            "stream": lambda text: list(tokenizer.encode_streaming([text[:9], text[9:]])),
            "special": tokenizer.encode,
        },
    )


@pytest.fixture
def loader(tokenizer: BPETokenizer) -> Callable[[str, Vocabulary], Side]:
    """Load ours; one that agrees, one that is wrong, one that fails, and one that refuses."""

    class PanicError(BaseException):
        """What packages in Rust raise when they panic."""

    def panics(text: str) -> list[int]:
        raise PanicError("index out of bounds")

    def load(package: str, vocabulary: Vocabulary) -> Side:
        # A process of its own loads ours as it is, so the suite must not think that it has more.
        ours = replace(side(tokenizer), files=None)
        if package == "tokenizers":
            raise SkippedError("tokenizers is not installed")
        if package == "tiktoken":
            return replace(ours, to_list=lambda text: [*tokenizer.encode(text)[:-1], 0])
        if package == "tokie":
            return replace(ours, to_list=panics)
        return ours

    return load


@pytest.fixture
def suite(
    tmp_path: Path, loader: Callable[[str, Vocabulary], Side], tokenizer: BPETokenizer
) -> tuple[Suite, records.Record]:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(TEXT + SEPARATOR + TEXT, encoding="utf-8", newline="")
    work = tmp_path / "work"
    for name in ("gpt2", "cl100k"):
        tokenizer.save(work / name)
    record = records.Record("suite", True, {"turns": 2}, tmp_path / "records")
    return Suite({"books": corpus}, work, record, turns=2, load=loader), record


def lines(record: records.Record) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record.path.read_text(encoding="utf-8").splitlines()]


def test_every_kind_of_case_is_declared() -> None:
    cases = declared()
    assert len({case.name for case in cases}) == len(cases)
    assert {case.mode for case in cases} == set(MODES)
    assert {case.peer for case in cases} == {*PEERS, OURS}
    assert {case.corpus for case in cases} == {*CORPORA, MIXED}
    assert {case.threads for case in cases} == {1, 2}
    for peer in PEERS:
        assert [case for case in cases if case.corpus == MIXED and case.peer == peer] == [
            Case(peer, "list", MIXED, "cl100k", "warm", 1)
        ]
    for vocabulary in OPENAI:
        for corpus in CORPORA:
            for state in ("warm", "cold"):
                assert Case("gigatoken", "numpy", corpus, vocabulary, state, 1) in cases
    lengths = {CALL_SIZES[case.mode] for case in cases if case.mode in CALL_SIZES}
    assert (min(lengths), max(lengths)) == (10, 10_000_000)
    everything = declared(everything=True)
    assert set(cases) < set(everything)
    assert {case.vocabulary for case in everything} == set(VOCABULARIES)
    assert {case.corpus for case in declared(["mine"])} == {"mine", MIXED}


def test_cases_are_grouped_by_what_stays_in_memory() -> None:
    groups = [(case.vocabulary, case.corpus) for case in declared(everything=True)]
    changes = [after for before, after in zip([None, *groups], groups, strict=False) if before != after]
    assert len(changes) == len(set(groups))


def test_cases_are_chosen_by_the_parts_of_their_names() -> None:
    cases = declared(everything=True)
    assert select(cases, []) == cases
    chosen = select(cases, ["gigatoken", "gpt2,cl100k", "cold", "books"])
    assert {case.name for case in chosen} == {
        f"gigatoken/{mode}/books/{vocabulary}/cold/1t"
        for mode in ("numpy", "batch")
        for vocabulary in ("gpt2", "cl100k")
    }
    assert {case.threads for case in select(cases, ["2t"])} == {2}
    # A part is matched as a whole: gpt2 is not "gpt".
    assert select(cases, ["gpt"]) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the processors of a thread")
def test_all_threads_keep_to_the_processors_of_a_case() -> None:
    allowed = os.sched_getaffinity(0)
    begin, end = threading.Event(), threading.Event()
    seen: list[set[int]] = []

    def old_thread() -> None:
        begin.wait()
        seen.append(os.sched_getaffinity(0))
        end.wait()
        seen.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=old_thread, daemon=True)
    thread.start()
    with on_processors(1):
        new_thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
        new_thread.start()
        new_thread.join()
        begin.set()
        while len(seen) < 2:
            time.sleep(0.001)
    end.set()
    thread.join()
    assert seen == [{min(allowed)}, {min(allowed)}, allowed]
    assert os.sched_getaffinity(0) == allowed


def test_texts_are_cut_without_loss() -> None:
    documents = cut_at_lines(TEXT, 100)
    assert "".join(documents) == TEXT
    assert len(documents) > 10
    assert all(document.endswith("\n") for document in documents)
    pieces = cut_to_size(TEXT, 10)
    assert all(len(piece.encode("utf-8")) <= 10 for piece in pieces)
    assert cut_to_size(TEXT, 10, 25) == ["One line.\r", "\nAnother l", "ine, "]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_mode_gives_ids_or_text(mode: str, threads: int, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(SEPARATOR.join([TEXT, TEXT]), encoding="utf-8", newline="")
    inputs = Inputs(path, tokenizer.encode)
    task = job(side(tokenizer), mode, inputs, threads)
    task.run()
    if mode.startswith("decode"):
        assert bytes(task.outcome().astype(np.uint8)) == (TEXT + TEXT).encode("utf-8")
    elif mode == "count":
        assert task.outcome() == [2 * len(tokenizer.encode(TEXT))]
    else:
        texts = inputs.calls(mode) if mode in CALL_SIZES else [TEXT]
        assert tokenizer.decode(task.outcome())[:100] == "".join(texts)[:100]
    assert task.size > 0


def test_a_mode_that_is_not_offered_is_skipped(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    inputs, bare = Inputs(path, tokenizer.encode), Side(tokenizer.encode, fixed_threads=True)
    for mode in ("numpy", "whole", "batch", "file", "decode-str", "decode-bytes"):
        with pytest.raises(SkippedError):
            job(bare, mode, inputs, 1)
    with pytest.raises(SkippedError, match="this number of threads"):
        job(replace(side(tokenizer), fixed_threads=True), "batch", inputs, 1)


@pytest.mark.sampled(0.25, "long tests")
def test_cases_are_compared_timed_and_recorded(
    suite: tuple[Suite, records.Record], capsys: pytest.CaptureFixture[str]
) -> None:
    runner, record = suite
    names = [("gigatoken", "numpy"), ("tiktoken", "list"), ("tokenizers", "list"), ("tokenizers", "batch")]
    names += [("tokie", "list"), *((OURS, mode) for mode in BASELINES)]
    runner.run(Case(peer, mode, "books", "cl100k", "warm", 1) for peer, mode in names)
    runner.run([Case(OURS, "batch", MIXED, "cl100k", "warm", 2)])
    about, *results = lines(record)
    assert about["machine"]["cores"] > 0
    assert set(about) >= {"time", "commit", "version", "peers", "options", "complete"}
    # A reason is recorded once for a package and a vocabulary.
    kinds = ["case", "wrong", "skipped", "wrong", *["case"] * len(BASELINES), "case"]
    assert [result["kind"] for result in results] == kinds
    timed = results[0]
    assert timed["case"] == ["gigatoken", "numpy", "books", "cl100k", "warm", "1t"]
    assert timed["turns"] == 2
    assert timed["bytes"] == 2 * len(TEXT.encode("utf-8")) + 1
    median, low, high = timed["ratio"]
    assert low <= median <= high
    # The end of a document, whose last id is wrong.
    assert "\\n' gives [0] instead of [" in results[1]["reason"]
    assert results[3]["reason"] == "it fails with: index out of bounds"
    assert "gigatoken/numpy/books/cl100k/warm/1t" in capsys.readouterr().out


@pytest.mark.sampled(0.25, "long tests")
def test_memory_and_growth_are_recorded(suite: tuple[Suite, records.Record], tokenizer: BPETokenizer) -> None:
    runner, record = suite
    runner.run_memory()
    hostile.measure(tokenizer, TEXT, record, sizes=(10, 1_000))
    assert {result["kind"] for result in lines(record)} == {"run", "memory", "skipped", "prose", "growth"}
    for result in lines(record):
        if result["kind"] == "memory":
            assert result["input"] > 0
            assert result["output"] > 0
        if result["kind"] in ("prose", "growth"):
            assert result["ns"] > 0


def test_the_newest_complete_run_is_taken(tmp_path: Path) -> None:
    assert records.newest("suite", tmp_path) is None
    for complete, note in [(True, "old"), (True, "new"), (False, "part")]:
        record = records.Record("suite", complete, {"note": note}, tmp_path)
        record.add("case", n=note)
        record.end()
        records.Record("loading", True, {}, tmp_path)
    # One that was interrupted is none to show either.
    records.Record("suite", True, {"note": "killed"}, tmp_path)
    run = records.newest("suite", tmp_path)
    assert run is not None
    assert run.about["options"] == {"note": "new"}
    assert run.of("case") == [{"kind": "case", "n": "new"}]


def test_pythons_are_measured_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tmp_path / "child.py"
    child.write_text("""print('["3.15.2", {"bpe_tokenizer": {"text to list": 7.4}}]')""")
    arguments = ["interpreters", "--rounds", "2", "--records", str(tmp_path), f"{sys.executable} {child}"]
    monkeypatch.setattr(sys, "argv", arguments)
    interpreters.main()
    run = records.newest("interpreters", tmp_path)
    assert run is not None
    assert run.complete
    expected = {"package": "bpe_tokenizer", "mode": "text to list", "speed": 7}
    assert run.of("python") == [{"kind": "python", "python": "3.15.2", **expected}]


def test_the_page_shows_corpora_and_a_run_without_a_faster_package(tmp_path: Path) -> None:
    record = records.Record("corpora", True, {}, tmp_path)
    each = {"ours": "2 s", "theirs": "1 s", "ratio": [0.5, 0.4, 0.6], "target": 0.8}
    record.add("compared", name="300 MB of parquet, a against b", **each)
    row = {"command": "count", "documents": "small", "format": "parquet", "seconds": 1.0}
    for size, peak in ((100_000_000, 200_000_000), (4_000_000_000, 210_000_000)):
        record.add("peak", size=size, peak=peak, **row)
    record.end()
    run = records.newest("corpora", tmp_path)
    assert run is not None
    text = "\n".join(page._corpora(run))
    assert "| 300 MB of parquet, a against b | 2 s | 1 s | **0.50** (0.40 to 0.60) | 0.8 |" in text
    assert "| count, small documents, parquet | 200 | 210 |" in text
    (nowhere,) = page.not_ahead([], [])
    assert nowhere.startswith("Nowhere")


def test_the_newest_python_is_that_of_the_tests() -> None:
    assert ".".join(map(str, records.newest_python())) == pythons.versions()[-1]


def test_the_pages_show_the_newest_records() -> None:
    """The page, the chart and the README are what the records give, which have a result of every kind."""
    for path, text in page.files().items():
        assert path.read_text(encoding="utf-8") == text, f"run python -m benchmarks.page: {path.name}"
    suite = records.newest("suite")
    assert suite is not None
    rows = page.readme_rows(suite, records.newest("training"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert set(rows.values()) <= set(readme)


def test_the_page_explains_every_mode_and_limit() -> None:
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert all(f"- `{mode}`: " in text for mode in set(MODES) - set(CALL_SIZES))
    limits = suite_cases.LIMITS
    assert all(f"{peer} {limits[peer] / 1e6:g} MB" in text for peer in PEERS if limits[peer] != 1_000_000)
    assert all(limits[peer] < limit for peer, limit in suite_cases.ALL_LIMITS.items())


def test_the_makefile_runs_every_program() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (bench,) = re.findall(r"^bench: .*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert re.findall(r"-m benchmarks(?:\.(\w+))?", bench) == ["", "training", "loading", "hostile", "page"]
    assert instructions._UPDATE.split()[:2] == ["make", "instructions"]
    assert "make instructions" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert instructions._UPDATE in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
