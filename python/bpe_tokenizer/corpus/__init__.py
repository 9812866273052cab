"""Turns corpora into the files of ids that language models are trained on."""

from __future__ import annotations

from bpe_tokenizer.corpus.dataset import TokenDataset, TokenStream
from bpe_tokenizer.corpus.packed_shards import PackedSequences
from bpe_tokenizer.corpus.pipeline import merge_manifests, tokenize_corpus
from bpe_tokenizer.corpus.result import TokenizedCorpus

__all__ = [
    "PackedSequences",
    "TokenDataset",
    "TokenStream",
    "TokenizedCorpus",
    "merge_manifests",
    "tokenize_corpus",
]
