"""A `str` has the ids of its text however CPython stores it, and does not grow by its UTF-8."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from small_tokenizers import without_surrogates


class _Text(str):
    """A `str` of another class, whose text is not after the object."""

    __slots__ = ()


# By how CPython stores it: units of one, two and four bytes.
_STORED = {
    "empty": "",
    "ASCII": "plain text, 0123456789 " * 20,
    "Latin-1": "déjà vu à l'été ÿ\x80 " * 20,
    "two bytes": "Все счастливые семьи, 日本語の文。" * 20,
    "four bytes": "party 🎉 👩\u200d👧 déjà 日本 " * 20,
    "one character": "é",
    "pairs of surrogates": "\ud83c\udf89 a \ud83d\udc69" * 20,
    "lone surrogates": "a\ud83c b\udf89 \udc69\ud83d" * 20,
    "pairs among four bytes": "🎉\ud83c\udf89" * 20,
    "long": "Ένα μεγάλο κείμενο, 一段很长的文字。" * 20_000,
}
_IDS: dict[str, Callable[[BPETokenizer, str], Sequence[int]]] = {
    "encode": lambda tokenizer, text: tokenizer.encode(text),
    "encode with threads": lambda tokenizer, text: tokenizer.encode(text, threads=2),
    "to NumPy": lambda tokenizer, text: tokenizer.encode_to_numpy(text).tolist(),
    "to NumPy with threads": lambda tokenizer, text: tokenizer.encode_to_numpy(text, threads=2).tolist(),
    "batch": lambda tokenizer, text: [*tokenizer.encode_batch([text, "a"])[0]],
    "ragged": lambda tokenizer, text: tokenizer.encode_ragged([text])[0].tolist(),
}
_COUNTS: dict[str, Callable[[BPETokenizer, str], int]] = {
    "count": lambda tokenizer, text: tokenizer.count_tokens(text),
    "count with threads": lambda tokenizer, text: tokenizer.count_tokens(text, threads=2),
}


# Makes Python keep the UTF-8 of a text, as other libraries do.
utf8_of = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
utf8_of.restype = ctypes.c_void_p


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    text = " ".join(it for it in _STORED.values() if it.isprintable())
    tokenizer = BPETokenizer(normalization=None)
    return tokenizer.train(text, 500, special_tokens=["<|end|>"], verbose=False)


def fresh(text: str) -> str:
    """An object that nobody else has, and whose UTF-8 nobody has asked for."""
    return "".join([text[:1], text[1:]])


@pytest.mark.parametrize("stored", _STORED)
def test_the_ids_are_those_of_the_utf8(stored: str, tokenizer: BPETokenizer) -> None:
    text = _STORED[stored]
    expected = tokenizer.encode_bytes(without_surrogates(text).encode())
    known = fresh(text)
    with contextlib.suppress(UnicodeEncodeError):  # surrogates have no UTF-8
        utf8_of(ctypes.py_object(known), None)
        assert known.isascii() or sys.getsizeof(known) > sys.getsizeof(fresh(text))
    for each in (fresh(text), _Text(text), known):
        for way, encode in _IDS.items():
            assert list(encode(tokenizer, each)) == expected, way
        for way, count in _COUNTS.items():
            assert count(tokenizer, each) == len(expected), way


@pytest.mark.parametrize("stored", _STORED)
def test_a_text_does_not_grow(stored: str, tokenizer: BPETokenizer) -> None:
    text = fresh(_STORED[stored])
    size = sys.getsizeof(text)
    for way, encode in _IDS.items():
        encode(tokenizer, text)
        assert sys.getsizeof(text) == size, way
    for way, count in _COUNTS.items():
        count(tokenizer, text)
        assert sys.getsizeof(text) == size, way


@given(texts=st.lists(st.text(st.characters(exclude_categories=[])), max_size=4))
def test_texts_of_a_batch_have_their_own_ids(tokenizer: BPETokenizer, texts: list[str]) -> None:
    texts = [fresh(text) for text in texts]
    expected = [tokenizer.encode_bytes(without_surrogates(text).encode()) for text in texts]
    assert tokenizer.encode_batch(texts) == expected
    assert [tokenizer.encode(text) for text in texts] == expected
    assert [tokenizer.count_tokens(text) for text in texts] == [len(ids) for ids in expected]


def test_special_tokens_are_found_in_every_kind_of_text(tokenizer: BPETokenizer) -> None:
    end = tokenizer.special_tokens["<|end|>"]
    for text in _STORED.values():
        ids = tokenizer.encode(f"{text}<|end|>{text}", allowed_special="all")
        part = tokenizer.encode(text)
        assert ids == [*part, end, *part]
