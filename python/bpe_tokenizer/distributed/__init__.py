"""Counts pieces and encodes on many machines, with Ray Data or Spark over the same Arrow functions."""

from __future__ import annotations

from bpe_tokenizer.distributed.arrow import (
    CountSettings,
    collect_counts,
    count_texts,
    encode_texts,
    sum_counts,
)
from bpe_tokenizer.distributed.ray import count_with_ray, encode_with_ray, tokenize_with_ray
from bpe_tokenizer.distributed.spark import count_with_spark, encode_with_spark, tokenize_with_spark

__all__ = [
    "CountSettings",
    "collect_counts",
    "count_texts",
    "count_with_ray",
    "count_with_spark",
    "encode_texts",
    "encode_with_ray",
    "encode_with_spark",
    "sum_counts",
    "tokenize_with_ray",
    "tokenize_with_spark",
]
