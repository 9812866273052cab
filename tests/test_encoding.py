from __future__ import annotations

import gc
import sys
import unicodedata
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import oracle
from bpe_tokenizer import GPT2_SPLIT_PATTERN, BPETokenizer, OptionError
from small_tokenizers import hard_texts, relaxed, tiny, without_surrogates

# -- round trips ---------------------------------------------------------------------------------------


@given(text=hard_texts)
@relaxed
def test_without_normalisation_nothing_is_lost(plain_tokenizer: BPETokenizer, text: str) -> None:
    assert plain_tokenizer.decode(plain_tokenizer.encode(text)) == without_surrogates(text)


@given(text=hard_texts)
@relaxed
def test_with_nfc_the_text_comes_back_normalised(tokenizer: BPETokenizer, text: str) -> None:
    expected = unicodedata.normalize("NFC", without_surrogates(text))
    assert tokenizer.decode(tokenizer.encode(text)) == expected


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_every_normalisation_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], mixed_text: str) -> None:
    tokenizer = BPETokenizer("gpt2", form).train([mixed_text] * 2, 400, verbose=False)
    assert tokenizer.normalization == form
    text = mixed_text + "ﬁ½Å\ud800"
    expected = unicodedata.normalize(form, without_surrogates(text))
    assert tokenizer.decode(tokenizer.encode(text)) == expected
    for method in (tokenizer.tokenize, tokenizer.count_tokens, tokenizer.encode_to_numpy):
        assert repr(method(text)) == repr(method(expected))


@given(data=st.binary(max_size=60) | hard_texts.map(lambda text: text.encode(errors="replace")))
@relaxed
def test_any_bytes_come_back(tokenizer: BPETokenizer, data: bytes) -> None:
    assert tokenizer.decode_bytes(tokenizer.encode_bytes(data)) == data
    assert tokenizer.encode_bytes(bytearray(data)) == tokenizer.encode_bytes(memoryview(data))


@given(text=hard_texts)
@relaxed
def test_ids_are_those_of_the_reference(plain_tokenizer: BPETokenizer, text: str) -> None:
    ids = {token: token_id for token_id, token in plain_tokenizer.vocab.items()}
    merges = plain_tokenizer.merges
    expected = [
        ids[token]
        for piece in oracle.split(without_surrogates(text), GPT2_SPLIT_PATTERN)
        for token in oracle.encode_piece(piece.encode(), merges)
    ]
    assert plain_tokenizer.encode(text) == expected


@given(text=hard_texts)
@relaxed
def test_every_way_of_encoding_gives_the_same_ids(tokenizer: BPETokenizer, text: str) -> None:
    options: dict[str, Any] = {"add_special_tokens": True, "allowed_special": "all"}
    ids = tokenizer.encode(text, **options)
    assert tokenizer.encode_to_numpy(text, **options).tolist() == ids
    assert tokenizer.encode_with_offsets(text, **options)[0] == ids
    assert tokenizer.encode_batch([text], **options)[0].input_ids == ids
    assert tokenizer.encode_ragged([text, "", text], **options)[0].tolist() == [*ids, 256, 257, *ids]
    assert tokenizer(text, **options) == ids
    assert tokenizer.count_tokens(text, **options) == len(ids)
    assert tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text, **options)) == ids


def test_arrays_have_their_types(tokenizer: BPETokenizer) -> None:
    assert tokenizer.encode_to_numpy("abc").dtype == np.uint32
    assert tokenizer.encode_to_numpy("abc", add_special_tokens=True).dtype == np.uint32
    flat, offsets = tokenizer.encode_ragged(["ab", ""], add_special_tokens=True)
    assert flat.dtype == np.uint32
    assert offsets.dtype == np.int64
    flat, offsets = tokenizer.encode_ragged([])
    assert (flat.tolist(), offsets.tolist()) == ([], [0])


# -- offsets -------------------------------------------------------------------------------------------


