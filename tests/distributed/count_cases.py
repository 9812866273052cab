"""Counts that every engine must write into sorted files as one machine has them in memory."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.distributed import CountSettings
from bpe_tokenizer.distributed import count_files as on_files
from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.train.piece_counts import PieceCounts
from distributed.cases import documents, write_files
from distributed.killing import kill_once, killed_after

Count = Callable[..., PieceCounts]
# Makes a dataset of an engine from texts, in a number of parts.
Rows = Callable[[list[Any], int], Any]
SETTINGS = CountSettings("cl100k", "NFC", ("<|end|>",))


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


def check_counts(count: Count, directory: Path, texts: list[str]) -> None:
    """Files of all kinds count as on one machine, and the files of counts train as the corpus does."""
    files = mixed_files(directory / "corpus", texts)
    local = SETTINGS.counts().add(files)
    output = directory / "counts"
    counts = count(files, SETTINGS, unit_bytes=20_000, output=output, partitions=3)
    assert counts == local
    paths = check_files(output, 3)
    trained = BPETokenizer().train_from_counts(paths, 400, verbose=False, special_tokens=["<|end|>"])
    expected = BPETokenizer().train_from_counts(local, 400, verbose=False, special_tokens=["<|end|>"])
    assert trained.merges == expected.merges
    # It is finished, so nothing is done again.
    stamps = [path.stat().st_mtime_ns for path in paths]
    again = count(files, SETTINGS, unit_bytes=20_000, output=output, partitions=3)
    assert again == local
    assert [path.stat().st_mtime_ns for path in check_files(output)] == stamps


def check_rows_and_files(count: Count, rows: Rows, directory: Path, texts: list[str]) -> None:
    """Rows in any number of parts and parts of texts count as on one machine, without a directory."""
    texts = documents(texts)
    for parts in (1, 5):
        assert count(rows(texts, parts), SETTINGS) == SETTINGS.counts().add(texts)
    assert count(rows([], 2), SETTINGS) == SETTINGS.counts()
    paths = write_files(directory, texts[:20])
    local = SETTINGS.counts().add(paths, input_format="text")
    assert count(paths, SETTINGS, unit_bytes=40_000, input_format="text") == local
    assert count(str(paths[9]), SETTINGS) == SETTINGS.counts().add(paths[9])
    with pytest.raises(OptionError, match="no inputs"):
        count([], SETTINGS)


def check_bad_row(count: Count, directory: Path, texts: list[str]) -> None:
    """A bad row is named with its file, or all are listed, of any number."""
    files = mixed_files(directory / "corpus", texts)
    with files[2].open("ab") as file:
        file.write(b'{"text": 5}\n')
    row = len(texts) - 1
    output = directory / "counts"
    for options in ({}, {"output": output}):
        with pytest.raises(CorpusError, match=rf"^[^\n]*c\.jsonl, row {row}\b[^\n]*$") as caught:
            count(files, SETTINGS, **options)
        assert type(caught.value) is CorpusError
    with files[2].open("ab") as file:
        file.write(b'{"text": 5}\n' * 1500)
    counts = count(files, SETTINGS, on_error="skip", output=directory / "skipped")
    assert counts == SETTINGS.counts().add(files, on_error="skip")
    lines = (directory / "skipped" / "skipped.jsonl").read_text(encoding="utf-8").splitlines()
    listed = [(line["file"], line["row"]) for line in map(json.loads, lines)]
    assert listed == [("c.jsonl", row + number) for number in range(1501)]


def check_killed_counting(
    count: Count, directory: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers are killed before and after they write the file of a unit, and of a range of pieces."""
    files = mixed_files(directory / "corpus", texts)
    records = [directory / str(number) for number in range(4)]
    for number, name in enumerate(("_count_unit", "merge_range")):
        before, after = (kill_once(record) for record in records[2 * number : 2 * number + 2])
        monkeypatch.setattr(on_files, name, _killing(getattr(on_files, name), before, after))
    counts = count(files, SETTINGS, unit_bytes=20_000, output=directory / "counts", partitions=3)
    assert all(record.exists() for record in records)
    assert counts == SETTINGS.counts().add(files)
    check_files(directory / "counts", 3)


def check_killed_counting_of_rows(
    count: Count, rows: Rows, directory: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed when it has counts, or has written their file, and the engine has no result."""
    work = on_files._count_rows
    for name, options in (("sent", {}), ("written", {"output": directory / "out", "partitions": 2})):
        monkeypatch.setattr(on_files, "_count_rows", killed_after(work, kill_once(directory / name)))
        assert count(rows(texts, 5), SETTINGS, **options) == SETTINGS.counts().add(texts)
        assert int((directory / name).read_text()) != os.getpid()
    check_files(directory / "out", 2)


def _killing(
    work: Callable[[Any, Any], Any], before: Callable[[], None], after: Callable[[], None]
) -> Callable[[Any, Any], Any]:
    def run(shared: Any, argument: Any) -> Any:
        from bpe_tokenizer.atomic import AtomicFile

        replace = AtomicFile.replace

        def replaces(file: AtomicFile) -> None:
            before()
            replace(file)
            after()

        AtomicFile.replace = replaces  # type: ignore[method-assign, assignment]
        try:
            return work(shared, argument)
        finally:
            AtomicFile.replace = replace  # type: ignore[method-assign]

    return run
