"""Encode and decode a column of pandas: `pip install pandas pyarrow`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shared import library_files, library_tokenizer


def main() -> None:
    """Add the ids of a column as a column of Arrow, and decode it."""
    pandas: Any = import_module("pandas")
    tokenizer = library_tokenizer()
    texts = [path.read_text(encoding="utf-8") for path in library_files()]
    frame = pandas.DataFrame({"text": [*texts, None]})

    ids = tokenizer.encode_arrow(frame["text"])
    # `ArrowDtype` keeps the column of Arrow; without it, each row becomes an array of NumPy.
    frame["input_ids"] = pandas.Series(pandas.array(ids, dtype=pandas.ArrowDtype(ids.type)))
    print("the same ids:", ids.to_pylist() == [*map(tokenizer.encode, texts), None])
    print(f"{frame['input_ids'].list.len().sum():,} tokens; {frame['input_ids'].dtype}")

    decoded = tokenizer.decode_arrow(frame["input_ids"])
    print("the same texts:", decoded.to_pylist() == [*texts, None])


if __name__ == "__main__":
    main()
