"""Events and progress of a run, for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import run_report
from bpe_tokenizer.corpus.run_report import Event, RunReport
from bpe_tokenizer.train.progress import ProgressBar
from line_documents import tokenize_corpus
from small_batches import patch_batches


def test_the_events_of_a_run(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_report, "_SECONDS", 0.0)
    patch_batches(3, monkeypatch)
    with corpus.open("ab") as file:
        file.write(b"\n\xff\nlow\n")
    events: list[Event] = []
    options: dict[str, Any] = {"shard_tokens": 40, "on_error": "skip", "on_event": events.append}
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, **options)
    size = corpus.stat().st_size
    assert json.loads(json.dumps(events)) == events
    sizes = {"inputs": 1, "total_bytes": size, "kept": 0}
    assert events[0] == {"event": "start", "output": str(tmp_path / "out"), **sizes}
    shards = [event for event in events if event["event"] == "shard"]
    assert [event["files"] for event in shards] == [[path.name] for path in made.files]
    assert sum(event["tokens"] for event in shards) == made.tokens
    (warning,) = [event for event in events if event["event"] == "warning"]
    assert (warning["file"], warning["row"]) == (str(corpus), 19)
    assert "row 19 is skipped: it is not UTF-8" in warning["message"]
    progress = [event for event in events if event["event"] == "progress"]
    assert len(progress) == 7
    last = progress[-1]
    assert (last["bytes"], last["total_bytes"]) == (size, size)
    assert (last["documents"], last["tokens"]) == (made.documents, made.tokens)
    assert {"seconds", "bytes_per_second", "tokens_per_second", "seconds_left"} < set(last)
    result = {**made._asdict(), "files": [str(path) for path in made.files]}
    assert events[-1] == {"event": "end", **result}
    events.clear()
    tokenize_corpus(corpus, tmp_path / "out", tokenizer, **options)
    assert [event["event"] for event in events] == ["start", "end"]
    assert events[0]["kept"] == len(made.files)


def test_the_events_of_a_part(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    events: list[Event] = []
    for kept in (False, True):
        events.clear()
        tokenize_corpus(
            corpus, tmp_path / "out", tokenizer, part=1, of=2, unit_bytes=80, on_event=events.append
        )
        units = [event for event in events if event["event"] == "unit"]
        assert [event["unit"] for event in units] == list(range(1, events[0]["all_units"], 2))
        assert {event["kept"] for event in units} == {kept}
        assert (events[0]["part"], events[0]["of"], events[0]["units"]) == (1, 2, len(units))
        assert events[-1]["tokens"] == sum(event["tokens"] for event in units)


def test_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    events: list[Event] = []
    report = RunReport(ProgressBar(None), events.append, 10_000)
    report.progress(0, 1000, 10, 100)  # What a resumed run finds done does not count as speed.
    now += 9.9
    report.progress(0, 2000, 20, 200)
    assert events == []
    now += 0.1
    report.progress(0, 3000, 30, 300)
    (event,) = events
    assert event == {
        "event": "progress",
        "bytes": 3000,
        "total_bytes": 10_000,
        "documents": 30,
        "tokens": 300,
        "seconds": 10.0,
        "bytes_per_second": 200,
        "tokens_per_second": 20,
        "seconds_left": 35.0,
    }
