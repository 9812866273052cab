"""tiktoken's interface: `Encoding`, its errors, and pickling."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

import bpe_tokenizer.compat.tiktoken as tiktoken
from bpe_tokenizer import ModelError, PatternError, TokenizerError, UnknownIdError
from bpe_tokenizer.compat.tiktoken import registry
from tiktoken_files import END, PAD, PATTERN, bytes_and, merged


def encoding(*tokens: str | bytes, pat_str: str = PATTERN, **more: Any) -> tiktoken.Encoding:
    ranks = more.pop("mergeable_ranks", bytes_and(*tokens))
    special = more.pop("special_tokens", {END: 1000, PAD: 1001})
    return tiktoken.Encoding("mine", pat_str=pat_str, mergeable_ranks=ranks, special_tokens=special, **more)


@pytest.fixture(scope="module")
def mine() -> tiktoken.Encoding:
    return encoding("he", "ll", "hell", "hello", " w", "é", "日", "\n\n")


# -- text to ids ----------------------------------------------------------------------------------------


def expected(ranks: dict[bytes, int], pattern: str, text: str) -> list[int]:
    """What tiktoken's definition gives: pieces that match, looked up or merged."""
    ids = []
    for piece in (match.group().encode() for match in regex.finditer(pattern, text)):
        ids += [ranks[part] for part in ([piece] if piece in ranks else merged(ranks, piece))]
    return ids


@given(
    tokens=st.lists(st.text("abc", min_size=1, max_size=4), unique=True, min_size=1),
    text=st.text("abc", max_size=9),
)
def test_bytes_need_not_be_tokens(tokens: list[str], text: str) -> None:
    ranks = {token.encode(): index for index, token in enumerate(tokens)}
    ours = encoding(pat_str=r"\w+", mergeable_ranks=ranks, special_tokens={END: len(ranks)})
    try:
        ids = expected(ranks, r"\w+", text)
    except KeyError:
        with pytest.raises(KeyError, match="has no token in this encoding"):
            ours.encode(text)
        with pytest.raises(KeyError, match="has no token in this encoding"):
            ours.encode_batch([text])
        return
    assert ours.encode(text) == ours.encode_to_numpy(text).tolist() == ids
    assert ours.encode_batch([text]) == [ids]
    assert ours.decode(ids) == text
    assert ours.decode_batch([ids]) == [text]
    assert ours.token_byte_values() == sorted(ranks)
    for token_id in (len(ranks) + 1, 99, 300):
        with pytest.raises(KeyError):
            ours.decode([token_id])


def test_surrogates_are_joined_or_replaced(mine: tiktoken.Encoding) -> None:
    for encode in (mine.encode, mine.encode_ordinary, lambda text: mine.encode_batch([text])[0]):
        assert encode("\ud83d\udc4d") == list("👍".encode())
        assert encode("a\ud83d") == list("a\ufffd".encode())
    assert mine.encode_to_numpy("\ud83d").tolist() == list("\ufffd".encode())


# -- special tokens -------------------------------------------------------------------------------------


TEXT = f"hello{END} {PAD}"


def test_two_special_tokens_may_have_one_id() -> None:
    ours = encoding("ab", special_tokens={END: 300, "<|eot|>": 300, "<|a|>": 97, PAD: 301})
    text = f"ab{END}<|eot|><|a|>{PAD}"
    assert ours.encode(text, allowed_special="all") == [256, 300, 300, 97, 301]
    assert ours.encode_to_numpy(text, allowed_special="all").tolist() == [256, 300, 300, 97, 301]
    assert ours.encode_batch([text, "b"], allowed_special="all") == [[256, 300, 300, 97, 301], [98]]
    assert ours.encode("ab<|eot|>", allowed_special={"<|eot|>"}) == [256, 300]
    assert ours.encode("<|eot|>", allowed_special={END}, disallowed_special=()) == [*b"<|eot|>"]
    with pytest.raises(ValueError, match=r"<\|eot\|>"):
        ours.encode("ab<|eot|>")
    assert ours.decode([300, 97, 301]) == f"{END}a{PAD}"
    assert ours.encode_single_token("<|eot|>") == ours.encode_single_token(END) == 300
    assert ours.encode_with_unstable("b<|eot|>", allowed_special="all") == ([98, 300], [])
    assert [ours.is_special_token(token_id) for token_id in (97, 98, 300, 302)] == [True, False, True, False]
    with pytest.raises(KeyError):
        ours.decode([302])


