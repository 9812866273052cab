from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer, EncodingResult, MissingDependencyError, OptionError
from small_tokenizers import tiny


def test_token_strings_are_made_when_asked_for() -> None:
    tokenizer = tiny()
    (result,) = tokenizer.encode_batch(["ab"])
    assert "token_strings" not in vars(tokenizer._compiled())
    assert result.tokens == tokenizer.tokenize("ab")
    assert "token_strings" in vars(tokenizer._compiled())


def test_a_batch_is_a_list_of_results(tokenizer: BPETokenizer) -> None:
    texts = ["def f(x):", "", "naïve"]
    results = tokenizer.encode_batch(texts)
    assert [result.input_ids for result in results] == [tokenizer.encode(text) for text in texts]
    for result, text in zip(results, texts, strict=True):
        assert isinstance(result, EncodingResult)
        assert result.attention_mask == [1] * len(result)
        assert result.tokens == tokenizer.tokenize(text)
        assert result.token_type_ids is None
        assert len(result) == len(result.input_ids)
    assert tokenizer.encode_batch([]) == []
    assert tokenizer.encode_batch(iter(texts)) == tokenizer.encode_batch(tuple(texts)) == results
    assert tokenizer.encode_batch(texts, threads=1) == tokenizer.encode_batch(texts, threads=5) == results
    assert pickle.loads(pickle.dumps(results)) == results
    assert results[0] != results[1]
    assert results[0] != "def f(x):"
    assert repr(results[1]) == "EncodingResult(input_ids=[], length=0)"
    assert repr(EncodingResult(list(range(9)), None, [])) == (
        "EncodingResult(input_ids=[0, 1, 2, 3, 4, 5, 6, 7]..., length=9)"
    )


