"""Spark counts and encodes what one machine does, also when its workers are killed.

`make test-spark` installs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.distributed import CountSettings, count_with_spark, encode_with_spark, tokenize_with_spark
from bpe_tokenizer.distributed import spark as on_spark
from bpe_tokenizer.distributed.count_files import count_batches
from bpe_tokenizer.errors import CorpusError, OptionError, SpecialTokenError
from distributed.cases import SETTINGS, documents, run_example, write_files
from distributed.count_cases import check_bad_row, check_counts, check_files, check_killed_counting
from distributed.killing import kill_once, killed_after
from distributed.shard_cases import (
    check_bad_rows,
    check_killed_workers,
    check_rows,
    check_same_shards,
    check_two_runs,
)

sql: Any = pytest.importorskip("pyspark.sql", reason="Spark is not installed; `make test-spark` does it")
pa: Any = pytest.importorskip("pyarrow")

# Spark leaves sockets to the garbage collector.
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
    }
    # Two threads, and four attempts at each task.
    builder = sql.SparkSession.builder.master("local[2,4]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def frame(spark: Any, texts: list[Any], partitions: int, kind: str = "string") -> Any:
    return spark.createDataFrame([(text,) for text in texts], f"text {kind}").repartition(partitions)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_rows(spark: Any, settings: CountSettings, stdlib_texts: list[str]) -> None:
    texts = documents(stdlib_texts)
    local = settings.counts().add(texts)
    for partitions in (1, 5):
        assert count_with_spark(frame(spark, texts, partitions), settings) == local


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_ranges_of_files(
    spark: Any, settings: CountSettings, stdlib_texts: list[str], tmp_path: Path
) -> None:
    paths = write_files(tmp_path, documents(stdlib_texts)[:20])
    local = settings.counts().add(paths, input_format="text")
    assert count_with_spark(paths, settings, range_bytes=40_000, input_format="text") == local
    one = settings.counts().add(paths[9], input_format="text")
    assert count_with_spark(str(paths[9]), settings, session=spark, input_format="text") == one


def test_nothing(spark: Any) -> None:
    settings = CountSettings()
    assert count_with_spark(frame(spark, [], 2), settings) == settings.counts()
    with pytest.raises(OptionError, match="no inputs"):
        count_with_spark([], settings, session=spark)


@pytest.mark.parametrize("stage", ["_counted", "_packed"])
def test_a_worker_that_is_killed(
    spark: Any, stage: str, stdlib_texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies when it has given its first batch away: of counts to the shuffle, or of sums to the driver."""
    record = tmp_path / "killed"
    kill = kill_once(record)
    function: Callable[..., Iterator[Any]] = getattr(on_spark, stage)

    def killing(batches: Any, **options: Any) -> Iterator[Any]:
        for batch in function(batches, **options):
            yield batch
            kill()

    monkeypatch.setattr(on_spark, stage, killing)
    settings = CountSettings()
    texts = documents(stdlib_texts)
    assert count_with_spark(frame(spark, texts, 5), settings) == settings.counts().add(texts)
    assert int(record.read_text()) != os.getpid()


