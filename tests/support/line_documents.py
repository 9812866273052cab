"""`tokenize_corpus` for corpora of which each line is a document."""

from __future__ import annotations

from functools import partial

from bpe_tokenizer import corpus

__all__ = ["tokenize_corpus"]

tokenize_corpus = partial(corpus.tokenize_corpus, documents="line")