def test_a_large_batch_keeps_its_order(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    lines = [line for text in stdlib_texts for line in text.splitlines(keepends=True)]
    expected = [tokenizer.encode(line) for line in lines]
    for threads in (1, 2, 7, None):
        assert [result.input_ids for result in tokenizer.encode_batch(lines, threads=threads)] == expected
        flat, offsets = tokenizer.encode_ragged(lines, threads=threads)
        rows = [flat[a:b].tolist() for a, b in pairwise(offsets)]
        assert rows == expected


def test_the_tokens_of_padding(tokenizer: BPETokenizer) -> None:
    (_, row) = tokenizer.encode_batch(["\0\0\0", "\0"], padding=True)
    assert row.tokens == ["Ā", "<|pad|>", "<|pad|>"]


def columns(batch: Any) -> list[list[list[int]]]:
    """The ids and the masks of a batch, of any type."""
    if isinstance(batch, list):
        return [[row.input_ids for row in batch], [row.attention_mask for row in batch]]
    columns = (batch["input_ids"], batch["attention_mask"])
    return [column if isinstance(column, list) else column.tolist() for column in columns]


@pytest.mark.parametrize(
    "fill",
    [
        lambda t: t.encode_batch(["abc", "c", "c"], padding=True),
        lambda t: t.encode_batch(["abc", "c", "c"], padding="longest", return_dict=True),
        lambda t: t.encode_batch(["abc", "c", "c"], padding=True, return_tensors="np"),
        lambda t: t.encode_batch(["abc", "c", "c"], padding=True, return_offsets_mapping=True),
        lambda t: t(["abc", "c", "c"], padding="max_length", max_length=2),
        lambda t: t(["abc", "c", "c"], padding=True, truncation=True, max_length=2, return_tensors="np"),
        lambda t: t.pad([[256, 99], [99], [99]]),
        lambda t: t.pad({"input_ids": [[256, 99], [99], [99]]}, return_tensors="np"),
    ],
)
def test_padding_without_a_pad_token(fill: Callable[[BPETokenizer], Any]) -> None:
    tokenizer = tiny("a|b")
    with pytest.warns(UserWarning, match=r"id 0.*pad_token = .*add_special_tokens\(\[") as caught:
        batch = fill(tokenizer)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert columns(batch) == [[[256, 99], [99, 0], [99, 0]], [[1, 1], [1, 0], [1, 0]]]
    tokenizer.add_special_tokens(["<|pad|>"])
    assert columns(fill(tokenizer))[0] == [[256, 99], [99, 257], [99, 257]]


def test_rows_of_one_length_need_no_pad_token() -> None:
    tokenizer = tiny("a|b")
    assert tokenizer("abc", padding=True, truncation=True, max_length=64) == EncodingResult(
        [256, 99], [1, 1], ["ab", "c"]
    )
    assert columns(tokenizer.encode_batch(["c", "d"], padding=True)) == [[[99], [100]], [[1], [1]]]
    tokenizer.add_special_tokens(["<|pad|>"])
    assert [row.input_ids for row in tokenizer.encode_batch(["abc", "c"], padding=True)] == [
        [256, 99],
        [99, 257],
    ]


def test_arrays(tokenizer: BPETokenizer) -> None:
    arrays = tokenizer.encode_batch(["\0", "\0"], return_tensors="np")
    assert {name: array.shape for name, array in arrays.items()} == dict.fromkeys(arrays, (2, 1))
    assert list(arrays) == ["input_ids", "attention_mask"]
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.int64)}
    assert tokenizer.encode_batch([], return_tensors="np")["input_ids"].shape == (0, 0)
    assert tokenizer.encode_batch([""], return_tensors="np")["attention_mask"].shape == (1, 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"truncation": True}, OptionError, "truncation=True needs max_length"),
        ({"padding": "max_length"}, OptionError, "needs max_length"),
        ({"padding": "left"}, OptionError, "padding is 'left'"),
        ({"padding_side": "up"}, OptionError, "padding_side is 'up'"),
        ({"truncation_side": "up"}, OptionError, "truncation_side is 'up'"),
        ({"padding": True, "pad_to_multiple_of": 0}, OptionError, "pad_to_multiple_of is 0"),
        ({"max_length": 0}, OptionError, "max_length is 0"),
        ({"padding": "max_length", "max_length": int(1e30)}, OptionError, "it must be from 1 to 16,777,216"),
        ({"max_length": "5"}, TypeError, "max_length must be an int, not str"),
        ({"max_length": True}, TypeError, "max_length must be an int, not bool"),
        ({"return_tensors": "np"}, OptionError, "rows of one length.*1 to 2 ids.*padding=True"),
        ({"return_tensors": "tf"}, OptionError, "return_tensors is 'tf'"),
        ({"threads": 0}, OptionError, "threads is 0"),
        ({"threads": 1.0}, TypeError, "threads must be an int"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tokenizer: BPETokenizer, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tokenizer.encode_batch(["\0", "\0\0"], **options)


@pytest.mark.parametrize("texts", ["a", b"a", 5, None, ["a", 5], ["a", None], [b"a"]])
def test_a_batch_is_of_texts(tokenizer: BPETokenizer, texts: Any) -> None:
    for batch in (tokenizer.encode_batch, tokenizer.encode_ragged):
        with pytest.raises(TypeError, match="expects a list of str"):
            batch(texts)


def test_pytorch_is_asked_for_by_command(tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[torch\].") as caught:
        tokenizer.encode_batch(["a"], return_tensors="pt")
    assert isinstance(caught.value, ImportError)


def test_tensors_are_made_of_the_arrays(tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = types.ModuleType("torch")
    setattr(stand_in, "from_numpy", lambda array: ("tensor", array))  # noqa: B010
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    tensors = tokenizer.encode_batch(["\0", "\0\0"], padding=True, return_tensors="pt")
    arrays = tokenizer.encode_batch(["\0", "\0\0"], padding=True, return_tensors="np")
    assert isinstance(tensors, dict)
    for name, array in arrays.items():
        kind, shared = tensors[name]
        assert kind == "tensor"
        assert shared.dtype == np.int64
        assert shared.tolist() == array.tolist()


def test_pytorch(tokenizer: BPETokenizer) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensors = tokenizer.encode_batch(["\0", "\0\0"], padding=True, return_tensors="pt")
    assert isinstance(tensors, dict)
    assert tensors["input_ids"].dtype == tensors["attention_mask"].dtype == torch.int64
    assert tensors["input_ids"].tolist() == [[0, 258], [0, 0]]
    assert tokenizer.decode(tensors["input_ids"][0]) == "\0<|pad|>"


def test_a_call_takes_a_text_or_texts(tokenizer: BPETokenizer) -> None:
    assert tokenizer(["hello"]) == tokenizer.encode_batch(["hello"])
    assert tokenizer("\0\0", return_tensors="np")["input_ids"].tolist() == [[0, 0]]
    wrong: list[Any] = [5, None, b"a"]
    for text in wrong:
        with pytest.raises(TypeError, match="str"):
            tokenizer(text)
