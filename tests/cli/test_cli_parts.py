"""`tokenize-corpus` in parts, with events, and `merge-manifests`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from command_line import TextRun


@pytest.fixture
def run(run_text: TextRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TextRun:
    """Run the program in a directory with a tokenizer and a corpus of four lines of five bytes."""
    monkeypatch.chdir(tmp_path)
    tokenizer = BPETokenizer().train("low lower " * 3, 265, special_tokens=["<|eos|>"], verbose=False)
    tokenizer.save("saved")
    Path("c.txt").write_bytes(b"low1\nlow2\nlow3\nlow4\n")
    return run_text


OPTIONS = ("-t", "saved", "--corpus", "c.txt", "-o", "out", "--unit-size", "5", "--documents", "line")


def test_parts(run: TextRun) -> None:
    made = run("tokenize-corpus", *OPTIONS, "--part", 1, "--of", 3)
    assert (made.code, made.err) == (0, "")
    assert made.out == "1 document, 3 tokens (uint16) in out, 1 file\n"
    missing = run("merge-manifests", "out", "--of", 3)
    assert (missing.code, missing.out) == (1, "")
    assert "3 of 4 units are missing: 0, 2, 3" in missing.err
    assert "of the parts 0, 2 of 3" in missing.err
    for part in (2, 0):
        assert run("tokenize-corpus", *OPTIONS, "--part", part, "--of", 3, "-q") == (0, "", "")
    assert run("merge-manifests", "out") == (0, "4 documents, 12 tokens (uint16) in out, 4 files\n", "")
    assert run("merge-manifests", "out", "--verify", "-q") == (0, "", "")
    files = [f"out/tokens-{unit:05d}-00000.bin" for unit in range(4)]
    merged = json.loads(run("merge-manifests", "out", "--json").out)
    assert merged["files"] == files
    assert (merged["documents"], merged["tokens"], merged["skipped"]) == (4, 12, 0)
    again = run("tokenize-corpus", *OPTIONS, "--part", 0, "--of", 3, "--verify", "--json")
    assert json.loads(again.out)["kept"] == 2
    Path(files[2]).unlink()
    damaged = run("merge-manifests", "out").err
    assert "damaged (tokens-00002-00000.bin is not as it was written): 2; run their parts again" in damaged


def test_events(run: TextRun) -> None:
    made = run("tokenize-corpus", *OPTIONS, "--events", "--shuffle", 1)
    assert (made.code, made.err) == (0, "")
    events = [json.loads(line) for line in made.out.splitlines()]
    assert [event["event"] for event in events] == ["start", "shard", "end"]
    result = json.loads(run("tokenize-corpus", *OPTIONS, "--json", "--shuffle", 1).out)
    assert events[-1] == {"event": "end", **result, "kept": 0}
    Path("c.txt").write_bytes(b"\xff\n")
    made = run("tokenize-corpus", *OPTIONS, "--events", "--overwrite")
    assert made.code == 1
    events = [json.loads(line) for line in made.out.splitlines()]
    assert [event["event"] for event in events] == ["start", "error"]
    assert events[-1]["kind"] == "CorpusError"
    assert "c.txt, row 1" in events[-1]["message"]
    assert "c.txt, row 1" in made.err


@pytest.mark.parametrize(
    ("command", "arguments", "code", "said"),
    [
        ("tokenize-corpus", [*OPTIONS, "--part", "4", "--of", "4"], 1, "--part is 4; it must be from 0 to 3"),
        ("tokenize-corpus", [*OPTIONS, "--part", "0"], 1, "belong together"),
        (
            "tokenize-corpus",
            [*OPTIONS, "--unit-size", "x", "--part", "0", "--of", "1"],
            1,
            "--unit-size is 'x'",
        ),
        ("tokenize-corpus", [*OPTIONS, "--events", "--json"], 2, "either --events or --json"),
        ("tokenize-corpus", [*OPTIONS, "--shuffle", "-1"], 1, "--shuffle is -1"),
        ("merge-manifests", ["saved"], 1, "saved has no plan.json"),
        ("merge-manifests", ["missing"], 1, "missing has no plan.json"),
        ("merge-manifests", [], 2, "Missing argument 'DIR'"),
    ],
)
def test_errors(run: TextRun, command: str, arguments: list[str], code: int, said: str) -> None:
    result = run(command, *arguments)
    assert (result.code, result.out) == (code, "")
    assert said in " ".join(result.err.split())
