"""Spark counts and encodes what one machine does, also when its workers are killed.

`make test-spark` installs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.distributed import CountSettings, count_with_spark, encode_with_spark, tokenize_with_spark
from bpe_tokenizer.errors import CorpusError, SpecialTokenError
from distributed.cases import documents, run_example
from distributed.count_cases import COUNT_CHECKS, Counting
from distributed.shard_cases import SHARD_CHECKS, Tokenizing, own_id

sql: Any = pytest.importorskip("pyspark.sql", reason="Spark is not installed; `make test-spark` does it")
pa: Any = pytest.importorskip("pyarrow")

# Spark leaves sockets to the garbage collector.
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    os.environ["SPARK_AUTH_SOCKET_TIMEOUT"] = "200"  # 15 seconds are little for a busy machine
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.python.authenticate.socketTimeout": "200s",
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


@pytest.mark.parametrize("check", COUNT_CHECKS)
def test_counting(
    spark: Any,
    check: Callable[[Counting], None],
    tmp_path: Path,
    stdlib_texts: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check(Counting(count_with_spark, partial(frame, spark), tmp_path, stdlib_texts, monkeypatch))


@pytest.mark.parametrize("check", SHARD_CHECKS)
def test_shards(
    spark: Any,
    check: Callable[[Tokenizing], None],
    tmp_path: Path,
    tokenizer: BPETokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rows(texts: Sequence[Any]) -> Any:
        halves = spark.sparkContext.parallelize([(text, own_id(text)) for text in texts], 2)
        return spark.createDataFrame(halves, "text string, id string")

    check(Tokenizing(tokenize_with_spark, tmp_path, tokenizer, rows, monkeypatch))


def test_a_row_that_is_no_text_is_named(spark: Any, tokenizer: BPETokenizer) -> None:
    for text, problem in ((None, "null"), (b"low \xff", "UTF-8")):
        # A cast to strings does not look whether they are UTF-8.
        rows = frame(spark, [b"low", text, b""], 1, "binary").selectExpr("cast(text as string) as text")
        with pytest.raises(CorpusError, match=rf"row \d\b[^\n]*{problem}"):
            count_with_spark(rows, CountSettings())
    with pytest.raises(Exception, match=r"CorpusError: [^\n]*row \d\b[^\n]*UTF-8"):
        encode_with_spark(rows, tokenizer).collect()
    with pytest.raises(CorpusError, match="no column 'body'; the columns are 'text'"):
        count_with_spark(rows, CountSettings(), field="body")
    with pytest.raises(CorpusError, match="no column 'body'; the columns are 'text'"):
        encode_with_spark(rows, tokenizer, "body")


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


def test_the_example(tmp_path: Path) -> None:
    done = run_example("count_with_spark.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the same merges as on one machine: True" in done.stdout
    assert "the same shards: True" in done.stdout
