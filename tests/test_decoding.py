from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import ArgumentTypeError, BPETokenizer, DecodingError, OptionError, UnknownIdError
from small_tokenizers import hard_texts, relaxed, tiny, without_surrogates

# -- decoding ------------------------------------------------------------------------------------------


def test_single_ids_and_those_of_numpy() -> None:
    tokenizer = tiny("h|i")
    assert tokenizer.decode([np.int64(256), np.uint8(33)]) == "hi!"
    for single in (256, np.int32(256), np.array(256)):
        assert tokenizer.decode(single) == "hi"
        assert tokenizer.decode_bytes(single) == b"hi"
    assert tokenizer.decode(range(97, 100)) == "abc"


limits = st.sampled_from([2**32 - 1, 2**63 - 1, 2**64 - 1])
some_ids = st.lists(st.integers(0, 1100) | st.integers(-3, 2**34) | limits | st.just(97))
usual_ids = st.lists(st.sampled_from([*range(256), 256, 257, 1000, 40_000_000]), max_size=40)


@given(ids=some_ids | usual_ids, skip=st.booleans())
@relaxed
def test_every_form_of_ids_is_decoded_like_one_id_after_the_other(ids: list[int], skip: bool) -> None:
    tokenizer = tiny("h|i", special_tokens={"<|a|>": 257, "<|longer than sixteen bytes|>": 40_000_000})
    vocab = tokenizer.vocab | {id_: text.encode() for text, id_ in tokenizer.special_tokens.items()}
    special = set(tokenizer.special_tokens.values())

    at = next((at for at, i in enumerate(ids) if not 0 <= i < 2**32), None)
    if at is None:
        at = next((at for at, i in enumerate(ids) if i not in vocab), None)
    unknown = None if at is None else f"id {ids[at]} at position {at} is not"
    expected = b"".join(vocab.get(i, b"") for i in ids if not (skip and i in special))
    forms: list[Any] = [ids, tuple(ids), iter(ids), Numbers(ids), [*map(Number, ids)]]
    for dtype in ("uint8", "uint16", "int32", "uint32", "int64", "uint64", ">i4", "object"):
        kind = np.dtype(dtype)
        if kind.kind == "O" or all(np.iinfo(kind).min <= i <= np.iinfo(kind).max for i in ids):
            array = np.array(ids, dtype=kind)
            forms += [array, np.repeat(array, 2)[::2], array[::-1][::-1]]
    for form in forms:
        if unknown:
            with pytest.raises(UnknownIdError, match=unknown):
                tokenizer.decode_bytes(form, skip)
        else:
            assert tokenizer.decode_bytes(form, skip) == expected
    if not unknown:
        text = expected.decode(errors="replace")
        assert tokenizer.decode(ids, skip) == text
        assert tokenizer.decode_batch([ids, tuple(ids)], skip) == [text, text]


class Number(int):
    """An `int` that is none itself."""


class Numbers(list[int]):
    """A list that is none itself."""


class Shrinking:
    """An id that empties the list it is in when it is looked at."""

    def __init__(self, ids: list[Any]) -> None:
        self.ids = ids

    def __index__(self) -> int:
        self.ids.clear()
        return 98


def test_a_list_may_change_while_it_is_read() -> None:
    ids: list[Any] = [97] * 100
    ids[50] = Shrinking(ids)
    assert tiny().decode(ids) == "a" * 50 + "b"


@pytest.mark.parametrize("last", [0, 1, 2**15, 2**30 - 1, 2**30, 2**32 - 2])
def test_integers_of_every_length_are_read(last: int) -> None:
    """Ids of one digit of Python's integers are read in place."""
    vocab = {byte + (byte == last) * 300: bytes([byte]) for byte in range(256)} | {last: b"last"}
    tokenizer = BPETokenizer.from_vocab(vocab, split_pattern="gpt2")
    assert tokenizer.decode_bytes([97, last, 98, last]) == b"alastblast"
    assert tokenizer.decode([last] * 3) == "last" * 3


