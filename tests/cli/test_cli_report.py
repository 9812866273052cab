"""`bpe-tokenizer report` and `bpe-tokenizer compare`: what they print, write and refuse."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from command_line import TextResult, TextRun

TEXT = "low low low lower lowest newest widest, don't 123 naïve <|end|>\n" * 5


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# The texts hold the special token of a tokenizer, as text.
pytestmark = pytest.mark.filterwarnings("ignore:.*a usual separator of documents")


@pytest.fixture
def run(run_text: TextRun) -> TextRun:
    return run_text


@pytest.fixture
def small(tmp_path: Path) -> Path:
    tokenizer = BPETokenizer("gpt2", None).train(TEXT, 280, special_tokens=["<|end|>"], verbose=False)
    tokenizer.save(tmp_path / "small")
    return tmp_path / "small"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    BPETokenizer("cl100k").train(TEXT, 300, verbose=False).save(tmp_path / "large")
    return tmp_path / "large"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return path


def test_report_prints_tables(run: TextRun, small: Path, corpus: Path) -> None:
    short = run("report", "--tokenizer", small, "--corpus", corpus).out
    assert len(short.splitlines()) < 30
    code, out, err = run("report", "--tokenizer", small, "--corpus", corpus, "--all")
    assert (code, err) == (0, "")
    assert out.startswith(short)
    summary, first = out.split("\n\n")[:2]
    assert summary.startswith(f"small encodes {len(TEXT.encode())} bytes as ")
    overview = [line.split() for line in first.splitlines()]
    assert ["tokens", str(len(BPETokenizer.load(small).encode(TEXT)))] in overview
    for title in ("Overview", "Files", "Scripts", "Token lengths", "Rank and frequency", "Coverage"):
        assert f"{title}\n" in out
    assert out.endswith("\n")
    assert not out.endswith("\n\n")
    assert "\x1b" not in out


def test_report_as_json(run: TextRun, small: Path, corpus: Path) -> None:
    code, out, err = run(
        "report", "--tokenizer", small, "--corpus", corpus, "-", "--json", stdin=b"new wow\n"
    )
    assert (code, err) == (0, "")
    facts = json.loads(out)
    tokenizer = BPETokenizer.load(small)
    assert facts["tokenizer"] == small.name
    assert [each["name"] for each in facts["files"]] == [corpus.name, "standard input"]
    assert [each["tokens"] for each in facts["files"]] == [
        len(tokenizer.encode(TEXT)),
        len(tokenizer.encode("new wow\n")),
    ]
    assert facts["corpus"]["documents"] == 2
    assert facts["files"][1]["words"] == 2
    assert [each["script"] for each in facts["scripts"]] == ["Latin"]
    assert facts["compression"][0]["vocab_size"] == 256
    assert facts["compression"][0]["tokens"] == facts["corpus"]["bytes"]
    assert facts["compression"][-1]["tokens"] == facts["corpus"]["tokens"]
    assert tokenizer.special_tokens["<|end|>"] not in facts["unused"]["ids"]


def test_under_used_is_what_the_command_line_says(run: TextRun, small: Path, corpus: Path) -> None:
    arguments = ("report", "--tokenizer", small, "--corpus", corpus, "--json", "--under-used")
    few, many = (json.loads(run(*arguments, n).out)["under_used"] for n in (1, 6))
    assert (few["count"], many["below"]) == (0, 6)
    assert many["count"] == len(many["ids"]) > 0


def test_report_saves_tables_and_plots(run: TextRun, small: Path, corpus: Path, tmp_path: Path) -> None:
    result = run("report", "--tokenizer", small, "--corpus", corpus, "--save", tmp_path / "out")
    assert result == TextResult(0, f"report saved in {tmp_path / 'out'}\n", "")
    assert {".csv", ".tex", ".svg"} <= {path.suffix for path in (tmp_path / "out").iterdir()}


def test_report_writes_a_page(run: TextRun, small: Path, corpus: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = run("report", "--tokenizer", small, "--corpus", corpus, "--html", page)
    assert result == TextResult(0, f"report saved in {page}\n", "")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.count("<svg ") == 8
    assert str(tmp_path) not in text
    result = run("report", "--tokenizer", small, "--corpus", corpus, "--html", page, "--json")
    assert json.loads(result.out)["corpus"]["documents"] == 1
    assert page.read_text(encoding="utf-8") == text


def test_compare_prints_both_side_by_side(run: TextRun, small: Path, large: Path, corpus: Path) -> None:
    code, out, err = run("compare", small, large, "--corpus", corpus, "--all")
    assert (code, err) == (0, "")
    summary, first = out.split("\n\n")[:2]
    assert summary.startswith("large needs ")
    overview = [line.split() for line in first.splitlines()]
    assert overview[1] == ["figure", "small", "large"]
    counts = [str(len(BPETokenizer.load(each).encode(TEXT))) for each in (small, large)]
    assert ["tokens", *counts] in overview
    assert "Lines with the largest differences\n" in out
    assert "Tokens of small that large cuts\n" in out
    assert "Tokens of large that small cuts\n" in out


def test_compare_as_json_and_as_a_page(
    run: TextRun, small: Path, large: Path, corpus: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    result = run(
        "compare", small, large, small, "--corpus", "-", "--json", "--html", page, stdin=TEXT.encode()
    )
    assert (result.code, result.err) == (0, "")
    facts = json.loads(result.out)
    first, second, third = facts["tokenizers"]
    assert [each["name"] for each in facts["tokenizers"]] == ["small", "large", "small (2)"]
    assert {**first, "name": "", "summary": ""} == {**third, "name": "", "summary": ""}
    assert facts["summary"][0].startswith("large needs ")
    assert first["corpus"]["tokens"] > second["corpus"]["tokens"]
    found = facts["disagreements"]
    assert found["largest_differences"][0]["file"] == "standard input"
    pairs = [(each["tokens_of"], each["cut_by"]) for each in found["cuts"]]
    assert pairs == [("small", "large"), ("large", "small"), ("small", "small (2)"), ("small (2)", "small")]
    narrow = page.read_text(encoding="utf-8").split('<div class="bpe-narrow">')[1:]
    # A legend of a plot has the first name at the same place.
    assert sum('<text x="34.0" y="13.0"' in each.partition("</svg>")[0] for each in narrow) == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_corpus_may_be_a_named_pipe(run: TextRun, small: Path, large: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(TEXT,), kwargs={"encoding": "utf-8"})
    writer.start()
    result = run("compare", small, large, "--corpus", pipe, "--json")
    writer.join(timeout=200)
    assert [each["corpus"]["bytes"] for each in json.loads(result.out)["tokenizers"]] == [
        len(TEXT.encode())
    ] * 2
    assert json.loads(result.out)["tokenizers"][0]["files"][0]["name"] == pipe.name


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["report", "--tokenizer", "{small}"], 2, "--corpus"),
        (["report", "--tokenizer", "{small}", "--corpus", "nowhere"], 1, "there is no file nowhere"),
        (["report", "--tokenizer", "{small}", "--corpus", "{tmp}/none/*"], 1, "no file matches"),
        (["report", "--tokenizer", "{small}", "--corpus", "-", "-"], 1, "only once"),
        (["report", "--tokenizer", "{small}", "--corpus", "{bad}"], 1, "byte 0xff at offset 2"),
        (["report", "--tokenizer", "{small}", "--corpus", "-", "--under-used", "0"], 2, "--under-used"),
        (["report", "--tokenizer", "{small}", "--corpus", "-", "--reference", "x"], 1, "reference 'x'"),
        (["compare", "{small}", "--corpus", "-"], 2, "at least two"),
        (["compare", "{small}", "{small}", "--corpus", "-", "--reference", "x"], 1, "reference 'x'"),
        (["compare", "{small}", "nowhere", "--corpus", "-"], 1, "nowhere"),
    ],
)
def test_errors_are_one_line(
    run: TextRun, small: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "bad").write_bytes(b"ab\xff")
    result = run(*(each.format(small=small, tmp=tmp_path, bad=tmp_path / "bad") for each in arguments))
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert "Traceback" not in result.err
    assert code == 2 or result.err.count("\n") == 1


def test_progress_is_for_terminals_only(
    run: TextRun, small: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("report", "--tokenizer", small, "--corpus", corpus)
    silent = run(*arguments)
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run(*arguments).out == silent.out
    assert "Reading" in terminal.getvalue()