# -- errors ---------------------------------------------------------------------------------------------


def test_an_unknown_id_is_an_error_of_ours_too(mine: tiktoken.Encoding) -> None:
    for call in (
        lambda: mine.decode([5000]),
        lambda: mine.decode([-1]),
        lambda: mine.decode_single_token_bytes(5000),
        lambda: mine.encode_single_token("absent"),
    ):
        with pytest.raises(UnknownIdError) as caught:
            call()
        assert isinstance(caught.value, TokenizerError)
        assert str(caught.value)[0] not in "'\""


FULL = bytes_and()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"mergeable_ranks": {}}, ModelError),
        ({"mergeable_ranks": FULL | {b"aa": 97}}, ModelError),
        ({"mergeable_ranks": FULL | {b"aa": -1}}, TypeError),
        ({"mergeable_ranks": FULL | {b"aa": 2**32}}, TypeError),
        ({"mergeable_ranks": FULL | {"aa": 300}}, TypeError),
        ({"mergeable_ranks": FULL | {b"aa": "300"}}, TypeError),
        ({"special_tokens": {END: -1}}, ModelError),
        ({"special_tokens": {END: 2**32}}, ModelError),
        ({"special_tokens": {"": 300}}, ModelError),
        ({"special_tokens": {END: "300"}}, TypeError),
        ({"pat_str": "("}, PatternError),
        ({"pat_str": 3}, TypeError),
        ({"explicit_n_vocab": 5}, ModelError),
        ({"explicit_n_vocab": 258}, ModelError),
    ],
)
def test_a_broken_encoding_is_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        encoding(**arguments)


# -- pickling -------------------------------------------------------------------------------------------


def test_pickling_and_copying(mine: tiktoken.Encoding) -> None:
    for copied in (pickle.loads(pickle.dumps(mine)), copy.copy(mine), copy.deepcopy(mine)):
        assert copied is not mine
        assert copied.encode(TEXT, allowed_special="all") == mine.encode(TEXT, allowed_special="all")
        assert vars(copied).keys() >= {"name", "_pat_str", "_mergeable_ranks", "_special_tokens"}


def test_what_is_registered_is_pickled_by_its_name(
    mine: tiktoken.Encoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ENCODINGS, "mine", mine)
    data = pickle.dumps(mine)
    assert len(data) < 200
    assert pickle.loads(data)._core_bpe is mine._core_bpe


# -- the import line ------------------------------------------------------------------------------------


PROGRAM = """
import sys
import bpe_tokenizer.compat.tiktoken as tiktoken
from bpe_tokenizer.compat.tiktoken import Encoding, encoding_for_model, get_encoding
from bpe_tokenizer.compat.tiktoken.core import Encoding as again
from bpe_tokenizer.compat.tiktoken.load import load_tiktoken_bpe
from bpe_tokenizer.compat.tiktoken.model import MODEL_TO_ENCODING
assert again is Encoding is tiktoken.Encoding
assert tiktoken.registry and tiktoken.model and tiktoken.core
assert tiktoken.__version__
print(sorted({"tiktoken", "regex", "requests", "blobfile", "transformers"} & sys.modules.keys()))
"""


def test_programs_change_the_import_line_and_load_nothing_else() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_educational_split_needs_regex(mine: tiktoken.Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(ImportError, match="pip install regex"):
        mine._encode_only_native_bpe("a")
