"""Corpora in, files of ids out: what a language model is trained on."""

from __future__ import annotations

from bpe_tokenizer.corpus.pipeline import TokenizedCorpus, tokenize_corpus

__all__ = ["TokenizedCorpus", "tokenize_corpus"]
