"""Count and encode batches in processes, as any engine of Arrow batches can: `pip install pyarrow`."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.distributed import CountSettings, collect_counts, count_texts, encode_texts, sum_counts
from shared import library_files


def main() -> None:
    """Count and encode in parts, and compare with the whole."""
    files = library_files()
    tokenizer = BPETokenizer("gpt2", normalization=None)
    settings = CountSettings.of(tokenizer)

    pyarrow: Any = import_module("pyarrow")
    batch = pyarrow.RecordBatch.from_pydict({"text": [path.read_bytes().decode() for path in files]})
    batches = [batch.slice(row, 10) for row in range(0, len(files), 10)]
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        counted = list(processes.map(partial(count_texts, settings=settings), batches))
    counts = collect_counts(sum_counts(counted), settings)
    print(f"{counts.documents} rows in {len(batches)} batches, {counts.distinct:,} distinct pieces")

    tokenizer.train_from_counts(counts, 1000, verbose=False)
    local = BPETokenizer("gpt2", normalization=None).train(files, 1000, verbose=False)
    print("the same merges as in one process:", tokenizer.merges == local.merges)

    ids = encode_texts(batch, tokenizer).column("input_ids").to_pylist()
    print("the same ids:", ids == [local.encode(text) for text in batch.column("text").to_pylist()])


if __name__ == "__main__":
    main()
