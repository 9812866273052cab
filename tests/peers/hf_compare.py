"""Compares this package with `tokenizers`: ids, offsets and text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bpe_tokenizer import BPETokenizer
from small_tokenizers import without_surrogates

if TYPE_CHECKING:
    from tokenizers import Tokenizer


tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")


def theirs_of(directory: Path) -> Tokenizer:
    theirs: Tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    return theirs


def assert_same(theirs: Tokenizer, ours: BPETokenizer, texts: Iterable[str]) -> None:
    """Same ids and offsets, with and without the post-processor, and the same text back."""
    for text in texts:
        for add_special_tokens in (False, True):
            expected = theirs.encode(without_surrogates(text), add_special_tokens=add_special_tokens)
            ids, spans = ours.encode_with_offsets(text, add_special_tokens, allowed_special="all", tile=False)
            assert ids == expected.ids, repr(text[:500])
            if len(without_surrogates(text)) == len(text):  # a pair of surrogates is two characters to us
                assert spans == expected.offsets, repr(text[:500])
            for skip in (False, True):
                assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip), repr(
                    text[:500]
                )


def assert_same_ids(theirs: Tokenizer, ours: BPETokenizer, texts: Sequence[str]) -> None:
    ids, offsets = ours.encode_ragged(texts, allowed_special="all")
    expected = theirs.encode_batch_fast(
        [without_surrogates(text) for text in texts], add_special_tokens=False
    )
    for text, encoding, start, end in zip(texts, expected, offsets, offsets[1:], strict=False):
        assert ids[start:end].tolist() == encoding.ids, repr(text[:500])
