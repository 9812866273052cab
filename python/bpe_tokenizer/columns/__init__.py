"""Columns of Arrow: texts to lists of ids and back, for pyarrow, Polars, DuckDB, pandas and `datasets`."""

from bpe_tokenizer.columns.mapper import ArrowMapper

__all__ = ["ArrowMapper"]
