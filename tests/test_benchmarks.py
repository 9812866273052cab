"""The benchmark suite's own logic, with packages that are made up: no time is asserted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

# `python -m pytest` finds it; a bare `pytest` does not look beside `tests`.
pytest.importorskip("benchmarks")

from benchmarks import chart, page, records
from benchmarks.cases import CORPORA, MODES, Case, declared, select
from benchmarks.inputs import SEPARATOR, cut_at_lines, cut_to_size
from benchmarks.jobs import Inputs, job
from benchmarks.measure import Spread, in_turn, seconds, spread
from benchmarks.peers import OURS, PEERS, Side, SkippedError
from benchmarks.suite import Suite
from benchmarks.vocabularies import VOCABULARIES, Vocabulary

from bpe_tokenizer import BPETokenizer

DOCS = Path(__file__).parents[1] / "docs"
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
    )


@pytest.fixture
def loader(tokenizer: BPETokenizer) -> Callable[[str, Vocabulary], Side]:
    """Load ours; one that agrees, one that is wrong, and one that refuses."""

    def load(package: str, vocabulary: Vocabulary) -> Side:
        # A process of its own loads ours as it is, so the suite must not think that it has more.
        ours = replace(side(tokenizer), files=None)
        if package == "tokenizers":
            raise SkippedError("tokenizers is not installed")
        if package == "tiktoken":
            return replace(ours, to_list=lambda text: [*tokenizer.encode(text)[:-1], 0])
        return ours

    return load


@pytest.fixture
def suite(
    tmp_path: Path,
    loader: Callable[[str, Vocabulary], Side],
    tokenizer: BPETokenizer,
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
    assert {case.corpus for case in cases} == set(CORPORA)
    assert {case.vocabulary for case in cases} == set(VOCABULARIES)
    assert {case.threads for case in cases} == {1, 2}
    for vocabulary in VOCABULARIES:
        for corpus in CORPORA:
            assert Case("gigatoken", "numpy", corpus, vocabulary, "cold", 1) in cases
    assert 0 < len(declared(quick=True)) < len(cases) / 2
    assert {case.corpus for case in declared(["mine"])} == {"mine"}


def test_cases_are_chosen_by_the_parts_of_their_names() -> None:
    cases = declared()
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


def test_spread_and_turns() -> None:
    assert spread([3.0, 1.0, 2.0, 9.0]) == Spread(2.5, 1.0, 9.0)
    order: list[str] = []

    def run(name: str, time: float) -> Callable[[], float]:
        return lambda: order.append(name) or time  # type: ignore[func-returns-value]

    assert in_turn(run("a", 1.0), run("b", 2.0), 3) == [(1.0, 2.0)] * 3
    assert order == ["a", "b"] * 3
    assert seconds(lambda: None) >= 0


def test_texts_are_cut_without_loss() -> None:
    documents = cut_at_lines(TEXT, 100)
    assert "".join(documents) == TEXT
    assert len(documents) > 10
    assert all(document.endswith("\n") for document in documents)
    pieces = cut_to_size(TEXT, 10)
    assert all(len(piece.encode("utf-8")) <= 10 for piece in pieces)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_mode_gives_the_ids_or_the_text(
    mode: str, threads: int, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text(SEPARATOR.join([TEXT, TEXT]), encoding="utf-8", newline="")
    task = job(side(tokenizer), mode, Inputs(path, tokenizer.encode), threads)
    task.run()
    if mode.startswith("decode"):
        assert bytes(task.outcome().astype(np.uint8)) == (TEXT + TEXT).encode("utf-8")
    else:
        assert tokenizer.decode(task.outcome())[:100] == TEXT[:100]
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


def test_cases_are_compared_timed_and_recorded(
    suite: tuple[Suite, records.Record], capsys: pytest.CaptureFixture[str]
) -> None:
    runner, record = suite
    names = [("gigatoken", "numpy"), ("tiktoken", "list"), ("tokenizers", "list"), ("tokenizers", "batch")]
    runner.run(Case(peer, mode, "books", "cl100k", "warm", 1) for peer, mode in names)
    runner.run([Case(OURS, "batch", "books", "cl100k", "warm", 2)])
    about, *results = lines(record)
    assert about["machine"]["cores"] > 0
    assert set(about) >= {"time", "commit", "version", "peers", "options", "complete"}
    # A reason is recorded once for a package and a vocabulary.
    assert [result["kind"] for result in results] == ["case", "wrong", "skipped", "case"]
    timed = results[0]
    assert timed["case"] == ["gigatoken", "numpy", "books", "cl100k", "warm", "1t"]
    assert timed["turns"] == 2
    assert timed["bytes"] == 2 * len(TEXT.encode("utf-8")) + 1
    median, low, high = timed["ratio"]
    assert low <= median <= high
    assert "differs from ours, first at index" in results[1]["reason"]
    assert "gigatoken/numpy/books/cl100k/warm/1t" in capsys.readouterr().out


def test_memory_and_hard_input_are_recorded(
    suite: tuple[Suite, records.Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, record = suite
    monkeypatch.setattr("benchmarks.suite._HOSTILE_UNITS", 1_000)
    runner.run_ours()
    kinds = {result["kind"] for result in lines(record)}
    assert {"memory", "hostile"} < kinds
    for result in lines(record):
        if result["kind"] == "memory":
            assert result["input"] > 0
            assert result["output"] > 0


def results() -> list[dict[str, Any]]:
    """Results of a few cases, as they are recorded."""
    return [
        {
            "kind": "case",
            "case": Case(peer, mode, corpus, "cl100k", state, 1).parts,
            "bytes": 1_000,
            "turns": 5,
            "ours": 100.0 + number,
            "theirs": 50.0,
            "ratio": [2.0, 1.9, 2.1],
        }
        for number, peer in enumerate(("gigatoken", "tiktoken"))
        for mode in ("list", "numpy")
        for corpus in ("books", "zh")
        for state in ("warm", "cold")
    ]


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


def test_the_page_and_the_chart_show_the_results(tmp_path: Path) -> None:
    record = records.Record("suite", False, {"turns": 5}, tmp_path)
    for result in results():
        record.add(**result)
    record.add(
        "memory", case=Case(OURS, "whole", "zh", "cl100k", "memory", 1).parts, input=5, output=6, extra=7
    )
    record.add("hostile", input="spaces", ns=9.0, times_prose=1.5)
    record.add("skipped", case=["quicktok"], reason="no such vocabulary")
    record.add("wrong", case=["other"], reason="differs")
    training = records.Record("training", True, {}, tmp_path)
    training.add("compared", name="50 MB", ours="1 s", theirs="9 s", ratio=[9.0, 8.0, 10.0])
    growth = records.Record("worst_case", True, {}, tmp_path)
    growth.add("growth", input="emoji", units=10, ns=3.0)
    growth.add("growth", input="spaces", units=100, ns=4.0)
    run = records.newest("suite", tmp_path)
    others = [records.newest(name, tmp_path) for name in ("training", "worst_case")]
    assert run is not None
    found = [other for other in others if other is not None]
    text = page.summary(run, found) + page.detail(run, found)
    for part in (
        "| numpy | cold | 1 |",
        "| **2.00** (2.00 to 2.00) |",
        "| cl100k, zh | **2.00** (1.90 to 2.10), 100 : 50 | **2.00** (1.90 to 2.10), 101 : 50 |",
        "no figures to quote",
        "no such vocabulary",
        "differs",
        "**9.00** (8.00 to 10.00)",
        "| emoji | 3.0 |  |",
    ):
        assert part in text
    # Every row of a table has as many cells as its head.
    for table in text.split("\n\n"):
        rows = [line for line in table.splitlines() if line.startswith("|")]
        assert len({row.count("|") for row in rows}) <= 1

    written = page.between_markers(f"before\n{page._BEGIN}\nold\n{page._END}\nafter\n", text)
    assert page.between_markers(written, text) == written
    assert written.startswith("before\n")
    assert written.endswith("\nafter\n")
    assert "\nold\n" not in written
    with pytest.raises(SystemExit, match="lacks"):
        page.between_markers("no markers", text)

    speeds = chart.speeds(run.of("case"), "list", "cl100k")
    assert speeds["books"] == {OURS: 100.5, "gigatoken": 50.0, "tiktoken": 50.0}
    picture = ElementTree.fromstring(chart.draw({"to <list>": speeds, "nothing": {}}))
    bars = [each for each in picture.iter() if each.tag.endswith("rect")]
    assert len(bars) == 6 + 2 * 3


@pytest.mark.parametrize("name", ["benchmarks.md", "benchmarks-detail.md"])
def test_the_pages_have_their_markers(name: str) -> None:
    assert page.between_markers((DOCS / name).read_text(encoding="utf-8"), "")


def test_the_detail_page_explains_every_mode() -> None:
    text = (DOCS / "benchmarks-detail.md").read_text(encoding="utf-8")
    assert all(f"`{mode}`" in text for mode in MODES)
