"""Encode and decode a column of Polars: `pip install polars pyarrow`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bpe_tokenizer import PieceCounts
from shared import library_files, library_tokenizer


def main() -> None:
    """Add the ids of a column, decode them, and count the pieces of the column."""
    polars: Any = import_module("polars")
    tokenizer = library_tokenizer()
    texts = [path.read_text(encoding="utf-8") for path in library_files()]
    frame = polars.DataFrame({"file": [path.name for path in library_files()], "text": texts})

    ids = polars.Series("input_ids", tokenizer.encode_arrow(frame["text"]))
    frame = frame.with_columns(ids, tokens=ids.list.len())
    print(f"{frame.height} files, {frame['tokens'].sum():,} tokens, {frame.schema['input_ids']}")
    print("the same ids:", frame["input_ids"].to_list() == [tokenizer.encode(text) for text in texts])

    longest = frame.sort("tokens", descending=True).head(3)
    decoded = polars.Series("text", tokenizer.decode_arrow(longest["input_ids"]))
    print("the same texts:", decoded.to_list() == longest["text"].to_list())

    counts = PieceCounts("gpt2").add_column(frame["text"])
    print("the same counts:", counts == PieceCounts("gpt2").add(texts))


if __name__ == "__main__":
    main()
