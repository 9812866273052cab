"""Counts that every engine must write into sorted files as one machine has them in memory."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.atomic import AtomicFile
from bpe_tokenizer.distributed import CountSettings
from bpe_tokenizer.distributed import count_files as on_files
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.train.piece_counts import PieceCounts
from distributed.cases import documents, write_files
from distributed.killing import kill_once, killed_after, killed_around

SETTINGS = CountSettings("cl100k", "NFC", ("<|end|>",))


@dataclass(frozen=True)
class Counting:
    """An engine that counts, and what to count.

    Args:
        count: The engine's function.
        rows: Makes a dataset of the engine from texts, in a number of parts.
        directory: A directory for files.
        texts: The texts.
        monkeypatch: Lets workers be killed.
    """

    count: Callable[..., PieceCounts]
    rows: Callable[[list[Any], int], Any]
    directory: Path
    texts: list[str]
    monkeypatch: pytest.MonkeyPatch


def mixed_files(directory: Path, texts: list[str]) -> list[Path]:
    """Files of several kinds."""
    directory.mkdir()
    (directory / "a.txt").write_text(texts[0], encoding="utf-8", newline="")
    (directory / "b.txt.gz").write_bytes(gzip.compress(texts[1].encode()))
    rows = "".join(json.dumps({"text": text}) + "\n" for text in texts[2:]).encode()
    (directory / "c.jsonl").write_bytes(rows)
    (directory / "d.jsonl.gz").write_bytes(gzip.compress(rows))
    return sorted(directory.iterdir())


def check_files(output: Path, files: int | None = None) -> list[Path]:
    """The directory holds sorted files of counts whose pieces do not overlap, and nothing else."""
    assert sorted(path.name for path in output.iterdir() if path.suffix != ".counts") == [
        "manifest.json",
        "plan.json",
    ]
    paths = sorted(output.glob("*.counts"))
    assert files is None or 1 <= len(paths) <= files
    pieces = [[piece for piece, _ in PieceCounts.load(path).items()] for path in paths]
    together = [piece for part in pieces for piece in part]
    assert all(one < other for one, other in pairwise(together))
    return paths


def check_counts(engine: Counting) -> None:
    """Files of all kinds count as on one machine, and the files of counts train as the corpus does."""
    files = mixed_files(engine.directory / "corpus", engine.texts)
    local = SETTINGS.counts().add(files)
    output = engine.directory / "counts"
    options: dict[str, Any] = {"unit_bytes": 20_000, "output": output, "partitions": 3}
    assert engine.count(files, SETTINGS, **options) == local
    paths = check_files(output, 3)
    trained = BPETokenizer().train_from_counts(paths, 400, verbose=False, special_tokens=["<|end|>"])
    expected = BPETokenizer().train_from_counts(local, 400, verbose=False, special_tokens=["<|end|>"])
    assert trained.merges == expected.merges
    # It is finished, so nothing is done again.
    stamps = [path.stat().st_mtime_ns for path in paths]
    assert engine.count(files, SETTINGS, **options) == local
    assert [path.stat().st_mtime_ns for path in check_files(output)] == stamps


def check_killed_counting(engine: Counting) -> None:
    """Workers are killed before and after they write the file of a unit, and of a range of pieces."""
    kills = []
    for name in ("_count_unit", "merge_range"):
        records = [engine.directory / f"{name}-{when}" for when in ("before", "after")]
        work = killed_around(getattr(on_files, name), AtomicFile, "replace", *records)
        engine.monkeypatch.setattr(on_files, name, work)
        kills += records
    check_counts(engine)
    assert all(record.exists() for record in kills)


def check_rows_and_files(engine: Counting) -> None:
    """Rows and parts of texts count as on one machine, without a directory."""
    count, rows = engine.count, engine.rows
    texts = documents(engine.texts)
    assert count(rows(texts, 5), SETTINGS) == SETTINGS.counts().add(texts)
    assert count(rows([], 2), SETTINGS) == SETTINGS.counts()
    paths = write_files(engine.directory, texts[:20])
    local = SETTINGS.counts().add(paths, input_format="text")
    assert count(paths, SETTINGS, unit_bytes=40_000, input_format="text") == local
    assert count(str(paths[9]), SETTINGS) == SETTINGS.counts().add(paths[9])


def check_killed_counting_of_rows(engine: Counting) -> None:
    """A worker is killed when it has counts, or has written their file, and the engine has no result."""
    directory, work = engine.directory, on_files._count_rows
    for name, options in (("sent", {}), ("written", {"output": directory / "out", "partitions": 2})):
        killed = killed_after(work, kill_once(directory / name))
        engine.monkeypatch.setattr(on_files, "_count_rows", killed)
        counts = engine.count(engine.rows(engine.texts, 5), SETTINGS, **options)
        assert counts == SETTINGS.counts().add(engine.texts)
        assert int((directory / name).read_text()) != os.getpid()
    check_files(directory / "out", 2)


def check_bad_row(engine: Counting) -> None:
    """A bad row is named with its file, or all are listed, of any number."""
    files = mixed_files(engine.directory / "corpus", engine.texts)
    with files[2].open("ab") as file:
        file.write(b'{"text": 5}\n')
    row = len(engine.texts) - 1
    for options in ({}, {"output": engine.directory / "counts"}):
        with pytest.raises(CorpusError, match=rf"^[^\n]*c\.jsonl, row {row}\b[^\n]*$") as caught:
            engine.count(files, SETTINGS, **options)
        assert type(caught.value) is CorpusError
    with files[2].open("ab") as file:
        file.write(b'{"text": 5}\n' * 1500)
    skipped = engine.directory / "skipped"
    counts = engine.count(files, SETTINGS, on_error="skip", output=skipped)
    assert counts == SETTINGS.counts().add(files, on_error="skip")
    lines = (skipped / "skipped.jsonl").read_text(encoding="utf-8").splitlines()
    listed = [(line["file"], line["row"]) for line in map(json.loads, lines)]
    assert listed == [("c.jsonl", row + number) for number in range(1501)]


COUNT_CHECKS = [check_killed_counting, check_rows_and_files, check_killed_counting_of_rows, check_bad_row]