def test_counts_are_sent_in_parts(
    spark: Any, stdlib_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [*on_spark._halves(pa.RecordBatch.from_pydict({"n": [*range(1000)]}))]
    assert len(parts) == 1
    monkeypatch.setattr(on_spark, "_MAX_BYTES", 1000)
    parts = [*on_spark._halves(pa.RecordBatch.from_pydict({"n": [*range(1000)]}))]
    assert [number for part in parts for number in part.column("n").to_pylist()] == [*range(1000)]
    assert max(part.nbytes for part in parts) <= 1000


def test_a_row_that_is_no_text_is_named(spark: Any, tokenizer: BPETokenizer) -> None:
    for text, problem in ((None, "null"), (b"low \xff", "UTF-8")):
        # A cast to strings does not look whether they are UTF-8.
        rows = frame(spark, [b"low", text, b""], 1, "binary").selectExpr("cast(text as string) as text")
        with pytest.raises(CorpusError, match=rf"row \d\b[^\n]*{problem}"):
            count_with_spark(rows, CountSettings())
    with pytest.raises(Exception, match=r"CorpusError: [^\n]*row \d\b[^\n]*UTF-8"):
        encode_with_spark(rows, tokenizer).collect()
    with pytest.raises(CorpusError, match="no column 'body'; the columns are 'text'"):
        count_with_spark(rows, CountSettings(), "body")
    with pytest.raises(CorpusError, match="no column 'body'; the columns are 'text'"):
        encode_with_spark(rows, tokenizer, "body")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_count_beyond_63_bits_is_an_error(spark: Any, ansi: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(batch: Any, settings: CountSettings, column: str) -> Any:
        return pa.RecordBatch.from_pydict({"piece": pa.array([b"low"], pa.large_binary()), "n": [2**62]})

    monkeypatch.setattr(on_spark, "count_texts", too_many)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    with pytest.raises(CorpusError, match="9,223,372,036,854,775,808 times"):
        count_with_spark(spark.range(0, 2, 1, 2).selectExpr("'low' as text"), CountSettings())
    spark.conf.unset("spark.sql.ansi.enabled")


def test_encoding(spark: Any, tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    texts = documents(stdlib_texts)[:100]
    encoded = encode_with_spark(frame(spark, texts, 3), tokenizer)
    assert encoded.schema["input_ids"].dataType.simpleString() == "array<int>"
    rows = {row.text: row.input_ids for row in encoded.collect()}
    assert rows == {text: tokenizer.encode(text) for text in texts}
    special = encode_with_spark(frame(spark, ["a<|eos|>"], 1), tokenizer, "text", "text", True, {"<|eos|>"})
    assert [row.text for row in special.collect()] == [tokenizer.encode("a<|eos|>", True, "all")]
    with pytest.raises(Exception, match=SpecialTokenError.__name__):
        encode_with_spark(frame(spark, ["a"], 1), tokenizer, allowed_special={"<|none|>"}).collect()


@pytest.mark.parametrize("check", [check_same_shards, check_bad_rows, check_two_runs])
def test_shards(spark: Any, check: Callable[..., None], tmp_path: Path, tokenizer: BPETokenizer) -> None:
    check(tokenize_with_spark, tmp_path, tokenizer)


def test_a_worker_that_is_killed_while_it_writes_shards(
    spark: Any, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed_workers(tokenize_with_spark, tmp_path, tokenizer, monkeypatch)


def test_shards_of_rows(
    spark: Any, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(texts: Sequence[Any]) -> Any:
        halves = spark.sparkContext.parallelize([(text,) for text in texts], 2)
        return spark.createDataFrame(halves, "text string")

    check_rows(tokenize_with_spark, on_spark, rows, tmp_path, tokenizer, monkeypatch)


@pytest.mark.parametrize("check", [check_counts, check_bad_row])
def test_counts_in_files(
    spark: Any, check: Callable[..., None], tmp_path: Path, stdlib_texts: list[str]
) -> None:
    check(count_with_spark, tmp_path, stdlib_texts)


def test_workers_that_are_killed_while_they_write_counts(
    spark: Any, tmp_path: Path, stdlib_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_killed_counting(count_with_spark, tmp_path, stdlib_texts, monkeypatch)


def test_rows_in_files(
    spark: Any, tmp_path: Path, stdlib_texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "killed"
    counted = killed_after(count_batches, kill_once(record))
    monkeypatch.setattr(on_spark, "count_batches", counted)
    texts = documents(stdlib_texts)
    rows = frame(spark, texts, 5)
    counts = count_with_spark(rows, SETTINGS["gpt2"], output=tmp_path / "out", partitions=2)
    assert record.exists()
    assert counts == SETTINGS["gpt2"].counts().add(texts)
    check_files(tmp_path / "out", 2)


def test_the_example(tmp_path: Path) -> None:
    done = run_example("count_with_spark.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the same merges as on one machine: True" in done.stdout
    assert "the same shards: True" in done.stdout