def test_a_long_text_gives_a_list_of_its_ids(plain_tokenizer: BPETokenizer) -> None:
    """The list takes the place of the ids in memory, from the end on."""
    text = "".join(map(str, range(400_000)))
    ids = plain_tokenizer.encode(text)
    assert ids == plain_tokenizer.encode_to_numpy(text).tolist()
    assert len(ids) > 4 << 18
    assert plain_tokenizer.decode(ids) == text


def test_arrays_of_other_kinds(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    np.array([97, 98], dtype=np.uint16).tofile(tmp_path / "ids")
    assert tokenizer.decode(np.memmap(tmp_path / "ids", dtype=np.uint16)) == "ab"
    with pytest.raises(TypeError, match="None at position 1"):
        tokenizer.decode(np.ma.masked_array([97, 98], [False, True]))
    unaligned = np.frombuffer(b"\0" + np.array([97, 98], dtype=np.uint32).tobytes(), np.uint8)[1:]
    assert tokenizer.decode(unaligned.view(np.uint32)) == "ab"


def test_lists_of_ids_own_their_integers() -> None:
    # Python itself keeps small integers: up to 256, and from 3.15 on up to 1024.
    tokenizer = tiny("h|i", special_tokens={"<a>": 2000})
    text = "<a> " * 20_000
    ids = tokenizer.encode(text, allowed_special="all")
    assert ids == tokenizer.encode_to_numpy(text, allowed_special="all").tolist() == [2000, 32] * 20_000
    kept = tokenizer.encode(text, allowed_special="all")[0]
    before = sys.getrefcount(kept)
    more = tokenizer.encode(text, allowed_special="all")
    assert more[0] is kept
    assert sys.getrefcount(kept) == before + more.count(2000)
    del more
    assert sys.getrefcount(kept) == before


def test_shared_integers_are_usual_integers() -> None:
    special_tokens = {"<a>": 257, "<b>": 258, "<c>": 300, "<d>": 2**18, "<e>": 2**30 - 1}
    tokenizer = tiny("h|i", special_tokens=special_tokens)
    text = "\0\x01\u00ffhi<a><b><c><d><e>"
    wanted = [0, 1, 195, 191, 256, *special_tokens.values()]
    for _ in range(3):  # the first lists may have integers of their own
        ids = tokenizer.encode(text * 1000, allowed_special="all")
        assert tokenizer.decode(ids) == text * 1000
        ids = ids[-len(wanted) :]
        assert ids == wanted == pickle.loads(pickle.dumps(ids)) == json.loads(json.dumps(ids))
        assert set(ids) == set(wanted)
        for number, known in zip(ids, wanted, strict=True):
            assert (bool(number), hash(number), str(number)) == (bool(known), hash(known), str(known))
            assert (number.bit_length(), number - 1) == (known.bit_length(), known - 1)


@pytest.mark.parametrize(
    "ids", ["hi", b"hi", bytearray(b"hi"), None, 1.5, [1.5], ["a"], [None], np.array([1.5]), [[1, 2]]]
)
def test_ids_of_the_wrong_type_are_a_type_error(tokenizer: BPETokenizer, ids: Any) -> None:
    for decode in (tokenizer.decode, tokenizer.decode_bytes, tokenizer.convert_ids_to_tokens):
        with pytest.raises(TypeError):
            decode(ids)
    with pytest.raises(TypeError, match="decode_batch"):
        tokenizer.decode(np.zeros((2, 2), dtype=np.int64))


@pytest.mark.parametrize("unknown", [1000, 5000, 2**32 - 1, 2**32, 2**40, 2**70, -1, -(2**70)])
def test_an_unknown_id_is_named(tokenizer: BPETokenizer, unknown: int) -> None:
    uses: list[Callable[[], object]] = [
        lambda: tokenizer.decode([65, unknown]),
        lambda: tokenizer.decode(unknown),
        lambda: tokenizer.decode_bytes([unknown], skip_special_tokens=True),
        lambda: tokenizer.decode_batch([[65], [unknown]]),
    ]
    for use in uses:
        with pytest.raises(UnknownIdError, match=f"{unknown}(?!\\d)") as caught:
            use()
        assert isinstance(caught.value, KeyError)


def test_bytes_that_are_no_text(tokenizer: BPETokenizer) -> None:
    ids = [*b"a\xe2\x82b"]
    assert tokenizer.decode(ids) == "a\ufffdb"
    assert tokenizer.decode(ids, errors="ignore") == "ab"
    assert tokenizer.decode(ids, errors="backslashreplace") == "a\\xe2\\x82b"
    assert tokenizer.decode_batch([ids], errors="ignore") == ["ab"]
    for decode in (tokenizer.decode, lambda ids, errors: tokenizer.decode_batch([ids], errors=errors)):
        with pytest.raises(DecodingError):
            decode(ids, errors="strict")
        with pytest.raises(OptionError, match="errors is 'wrong'"):
            decode([97], errors="wrong")
    with pytest.raises(DecodingError, match=r"in row 1$"):
        tokenizer.decode_batch([[97], ids], errors="strict")


def test_a_batch_is_decoded_without_its_padding(tokenizer: BPETokenizer) -> None:
    texts = ["one", "three words here", ""]
    for batch in (
        tokenizer.encode_batch(texts, padding=True, return_tensors="np")["input_ids"],
        [result.input_ids for result in tokenizer.encode_batch(texts, padding=True)],
        iter([tokenizer.encode(text) for text in texts]),
    ):
        assert tokenizer.decode_batch(batch) == texts
    assert tokenizer.decode_batch([[65, 258]], skip_padding=False) == ["A<|pad|>"]
    assert tiny("a|b").decode_batch([[65, 0]]) == ["A\0"]
    assert tokenizer.decode_batch([]) == []
    with pytest.raises(TypeError, match="item 1 of the batch is an id"):
        tokenizer.decode_batch([[65], 66])


# -- tokens and ids ------------------------------------------------------------------------------------


def test_token_strings_are_gpt2s_printable_characters(tokenizer: BPETokenizer) -> None:
    tokens = tokenizer.tokenize(" \0é\n<|eos|>", allowed_special={"<|eos|>"})
    assert "".join(tokens) == "ĠĀÃ©Ċ<|eos|>"
    assert tokenizer.convert_tokens_to_string(tokens) == " \0é\n<|eos|>"
    assert tokenizer.tokenize("a", add_special_tokens=True) == ["<|bos|>", "a", "<|eos|>"]


def test_tokens_and_ids_convert(tokenizer: BPETokenizer) -> None:
    vocab = tokenizer.get_vocab()
    assert list(vocab.values()) == sorted(vocab.values()) == sorted(tokenizer.vocab)
    assert {token_id: tokenizer.decode_bytes(token_id) for token_id in vocab.values()} == tokenizer.vocab
    assert (vocab["A"], vocab["Ġ"], vocab["<|pad|>"]) == (65, 32, 258)
    assert tokenizer.convert_ids_to_tokens(list(vocab.values())) == list(vocab)
    assert tokenizer.convert_tokens_to_ids(list(vocab)) == list(vocab.values())
    assert tokenizer.convert_tokens_to_ids("<|eos|>") == 257
    assert tokenizer.convert_tokens_to_ids("no token") == -1
    assert tokenizer.convert_tokens_to_ids(["a", "日", "a"]) == [97, -1, 97]
    assert tokenizer.convert_ids_to_tokens(257) == "<|eos|>"
    assert tokenizer.convert_ids_to_tokens(np.array([97, 32])) == ["a", "Ġ"]
    items: list[Any] = [np.array(97)]  # as those of a tensor are
    assert tokenizer.convert_ids_to_tokens(items) == ["a"]
    assert tokenizer.convert_ids_to_tokens([5000, -1, 2**40, 97]) == ["", "", "", "a"]
    assert tokenizer.convert_ids_to_tokens(-1) == ""


def test_tokens_make_text(tokenizer: BPETokenizer) -> None:
    assert tokenizer.convert_tokens_to_string([]) == ""
    assert tokenizer.convert_tokens_to_string(["Ã", "©"]) == "é"
    assert tokenizer.convert_tokens_to_string(["Ã"]) == "\ufffd"
    assert tokenizer.convert_tokens_to_string(["日", "a", "zzz", "b"]) == "ab"
    with pytest.raises(TypeError, match="list of token strings"):
        tokenizer.convert_tokens_to_string("abc")


@given(text=hard_texts)
@relaxed
def test_tokens_of_a_text_make_it_again(plain_tokenizer: BPETokenizer, text: str) -> None:
    tokens = plain_tokenizer.tokenize(text)
    assert plain_tokenizer.convert_tokens_to_string(tokens) == without_surrogates(text)


def test_an_added_token_comes_before_the_bytes_it_is_spelt_with() -> None:
    tokenizer = tiny("a|b", special_tokens={"Ġ": 300})
    assert tokenizer.convert_tokens_to_ids("Ġ") == tokenizer.get_vocab()["Ġ"] == 300
    assert tokenizer.convert_ids_to_tokens([300, 32]) == ["Ġ", "Ġ"]
    assert tokenizer.convert_tokens_to_string(["Ġ"]) == "Ġ"


def test_what_properties_return_cannot_harm_the_tokenizer(tokenizer: BPETokenizer) -> None:
    def sizes() -> list[int]:
        return [
            *map(len, (tokenizer.vocab, tokenizer.merges, tokenizer.special_tokens, tokenizer.get_vocab()))
        ]

    before = sizes()
    assert tokenizer.vocab is tokenizer.vocab
    assert pickle.loads(pickle.dumps(tokenizer.vocab)) == copy.deepcopy(tokenizer.vocab) == tokenizer.vocab
    assert type(copy.copy(tokenizer.vocab)) is dict
    changes: list[Callable[[dict[int, bytes]], object]] = [
        lambda vocab: vocab.clear(),
        lambda vocab: vocab.pop(0),
        lambda vocab: vocab.popitem(),
        lambda vocab: vocab.setdefault(5000, b""),
        lambda vocab: vocab.update({0: b""}),
        lambda vocab: vocab.__setitem__(0, b""),
        lambda vocab: vocab.__delitem__(0),
        lambda vocab: vocab.__ior__({0: b""}),
    ]
    for change in changes:
        with pytest.raises(TypeError, match=r"change a copy: dict\(tokenizer.vocab\)"):
            change(tokenizer.vocab)
    tokenizer.merges.clear()
    tokenizer.special_tokens.clear()
    tokenizer.get_vocab().clear()
    assert sizes() == before


def test_what_encoding_returns_can_be_decoded(tokenizer: BPETokenizer) -> None:
    texts = ["def f(x):", "naïve", ""]
    assert tokenizer.decode_batch(tokenizer.encode_batch(texts)) == texts
    assert tokenizer.decode_batch(tokenizer(texts, return_dict=True)) == texts
    assert tokenizer.decode_batch(tokenizer(texts, padding=True, return_tensors="np")) == texts
    assert tokenizer.decode(tokenizer.encode_batch(texts)[0]) == texts[0]
    assert tokenizer.decode(tokenizer(texts[1], return_dict=True)) == texts[1]
    assert tokenizer.decode_bytes(tokenizer.encode_batch(texts)[1]) == texts[1].encode()
    with pytest.raises(TypeError, match="ids must be integers"):
        tokenizer.decode({"labels": [1]})


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("wrong", [10**6, -1, None, "low"])
def test_an_error_of_a_batch_names_the_row(wrong: Any, threads: int, plain_tokenizer: BPETokenizer) -> None:
    batch = [[1], [2, 3], [4, wrong], [wrong]]
    with pytest.raises((UnknownIdError, ArgumentTypeError), match=r"^row 2: .* at position 1"):
        plain_tokenizer.decode_batch(batch, threads=threads)
    with pytest.raises(ArgumentTypeError, match="item 2 of the batch"):
        plain_tokenizer.decode_batch([[1], [2], wrong])
