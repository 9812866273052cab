"""Tokenize a data set of Hugging Face `datasets`, at the speed of the core: `pip install datasets`."""

from __future__ import annotations

from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any

from shared import library_files, library_tokenizer


def main() -> None:
    """Map a data set in this process and in two, and find the result in the cache."""
    datasets: Any = import_module("datasets")
    datasets.disable_progress_bars()
    tokenizer = library_tokenizer()
    lines = [line for path in library_files() for line in path.read_text(encoding="utf-8").splitlines()]
    with TemporaryDirectory() as directory:
        datasets.Dataset.from_dict({"text": lines}).save_to_disk(directory)
        dataset = datasets.load_from_disk(directory)

        # Tables of Arrow go in and out; no row becomes a Python object.
        arrow = dataset.with_format("arrow")
        encoded = arrow.map(tokenizer.arrow_mapper(), batched=True, remove_columns=["text"])
        print(f"{encoded.num_rows:,} rows, {encoded.features['input_ids']}")
        rows = encoded.with_format(None)
        print("the same ids:", rows[:100]["input_ids"] == [tokenizer.encode(line) for line in lines[:100]])

        again = arrow.map(tokenizer.arrow_mapper(), batched=True, remove_columns=["text"])
        print("found in the cache:", again.cache_files == encoded.cache_files)

        parallel = arrow.map(tokenizer.arrow_mapper(threads=1), batched=True, num_proc=2)
        print("the same in two processes:", parallel["input_ids"] == encoded["input_ids"])


if __name__ == "__main__":
    main()
