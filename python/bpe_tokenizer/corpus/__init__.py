"""Turns corpora into the files of ids that language models are trained on."""

from __future__ import annotations

from bpe_tokenizer.corpus.pipeline import TokenizedCorpus, tokenize_corpus

__all__ = ["TokenizedCorpus", "tokenize_corpus"]
