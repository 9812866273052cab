"""Count pieces in processes, with the functions that Ray and Spark run on machines: `pip install pyarrow`."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.distributed import (
    CountSettings,
    collect_counts,
    count_ranges,
    count_texts,
    encode_texts,
    file_ranges,
    sum_counts,
)
from shared import library_files


def main() -> None:
    """Count and encode in parts, and compare with the whole."""
    files = library_files()
    tokenizer = BPETokenizer("gpt2", normalization=None)
    settings = CountSettings.of(tokenizer)

    tasks = file_ranges(files, range_bytes=1 << 20)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        counted = list(processes.map(partial(count_ranges, settings=settings), tasks))
    counts = collect_counts(sum_counts(counted), settings)
    print(f"{counts.documents} files in {len(tasks)} tasks, {counts.distinct:,} distinct pieces")

    pyarrow: Any = import_module("pyarrow")
    batch = pyarrow.RecordBatch.from_pydict({"text": [path.read_bytes().decode() for path in files]})
    rows = collect_counts(
        [count_texts(batch.slice(row, 10), settings) for row in range(0, len(files), 10)], settings
    )
    print("rows and files give equal counts:", rows == counts)

    tokenizer.train_from_counts(counts, 1000, verbose=False)
    local = BPETokenizer("gpt2", normalization=None).train(files, 1000, verbose=False)
    print("the same merges as in one process:", tokenizer.merges == local.merges)

    ids = encode_texts(batch, tokenizer).column("input_ids").to_pylist()
    print("the same ids:", ids == [local.encode(text) for text in batch.column("text").to_pylist()])


if __name__ == "__main__":
    main()
