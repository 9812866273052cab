"""Count pieces with Spark, train on the counts, and tokenize: the extra `spark`.

On a cluster, `spark-submit` creates the session; read the texts with `spark.read.parquet` or similar.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests, tokenize_corpus
from bpe_tokenizer.distributed import CountSettings, count_with_spark, encode_with_spark, tokenize_with_spark
from shared import library_files

# Spark on this machine only, without network access; its workers run this Python.
os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
OPTIONS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def main() -> None:
    """Count and encode on Spark, and compare with what this process does."""
    builder: Any = import_module("pyspark.sql").SparkSession.builder.master("local[2]")
    for name, value in OPTIONS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    files = library_files()
    tokenizer = BPETokenizer("gpt2", normalization=None)
    settings = CountSettings.of(tokenizer)

    directory = Path(tempfile.mkdtemp(prefix="counted-"))
    counts = count_with_spark(files, settings, unit_bytes=1 << 20, session=spark, output=directory / "counts")
    print(f"{counts.documents} files, {counts.pieces:,} pieces, {counts.distinct:,} of them distinct")

    texts = [path.read_bytes().decode() for path in files]
    frame = spark.createDataFrame([(text,) for text in texts], "text string").repartition(4)
    print("rows and files give equal counts:", count_with_spark(frame, settings) == counts)

    tokenizer.train_from_counts(counts, 1000, verbose=False)
    local = BPETokenizer("gpt2", normalization=None).train(files, 1000, verbose=False)
    print("the same merges as on one machine:", tokenizer.merges == local.merges)

    rows = encode_with_spark(frame, tokenizer).take(3)
    print("the same ids:", all(row.input_ids == local.encode(row.text) for row in rows))

    made = tokenize_with_spark(files, directory / "spark", tokenizer, append_eos=False, verbose=False)
    tokenize_corpus(files, directory / "local", tokenizer, append_eos=False, part=0, of=1, verbose=False)
    again = merge_manifests(directory / "local")
    equal = [
        one.read_bytes() == other.read_bytes() for one, other in zip(made.files, again.files, strict=True)
    ]
    print("the same shards:", all(equal))
    shutil.rmtree(directory)
    spark.stop()


if __name__ == "__main__":
    main()