@given(text=hard_texts)
@example("e\u0301\u0301x")
@relaxed
def test_spans_tile_the_text(tokenizer: BPETokenizer, text: str) -> None:
    ids, spans = tokenizer.encode_with_offsets(text, allowed_special="all")
    assert len(ids) == len(spans)
    joined = [0, *(end for _, end in spans)]
    assert [start for start, _ in spans] == joined[:-1]
    assert joined[-1] == len(text)
    for options in ({}, {"tile": False}, {"unit": "byte"}, {"add_special_tokens": True}):
        listed = tokenizer.encode_with_offsets(text, allowed_special="all", **options)
        arrays = tokenizer.encode_to_numpy_with_offsets(text, allowed_special="all", **options)
        assert (arrays[0].tolist(), list(map(tuple, arrays[1].tolist()))) == listed
        assert [str(array.dtype) for array in arrays] == ["uint32", "int64"]
        assert arrays[1].shape == (len(arrays[0]), 2)


@given(text=hard_texts)
@relaxed
def test_byte_spans_are_the_bytes_of_the_tokens(plain_tokenizer: BPETokenizer, text: str) -> None:
    data = without_surrogates(text).encode()
    ids, spans = plain_tokenizer.encode_with_offsets(text, unit="byte")
    assert [data[start:end] for start, end in spans] == [plain_tokenizer.vocab[token_id] for token_id in ids]
    assert b"".join(data[start:end] for start, end in spans) == data


def test_spans_that_overlap_cover_whole_characters() -> None:
    tokenizer = tiny("a|b")
    assert tokenizer.encode_with_offsets("abé") == ([256, 195, 169], [(0, 2), (2, 2), (2, 3)])
    assert tokenizer.encode_with_offsets("abé", tile=False)[1] == [(0, 2), (2, 3), (2, 3)]
    assert tokenizer.encode_with_offsets("éab", unit="byte", tile=False)[1] == [(0, 1), (1, 2), (2, 4)]


def test_spans_own_their_integers() -> None:
    tokenizer = tiny("h|i", "hi|hi")
    text = "hi \U0001f642" * 50_000  # more pairs than are made between two checks, and more numbers than ids
    expected = [(0, 2), (2, 3), (3, 3), (3, 3), (3, 3), (3, 4)]
    expected = [(start + 4 * n, end + 4 * n) for n in range(50_000) for start, end in expected]
    number, blocks = tokenizer.encode("hihi")[0], []
    for _ in range(4):
        before = sys.getrefcount(number)
        spans = tokenizer.encode_with_offsets(text)[1]
        assert spans == expected
        assert all(type(span) is tuple and type(span[0]) is int for span in spans)
        assert not any(map(gc.is_tracked, spans))
        assert all(one[1] is two[0] for one, two in pairwise(spans))
        del spans
        assert sys.getrefcount(number) == before
        blocks.append(sys.getallocatedblocks())
    # What leaks in every round shows in each difference; what else the process does, in some.
    assert min(abs(two - one) for one, two in pairwise(blocks)) < 1000


def test_added_tokens_have_empty_spans(tokenizer: BPETokenizer) -> None:
    ids, spans = tokenizer.encode_with_offsets("\0\0é", add_special_tokens=True)
    assert (ids[0], ids[-1], spans[0], spans[-1]) == (256, 257, (0, 0), (3, 3))
    assert tokenizer.encode_with_offsets("\0é", add_special_tokens=True, unit="byte")[1][-1] == (3, 3)
    assert tokenizer.encode_with_offsets("\0é", add_special_tokens=True, tile=False)[1][-1] == (0, 0)
    assert tokenizer.encode_with_offsets("", add_special_tokens=True)[1] == [(0, 0), (0, 0)]


def test_an_unknown_unit_is_refused(tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match="unit is 'word'"):
        tokenizer.encode_with_offsets("a", unit="word")  # type: ignore[arg-type]
