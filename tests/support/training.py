"""Trains tokenizers whose merges are easy to follow."""

from __future__ import annotations

from typing import Any

from bpe_tokenizer import BPETokenizer

Merges = list[tuple[bytes, bytes]]
WORDS = "low low low low low lower lower " + "newest " * 6 + "widest " * 3


def trained(corpus: Any, vocab_size: int = 300, **options: Any) -> BPETokenizer:
    return BPETokenizer(split_pattern="gpt2", normalization=None).train(
        corpus, vocab_size, **{"min_frequency": 1, "verbose": False, **options}
    )


def merges_of(corpus: Any, vocab_size: int = 300, **options: Any) -> Merges:
    return trained(corpus, vocab_size, **options).merges
