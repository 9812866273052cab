"""Sorted files of counts on an engine whose tasks fail, without a real engine."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bpe_tokenizer.distributed import CountSettings
from bpe_tokenizer.distributed import count_files as on_files
from bpe_tokenizer.distributed.count_files import count_on_engine, merge_range, piece_ranges, save_unit
from bpe_tokenizer.distributed.count_units import CountWork, count_unit, plan_count
from bpe_tokenizer.errors import CorpusError, OptionError, WriteError
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock
from bpe_tokenizer.readers import ReadOptions, find_inputs
from bpe_tokenizer.train.piece_counts import PieceCounts, merged_counts
from distributed.cases import documents, write_files
from distributed.count_cases import (
    SETTINGS,
    Counting,
    check_bad_row,
    check_counts,
    check_files,
    check_rows_and_files,
    mixed_files,
)
from distributed.local_tasks import LocalTasks

WHOLE = ReadOptions(documents="file")


def count(
    source: Any,
    settings: CountSettings,
    *,
    output: Path | None = None,
    tasks: LocalTasks | None = None,
    **options: Any,
) -> PieceCounts:
    """As `count_with_ray`."""
    return count_on_engine(tasks or LocalTasks(), source, settings, output, options)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files have several places, and are enough for several ranges."""
    monkeypatch.setattr(on_files, "_MIN_SPACING", 100)
    monkeypatch.setattr(on_files, "_PARTITION_BYTES", 10_000)


@pytest.fixture
def texts(stdlib_texts: list[str]) -> list[str]:
    return documents(stdlib_texts)[:100]


def in_parts(texts: list[Any], parts: int) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    columns = [pyarrow.array(texts[start::parts], pyarrow.string()) for start in range(parts)]
    return [[pyarrow.record_batch({"text": column})] for column in columns]


