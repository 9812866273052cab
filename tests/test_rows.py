"""Rows of a batch with offsets, pairs, words, the rest of long texts; padding afterwards.

tests/peers/test_transformers_face.py compares them with transformers.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import (
    ArgumentTypeError,
    BPETokenizer,
    EncodingResult,
    Model,
    OptionError,
    PostProcessor,
    UnknownColumnError,
)
from small_tokenizers import tiny


@pytest.fixture
def letters() -> BPETokenizer:
    """A tokenizer whose ids are the bytes, with BOS, EOS and a pad token."""
    tokenizer = tiny()
    tokenizer.add_special_tokens({"<s>": 256, "</s>": 257, "<pad>": 258})
    return tokenizer


def test_columns(letters: BPETokenizer) -> None:
    row = letters("ab", padding="max_length", max_length=3, return_offsets_mapping=True)
    assert isinstance(row, EncodingResult)
    assert row.ids is row.input_ids
    assert dict(row) == {
        "input_ids": [97, 98, 258],
        "attention_mask": [1, 1, 0],
        "offset_mapping": [(0, 1), (1, 2), (0, 0)],
    }
    assert row.keys() == list(dict(row))
    assert "offset_mapping" in row
    assert "labels" not in row
    assert list(row) == [97, 98, 258] == row
    assert row != [97, 98]
    assert (row[0], row[-1], row[:2], row[np.int64(1)]) == (97, 258, [97, 98], 98)
    assert 258 in row
    assert 1 not in row
    assert np.array([row, row]).tolist() == [row.ids, row.ids]
    assert repr(row) == (
        "EncodingResult(input_ids=[97, 98, 258], length=3, offsets=[(0, 1), (1, 2), (0, 0)])"
    )
    assert pickle.loads(pickle.dumps(row)) == row
    (plain,) = letters(["ab"])
    assert plain.offsets is None
    with pytest.raises(KeyError, match="no offset_mapping was asked for: pass return_offsets_mapping=True"):
        plain["offset_mapping"]
    with pytest.raises(IndexError):
        plain[2]
    wrongs: list[Any] = ["labels", None, 1.5]
    for wrong in wrongs:
        with pytest.raises(UnknownColumnError, match=r"has the columns 'input_ids', 'attention_mask', not"):
            plain[wrong]


def test_dicts(letters: BPETokenizer) -> None:
    assert letters("ab", return_dict=True) == {"input_ids": [97, 98], "attention_mask": [1, 1]}
    assert letters([], return_dict=True) == {"input_ids": [], "attention_mask": []}
    arrays = letters(["a", "bc"], padding=True, return_tensors="np", return_offsets_mapping=True)
    assert arrays["offset_mapping"].shape == (2, 2, 2)
    assert arrays["input_ids"].tolist() == [[97, 258], [98, 99]]


def test_a_list_for_who_expects_columns_says_what_to_pass(letters: BPETokenizer) -> None:
    chat = letters.apply_chat_template([{"role": "user", "content": "ab"}], "{{ messages[0].content }}")
    results: list[Any] = [letters("ab"), letters("ab", truncation=True, max_length=9), chat]
    for result in results:
        assert result == [97, 98]
        assert letters.decode(result) == "ab"
        with pytest.raises(
            ArgumentTypeError, match="a list and has no column 'input_ids': pass return_dict=True"
        ):
            result["input_ids"]
        # For everything else it is a list.
        assert (result[0], result[-1:], [*result]) == (97, [98], [97, 98])
        assert json.dumps(result) == str(result) == "[97, 98]"
        assert type(pickle.loads(pickle.dumps(result))) is type(copy.deepcopy(result)) is list
    batches: list[Any] = [letters(["ab", "c"]), letters(iter(["ab", "c"]), padding=True)]
    for rows in batches:
        assert letters.decode_batch(rows, skip_special_tokens=True) == ["ab", "c"]
        with pytest.raises(TypeError, match="pass return_dict=True"):
            rows["attention_mask"]


def test_the_rest_of_long_texts(letters: BPETokenizer) -> None:
    options: dict[str, Any] = {"truncation": True, "return_overflowing_tokens": True}
    (row,) = letters.encode_batch(["abcde"], max_length=3, stride=1, **options)
    assert "overflowing=1" in repr(row)
    columns = letters(["abcde", "f"], True, max_length=4, padding=True, return_dict=True, **options)
    assert columns["overflow_to_sample_mapping"] == [0, 0, 0, 1]
    with pytest.raises(OptionError, match="stride is 2; it must be less than the 2 ids of a row"):
        letters("abcde", max_length=2, stride=2, **options)
    with pytest.raises(OptionError, match="stride is -1; it must be at least 0"):
        letters("abcde", max_length=2, stride=-1, **options)
    # A stride has no effect without a rest.
    assert letters("abcde", max_length=2, stride=9, truncation=True) == [97, 98]


def test_pairs(letters: BPETokenizer) -> None:
    assert letters("a", True, text_pair="b") == [256, 97, 257, 256, 98, 257]
    assert letters("a", text_pair="b") == [97, 98]
    (row,) = letters.encode_batch(["a"], True, text_pair=["bc"], return_offsets_mapping=True)
    assert row.sequence_ids == [None, 0, None, None, 1, 1, None]
    assert row.offsets == [(0, 0), (0, 1), (0, 0), (0, 0), (0, 1), (1, 2), (0, 0)]
    call: Callable[..., object] = letters
    wrong: dict[str, dict[str, Any]] = {
        "cannot bring a pair of 4 and 3 ids to 2": {"truncation": "only_second", "max_length": 2},
        "cannot cut both texts of a pair": {"truncation": True, "return_overflowing_tokens": True},
        "leaves no room": {"truncation": True, "max_length": 3, "add_special_tokens": True},
    }
    for message, options in wrong.items():
        with pytest.raises(OptionError, match=message):
            call("abcd", text_pair="xyz", **{"max_length": 2, **options})
    with pytest.raises(OptionError, match="cuts text_pair, but there is none"):
        call("abcd", truncation="only_second", max_length=2)
    with pytest.raises(OptionError, match="text_pair has 1 texts for 2"):
        letters.encode_batch(["a", "b"], text_pair=["c"])
    with pytest.raises(ArgumentTypeError, match="text_pair expects a list of str"):
        letters.encode_batch(["a"], text_pair="c")


def test_the_ids_around_a_pair_are_those_of_the_file(letters: BPETokenizer, tmp_path: Path) -> None:
    around = PostProcessor((256,), (257,), pair=((256,), (257, 257), (257,)))
    roberta = BPETokenizer.from_model(Model(letters.model.core, post_processor=around))
    assert roberta("a", True, text_pair="b") == [256, 97, 257, 257, 98, 257]
    assert roberta != letters
    roberta.save(tmp_path / "saved")
    roberta.export(tmp_path / "saved.json", "base64-json")
    for path in (tmp_path / "saved", tmp_path / "saved.json"):
        again = BPETokenizer.load(path)
        assert again("a", True, text_pair="b") == [256, 97, 257, 257, 98, 257]
        assert again == roberta
    unusual = PostProcessor((256,), pair=())
    odd = BPETokenizer.from_model(Model(letters.model.core, post_processor=unusual))
    assert odd("a", text_pair="b") == [97, 98]
    with pytest.raises(OptionError, match="orders pairs in an unusual way"):
        odd("a", True, text_pair="b")


def test_words(letters: BPETokenizer) -> None:
    row = letters(["ab", "", "c"], True, is_split_into_words=True, return_offsets_mapping=True)
    assert isinstance(row, EncodingResult)
    assert row.ids == [256, 97, 98, 99, 257]
    assert row.word_ids == [None, 0, 0, 2, None]
    assert row.offsets == [(0, 0), (0, 1), (1, 2), (0, 1), (0, 0)]
    rows = letters([["ab"], ["c", "d"]], is_split_into_words=True, return_dict=True)
    assert rows["input_ids"] == [[97, 98], [99, 100]]
    merged = tiny("a|b")
    assert merged(["a", "b"], is_split_into_words=True).ids == [97, 98]
    wrongs: list[Any] = ["a b", [["a"], "b"], [["a"], 5], [5]]
    for wrong in wrongs:
        with pytest.raises(ArgumentTypeError, match=r"list of (words|str)|not int"):
            letters(wrong, is_split_into_words=True)
    assert letters([], is_split_into_words=True, return_dict=True) == {"input_ids": [], "attention_mask": []}


def test_rows_without_texts(letters: BPETokenizer) -> None:
    assert letters.encode_batch([], return_offsets_mapping=True) == []
    assert letters.encode_batch([], text_pair=[]) == []


def test_padding_afterwards(letters: BPETokenizer) -> None:
    rows = letters.encode_batch(["ab", "c"], return_offsets_mapping=True)
    assert letters.pad(rows) == {
        "input_ids": [[97, 98], [99, 258]],
        "attention_mask": [[1, 1], [1, 0]],
        "offset_mapping": [[(0, 1), (1, 2)], [(0, 1), (0, 0)]],
    }
    labelled: list[dict[str, Any]] = [
        {"input_ids": np.array([97]), "labels": [1, 2, 3]},
        {"input_ids": (98, 99), "labels": [4]},
    ]
    assert letters.pad(labelled, padding_side="left") == {
        "input_ids": [[258, 97], [98, 99]],
        "labels": [[1, 2, 3], [4]],
        "attention_mask": [[0, 1], [1, 1]],
    }
    columns = {"input_ids": [[97], [98, 99]], "special_tokens_mask": [[1], [0, 0]]}
    padded = letters.pad(columns, padding="max_length", max_length=3, return_tensors="np")
    assert padded["special_tokens_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]
    assert padded["input_ids"].dtype == np.int64
    nothing: list[list[int]] = []
    assert letters.pad(nothing) == {"input_ids": [], "attention_mask": []}
    assert letters.pad([[97]], pad_to_multiple_of=4)["input_ids"] == [[97, 258, 258, 258]]
    wrongs: list[tuple[Any, str]] = [
        ([{"labels": [1]}], "pad needs input_ids, and the rows have"),
        ([{"input_ids": [1]}, {"input_ids": [1], "labels": [2]}], "row 1 has the columns"),
        ([{"input_ids": [1, 2], "attention_mask": [1]}], "attention_mask and input_ids must have a value"),
        ([5], "item 0 is int"),
        ({"input_ids": [1, 2]}, r"for one row, pass \[row\]"),
        ("ab", "pad expects a list of rows, not str"),
        (np.array(5), "pad expects a list of rows, not int"),
        ({"input_ids": 5}, "input_ids must be a list of rows, not int"),
    ]
    for wrong, message in wrongs:
        with pytest.raises((OptionError, ArgumentTypeError), match=message):
            letters.pad(wrong)
    for score in (0.7, "1", 2**63):
        with pytest.raises(OptionError, match=r"columns of integers .* 'score' is another"):
            letters.pad([{"input_ids": [1], "score": score}], return_tensors="np")
    with pytest.raises(
        OptionError, match="pad_to_multiple_of is 4294967296; it must be from 1 to 16,777,216"
    ):
        letters.pad([[97]], pad_to_multiple_of=2**32)


def test_sizes_and_membership(letters: BPETokenizer) -> None:
    gap = tiny("a|b")
    gap.add_special_tokens({"<|end|>": 999})
    assert (gap.n_vocab, len(gap), gap.vocab_size) == (1000, 258, 257)
    assert BPETokenizer().n_vocab == 0
    present: list[Any] = ["ab", b"ab", 256, np.int64(999), "<|end|>"]
    assert [each for each in present if each not in gap] == []
    for absent in ("abc", b"abc", 257, True, 1.0, None, [97], np.array([97])):
        assert absent not in gap
    assert "a" not in BPETokenizer()
    assert (gap.token_to_id("<|end|>"), gap.token_to_id("no")) == (999, None)
    assert (gap.token_to_id(b"ab"), gap.token_to_id(b"<|end|>"), gap.token_to_id(b"no")) == (256, 999, None)
    assert (gap.id_to_token(256), gap.id_to_token(500)) == ("ab", None)
    with pytest.raises(ArgumentTypeError, match="expects a str or bytes, not int"):
        gap.token_to_id(5)  # type: ignore[arg-type]


def test_equal_by_value(letters: BPETokenizer, tmp_path: Path) -> None:
    one, two = tiny("a|b"), tiny("a|b")
    assert one == two
    assert hash(one) == hash(two)
    assert len({one, two, letters}) == 2
    letters.save(tmp_path)
    assert BPETokenizer.from_pretrained(tmp_path) == letters
    two.add_special_tokens(["<|end|>"])
    assert one != two
    assert one != "a tokenizer"
    assert tiny("a|b", normalization="NFC") != one
    eos = tiny("a|b")
    eos.add_special_tokens(["<|end|>"])
    eos.eos_token = "<|end|>"
    assert eos != two  # add_special_tokens=True adds another id
    assert BPETokenizer("gpt2") == BPETokenizer("gpt2")
    assert hash(BPETokenizer("gpt2")) == hash(BPETokenizer("gpt2"))
    assert BPETokenizer("gpt2") != BPETokenizer("cl100k")
    assert BPETokenizer("gpt2") != one


def test_max_length_without_effect_warns(letters: BPETokenizer) -> None:
    rows = [[97], [97, 98]]
    for call in (
        lambda **options: letters("abc", max_length=2, **options),
        lambda **options: letters(["abc"], max_length=2, **options),
        lambda **options: letters("abc", max_length=2, return_tensors="np", **options),
        lambda **options: letters.encode_batch(["abc"], max_length=2, **options),
        lambda **options: letters.encode_batch(["abc"], text_pair=["d"], max_length=2, **options),
    ):
        with pytest.warns(UserWarning, match="max_length=2 has no effect: pass truncation=True") as caught:
            call()
        assert [warning.filename for warning in caught] == [__file__]
        call(truncation=True)
        call(truncation=True, padding=True)
    with pytest.warns(UserWarning, match="a row has 3 ids, and max_length=2 cuts none without truncation"):
        longer = letters.encode_batch(["abc", "a"], padding=True, max_length=2)
    assert list(map(len, longer)) == [3, 2]
    with pytest.warns(UserWarning, match="max_length=2 has no effect"):
        letters.pad(rows, padding=False, max_length=2)
    letters.pad(rows, max_length=3)
