"""Encode what a query of DuckDB returns, and query the ids: `pip install duckdb pyarrow`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from shared import library_files, library_tokenizer


def main() -> None:
    """Encode the text column of a relation, and join its ids to the rows."""
    duckdb: Any = import_module("duckdb")
    pyarrow: Any = import_module("pyarrow")
    tokenizer = library_tokenizer()
    texts = [path.read_text(encoding="utf-8") for path in library_files()]
    connection = duckdb.connect()
    connection.register("files", pyarrow.table({"number": range(len(texts)), "text": texts}))

    # A relation streams its rows. Select the column of texts, and give the rows an order.
    selected = connection.sql("select text from files order by number")
    ids = tokenizer.encode_arrow(selected)
    print("the same ids:", ids.to_pylist() == [tokenizer.encode(text) for text in texts])

    connection.register("encoded", pyarrow.table({"number": range(len(texts)), "input_ids": ids}))
    [(total, longest)] = connection.sql(
        "select sum(len(input_ids)), max(len(input_ids)) from encoded"
    ).fetchall()
    print(f"{total:,} tokens, at most {longest:,} in a file")

    decoded = tokenizer.decode_arrow(connection.sql("select input_ids from encoded order by number"))
    print("the same texts:", decoded.to_pylist() == texts)


if __name__ == "__main__":
    main()