@pytest.mark.parametrize("check", [check_rows_and_files, check_counts, check_bad_row])
def test_what_every_engine_counts(
    check: Callable[[Counting], None], tmp_path: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(Counting(count, in_parts, tmp_path, [text for text in texts if text], monkeypatch))


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("partitions", [1, 2, 50, None])
def test_any_number_of_ranges(partitions: int | None, tmp_path: Path, texts: list[str]) -> None:
    (tmp_path / "corpus").mkdir()
    paths = write_files(tmp_path / "corpus", texts[:20])
    tasks = LocalTasks(7, failures=0.3)
    options: dict[str, Any] = {"output": tmp_path / "out", "input_format": "text"}
    counts = count(paths, SETTINGS, partitions=partitions, unit_bytes=9_999, tasks=tasks, **options)
    assert counts == SETTINGS.counts().add(paths, input_format="text")
    assert counts.documents == len(paths)
    made = check_files(tmp_path / "out", partitions)
    assert len(made) == partitions or partitions in (50, None)
    sizes = [path.stat().st_size for path in made]
    assert partitions is not None or len(made) > 3
    if len(made) > 1:
        assert max(sizes) < 3 * sum(sizes) / len(sizes) + 3000


@pytest.mark.sampled(0.25, "long tests")
def test_a_thousand_tasks_with_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    choose = random.Random(0)
    for number in range(1000):
        words = " ".join(f"word{choose.randrange(3000)}" for _ in range(20))
        (corpus / f"{number:04}.txt").write_text(words, encoding="utf-8")
    tasks = LocalTasks(1, failures=0.2)
    settings = CountSettings("gpt2", None)
    counts = count(corpus, settings, unit_bytes=170, output=tmp_path / "out", tasks=tasks)
    assert tasks.attempts > 1200
    assert counts == settings.counts().add(corpus)
    check_files(tmp_path / "out")


@hypothesis_settings(max_examples=20)
@given(
    parts=st.lists(
        st.lists(st.text("ab \u3042", min_size=1, max_size=12), max_size=40), min_size=1, max_size=6
    ),
    partitions=st.integers(1, 9),
)
def test_ranges_tile_the_pieces(
    parts: list[list[str]], partitions: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("ranges")
    work = CountWork(CountSettings("gpt2", None), None, str(directory))
    units = [
        save_unit(work.counts().add(part), directory / f"{number}.counts")
        for number, part in enumerate(parts)
    ]
    ranges = piece_ranges(units, partitions)
    assert len(ranges) <= partitions
    paths = [directory / merge_range(work, each) for each in ranges]
    assert merged_counts(paths) == work.counts().add([text for part in parts for text in part])


def test_a_run_that_was_killed_goes_on(
    tmp_path: Path, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = mixed_files(tmp_path / "corpus", [text for text in texts if text])
    output = tmp_path / "out"
    counted: list[int] = []
    interrupt_at = [3]

    def interrupted(work: Any, unit: Any) -> Any:
        if len(counted) == interrupt_at[0]:
            raise KeyboardInterrupt
        counted.append(1)
        return count_unit(work, unit)

    monkeypatch.setattr(on_files, "count_unit", interrupted)
    options: dict[str, Any] = {"unit_bytes": 20_000, "output": output}
    with pytest.raises(KeyboardInterrupt):
        count(files, SETTINGS, **options)
    assert not (output / "manifest.json").exists()
    with pytest.raises(OptionError, match=r"another run \(it differs in: unit_bytes\)"):
        count(files, SETTINGS, **{**options, "unit_bytes": 30_000})
    with pytest.raises(OptionError, match=r"another run \(it differs in: inputs \(removed: '[^']+'\)\)"):
        count(files[1:], SETTINGS, **options)
    done = len([*(output / "units").iterdir()])
    interrupt_at[0] = -1
    assert count(files, SETTINGS, **options) == SETTINGS.counts().add(files)
    units = plan_count(find_inputs(files), WHOLE, 20_000)
    assert len(counted) <= 3 + 2 * (len(units) - done)
    check_files(output)


def test_what_is_refused(tmp_path: Path) -> None:
    output = tmp_path / "out"
    with pytest.raises(OptionError, match="no inputs"):
        count([], SETTINGS)
    with pytest.raises(OptionError, match="on_error='skip' needs output"):
        count([], SETTINGS, on_error="skip")
    with pytest.raises(OptionError, match="standard input"):
        count("-", SETTINGS, output=output)
    with pytest.raises(CorpusError, match="there is no file"):
        count([tmp_path / "missing.txt"], SETTINGS, output=output)
    output.mkdir()
    (output / "a.txt").write_text("a", encoding="utf-8")
    with pytest.raises(OptionError, match=r"other files \(a.txt\)"):
        count(output / "a.txt", SETTINGS, output=output)
    path = (output / "a.txt").rename(tmp_path / "a.txt")
    with DirectoryLock(output, RUN_LOCK), pytest.raises(WriteError, match="is in use by"):
        count(path, SETTINGS, output=output)
    tokens = [f"<|special {number}|>" for number in range(20)]
    count(path, CountSettings(special_tokens=tokens), output=output)
    with pytest.raises(OptionError, match=r"another run \(it differs in: settings\)"):
        count(path, CountSettings(special_tokens=tokens[:-1]), output=output)


def test_counts_that_no_engine_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_files, "_MAX_SENT", 40)
    (tmp_path / "a.txt").write_text("low lower", encoding="utf-8")
    with pytest.raises(CorpusError, match="engines pass 2 GB: give output, a directory"):
        count(tmp_path / "a.txt", SETTINGS)
    assert count(tmp_path / "a.txt", SETTINGS, output=tmp_path / "out").documents == 1


def test_rows(tmp_path: Path, texts: list[str]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    batches = [pyarrow.RecordBatch.from_pydict({"t": texts[start::3]}) for start in range(3)]
    rows = [[batch.slice(0, 5), batch.slice(5)] for batch in batches] + [[]]
    expected = SETTINGS.counts().add(texts)
    tasks = LocalTasks(3, failures=0.3)
    options: dict[str, Any] = {"field": "t", "output": tmp_path / "out", "partitions": 4}
    assert count(rows, SETTINGS, tasks=tasks, **options) == expected
    check_files(tmp_path / "out", 4)
    with pytest.raises(OptionError, match="other files"):
        count(rows, SETTINGS, **options)
