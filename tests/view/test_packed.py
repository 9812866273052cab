"""Packed models are small, and need a vocabulary. `test_wasm.py` compares what the page reads of them."""

from __future__ import annotations

import gzip

import pytest

from bpe_tokenizer import BPETokenizer, NotTrainedError
from bpe_tokenizer.view.packed import pack
from small_tokenizers import BYTES


def test_a_packed_model_is_small(tokenizer: BPETokenizer) -> None:
    assert len(gzip.compress(pack(tokenizer))) < 6000


def test_merges_that_follow_from_ranks_take_one_byte() -> None:
    vocab = BYTES | {256: b"ab", 257: b"abc"}
    assert pack(BPETokenizer.from_vocab(vocab)).endswith(b"ababc\0")
    other = BPETokenizer.from_vocab(vocab | {256: b"abc", 257: b"ab"}, [(b"a", b"b"), (b"ab", b"c")])
    assert pack(other).endswith(b"abcab\x01\x02\x82\x04\x01\x01\x02")


def test_an_untrained_tokenizer_is_refused() -> None:
    with pytest.raises(NotTrainedError):
        pack(BPETokenizer())
