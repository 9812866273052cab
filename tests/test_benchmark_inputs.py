"""What the benchmarks measure with: counts of instructions, texts of a script, and corpora."""

from __future__ import annotations

import argparse
import json
import lzma
import zipfile
from pathlib import Path
from typing import Any

import pytest

# `python -m pytest` finds it; a bare `pytest` does not look beside `tests`.
pytest.importorskip("benchmarks")

from benchmarks import corpora, corpora_inputs, corpora_sides, instructions, records, scripts

ROOT = Path(__file__).parents[1]


def counts(decode: float, rustc: str = "rustc 1") -> dict[str, Any]:
    return {"tools": {"rustc": rustc}, "per_byte": {"encode": 50.0, "decode": decode}}


@pytest.mark.parametrize(
    ("counted", "expected", "fails", "said"),
    [
        (counts(10.0), counts(10.0), False, None),
        (counts(10.29), counts(10.0), False, None),
        (counts(10.31), counts(10.0), True, "FAILED: more than 3%"),
        (counts(9.6), counts(10.0), False, "fewer instructions: decode"),
        (counts(20.0), counts(10.0, "rustc 2"), False, "not compared: the file is of rustc 2"),
        (counts(10.0), {"tools": {"rustc": "rustc 1"}, "per_byte": {"encode": 50.0}}, True, "not in both"),
    ],
)
def test_more_instructions_fail(
    counted: dict[str, Any], expected: dict[str, Any], fails: bool, said: str | None
) -> None:
    lines, failed = instructions.compare(counted, expected)
    assert failed == fails
    assert len(lines) == 3 + (said is not None)
    assert said is None or said in lines[-1]


def test_the_expected_counts_are_those_of_the_program() -> None:
    expected = json.loads((ROOT / "benchmarks" / "instructions.json").read_text(encoding="utf-8"))
    assert set(expected["tools"]) == {"rustc", "valgrind"}
    program = (ROOT / "crates/core/examples/instructions.rs").read_text(encoding="utf-8")
    for name in expected["per_byte"]:
        assert f'"{name}"' in program or name.startswith("encode ")
    assert all(value > 0 for value in expected["per_byte"].values())


def test_texts_of_a_script(tmp_path: Path) -> None:
    long = "日本語のテキストがここにあります。これは長い行です。"
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "page.html").write_text(f"<p>{long}</p><p>短い行</p><p>{'English ' * 9}</p>", "utf-8")
    with zipfile.ZipFile(tmp_path / "a" / "language.xpi", "w") as archive:
        archive.writestr("menu.ftl", f"again = {long}\nother = {long[::-1]}\n")
        archive.writestr("menu.js", long * 2)
    size = scripts.write_script(scripts.SCRIPTS["kana"], tmp_path / "a", tmp_path / "kana.txt")
    assert (tmp_path / "kana.txt").read_text("utf-8") == f"{long}\n{long[::-1]}"
    assert size == (tmp_path / "kana.txt").stat().st_size


@pytest.fixture
def fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of corpora that are small."""
    directory = tmp_path / "fixtures"
    (directory / "corpora").mkdir(parents=True)
    for name in ("books", "code", "multi", "zh"):
        lines = "".join(f"{name}, line {number}: naïve 日本\n" for number in range(2000))
        (directory / "corpora" / f"{name}.txt.xz").write_bytes(lzma.compress(lines.encode()))
    monkeypatch.setenv("BPE_TOKENIZER_FIXTURES", str(directory))
    return directory


@pytest.mark.parametrize("kind", corpora_inputs.KINDS)
def test_corpora_are_the_same_each_time(kind: str, fixtures: Path) -> None:
    made = [*corpora_inputs.documents(kind, 500_000)]
    assert made == [*corpora_inputs.documents(kind, 500_000)]
    size = sum(len(document.encode()) for document in made)
    assert 500_000 <= size <= 1_600_000
    assert (len(made) == 1) == (kind == "single")


@pytest.mark.parametrize("form", ["jsonl", "jsonl.zst", "parquet", "txt"])
def test_a_corpus_holds_its_documents(form: str, tmp_path: Path) -> None:
    for package in {"jsonl.zst": ["zstandard"], "parquet": ["pyarrow"]}.get(form, []):
        pytest.importorskip(package)
    documents = ["one\ntwo", "日本 \u2028 naïve", ""]
    path = tmp_path / f"corpus.{form}"
    corpora_inputs.write_corpus(documents, path)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    if form == "txt":
        assert path.read_text("utf-8").split("\n\n") == [*documents, ""]
    else:
        if form != "parquet":
            pytest.importorskip("orjson")
        assert [*corpora_sides.texts_of(path)] == documents


def test_sides_run_in_turn_and_must_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    order: list[str] = []
    results = {"a": (2.0, "x"), "b": (4.0, "x"), "c": (1.0, "y")}

    def run_side(side: str, corpus: Path, work: Path) -> dict[str, Any] | None:
        order.append(side)
        if side not in results:
            return None
        taken, digest = results[side]
        return {"seconds": taken, "digest": digest, "size": 3, "peak": 5_000_000}

    monkeypatch.setattr(corpora, "_run_side", run_side)
    record = records.Record("corpora", False, {}, tmp_path)
    options = argparse.Namespace(turns=3, work=tmp_path)
    wanted = [corpora.Comparison("a", "b", 1.5), corpora.Comparison("a", "absent", 1.5)]
    corpora.compare(wanted, tmp_path, "a case", options, record)
    assert order == ["a", "b", "absent", "b", "a", "a", "b"]
    found = [
        line
        for line in map(json.loads, record.path.read_text(encoding="utf-8").splitlines())
        if line["kind"] == "compared"
    ]
    assert [(each["name"], each["ratio"]) for each in found] == [("a case, a against b", [2.0, 2.0, 2.0])]
    assert "a case, a against b: 2.00 s, 5 MB against 4.00 s, 5 MB: 2.00 times" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="the results differ"):
        corpora.compare([corpora.Comparison("a", "c", 1)], tmp_path, "a case", options, record)


def test_every_compared_side_exists() -> None:
    every = [*corpora._SPEED, *corpora._SLOW, *(each for part in corpora._ENGINES.values() for each in part)]
    assert {side for each in every for side in (each.ours, each.theirs)} == set(corpora_sides.SIDES)
    assert {kind for kind, _ in corpora._MEMORY} <= set(corpora_inputs.KINDS)
    assert set(corpora._ENGINES) < set(corpora.PARTS)
    assert {*corpora.COMMANDS} == {"train", "count", "tokenize-corpus", "report", "compare"}
