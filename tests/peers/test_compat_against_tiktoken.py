"""tiktoken's interface over our core against tiktoken: the same value or error of every method."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bpe_tokenizer.compat.tiktoken as ours_
from bpe_tokenizer.compat.tiktoken import load as our_load
from bpe_tokenizer.compat.tiktoken import model as our_model
from hostile import LONE_SURROGATES, hostile_texts, special_token_texts
from sampling import sample
from tiktoken_files import END, PAD, PATTERN, bytes_and, their_encoding

if TYPE_CHECKING:
    import tiktoken

theirs_ = pytest.importorskip("tiktoken", reason="tiktoken is not installed")

pytestmark = pytest.mark.peer

NAMES = ["gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony"]
CORPORA = ["books", "code", "multi", "zh"]

Pair = tuple["tiktoken.Encoding", ours_.Encoding]


def both(pattern: str, tokens: Iterable[str], special: dict[str, int], gap: int = 1) -> Pair:
    """An encoding of anybody's; only every `gap`-th rank is a token's."""
    ranks = {token: gap * rank for token, rank in bytes_and(*tokens).items()}
    arguments: dict[str, Any] = {"pat_str": pattern, "mergeable_ranks": ranks}
    arguments["special_tokens"] = special
    return theirs_.Encoding("mine", **arguments), ours_.Encoding("mine", **arguments)


@pytest.fixture(
    scope="session", params=["mine", *(pytest.param(name, marks=pytest.mark.fixtures) for name in NAMES)]
)
def pair(request: pytest.FixtureRequest) -> Pair:
    if request.param == "mine":
        tokens = ("he", "ll", "hell", "hello", " w", "é", "日", "\n\n")
        return both(PATTERN, tokens, {END: 1000, PAD: 1001})
    cache = request.getfixturevalue("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
        return their_encoding(request.param, cache), ours_.get_encoding(request.param)


def assert_same(pair: Pair, method: str, *arguments: Any, **options: Any) -> None:
    """A method returns the same, or raises an error of ours that is tiktoken's as well."""
    theirs, ours = (getattr(encoding, method) for encoding in pair)
    try:
        expected = theirs(*arguments, **options)
    except Exception as error:
        with pytest.raises(type(error)):
            ours(*arguments, **options)
        return
    value = ours(*arguments, **options)
    if isinstance(expected, np.ndarray):
        assert value.dtype == expected.dtype
        expected, value = expected.tolist(), value.tolist()
    assert value == expected, (method, repr(arguments)[:1000], options)


@pytest.fixture(scope="session")
def texts(documents: Callable[[str, int], list[str]]) -> list[str]:
    return [document for name in CORPORA for document in documents(name, 60_000)]


# -- published encodings --------------------------------------------------------------------------------


def test_attributes(pair: Pair) -> None:
    theirs, ours = pair
    names = "name _pat_str _mergeable_ranks _special_tokens max_token_value n_vocab eot_token"
    for attribute in (*names.split(), "special_tokens_set"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert repr(ours) == repr(theirs)
    assert_same(pair, "token_byte_values")


@pytest.mark.sampled(0.15)
def test_every_id_and_every_token(pair: Pair) -> None:
    theirs, _ = pair
    known = {*theirs._mergeable_ranks.values(), *theirs._special_tokens.values()}
    for token_id in set(range(theirs.n_vocab + 3)) - known:
        assert_same(pair, "decode_single_token_bytes", token_id)
    for token_id in known:
        assert_same(pair, "decode_single_token_bytes", token_id)
        assert_same(pair, "is_special_token", token_id)
        assert_same(pair, "encode_single_token", theirs.decode_single_token_bytes(token_id))
    assert_same(pair, "decode_tokens_bytes", list(known))
    assert_same(pair, "decode_bytes", list(known))


@pytest.mark.sampled(0.15)
@pytest.mark.fixtures
def test_texts(pair: Pair, texts: list[str]) -> None:
    hostile = hostile_texts(1000)
    for text in [*texts, *hostile]:
        assert_same(pair, "encode_ordinary", text)
    for text in [*texts[:50], *hostile[:500]]:
        assert_same(pair, "encode", text)
        assert_same(pair, "encode", text, disallowed_special=())
        if text not in LONE_SURROGATES:
            assert_same(pair, "encode_to_numpy", text)
    assert_same(pair, "encode_ordinary_batch", texts)
    assert_same(pair, "encode_batch", texts, disallowed_special=(), num_threads=2)


def test_special_tokens(pair: Pair) -> None:
    theirs, _ = pair
    names = sorted(theirs.special_tokens_set)[:5]
    choices: list[Any] = ["all", set(), {names[0]}, {names[-1], "<|reserved_200018|>"}, {"absent"}]
    choices.append(frozenset(names[:1]))
    forbidden: list[Any] = ["all", (), {names[0]}, [names[-1]], {"a"}, "", "<z", {"absent"}, {""}]
    for text in special_token_texts([*names, "<|reserved_200018|>"]):
        for allowed, disallowed in itertools.product(choices, forbidden):
            options = {"allowed_special": allowed, "disallowed_special": disallowed}
            assert_same(pair, "encode", text, **options)
            assert_same(pair, "encode_to_numpy", text, **options)
    batch = list(special_token_texts(names))
    assert_same(pair, "encode_batch", batch, allowed_special="all")
    assert_same(pair, "encode_batch", batch)


@pytest.mark.sampled(0.15)
@pytest.mark.fixtures
def test_decoding(pair: Pair, texts: list[str]) -> None:
    theirs, _ = pair
    rows = [theirs.encode_ordinary(text) for text in [*texts[:100], *hostile_texts(200)]]
    generator = random.Random(0)
    known = sorted(theirs._mergeable_ranks.values())
    rows += [generator.choices(known, k=generator.randint(0, 20)) for _ in range(500)]
    for row in rows:
        for errors in ("replace", "ignore", "strict"):
            assert_same(pair, "decode", row, errors=errors)
        assert_same(pair, "decode_with_offsets", row)
        assert_same(pair, "decode_tokens_bytes", row)
    assert_same(pair, "decode_batch", rows)
    assert_same(pair, "decode_batch", rows, errors="strict")
    assert_same(pair, "decode_bytes_batch", rows, num_threads=2)


@pytest.mark.fixtures
def test_bytes(pair: Pair, texts: list[str]) -> None:
    generator = random.Random(0)
    data = [text.encode() for text in texts if len(text) > 20]
    cut = [each[generator.randrange(9) : -generator.randrange(1, 9)][-400:] for each in data]
    broken = [
        bytes(generator.choices([*range(256), *b" ab\xe2\x82\xac\xf0\x9f\x99\x82\n" * 20], k=length))
        for length in range(1, 30)
        for _ in range(30)
    ]
    assert_same(pair, "_encode_bytes", b"")
    for each in [*cut, *broken]:
        assert_same(pair, "_encode_bytes", each)
        assert_same(pair, "_encode_single_piece", each)
    for text in texts[:20]:
        assert_same(pair, "_encode_only_native_bpe", text)


def assert_same_completions(pair: Pair, text: str, allowed: Any) -> None:
    (stable, rows), (our_stable, our_rows) = (
        encoding.encode_with_unstable(text, allowed_special=allowed, disallowed_special=())
        for encoding in pair
    )
    assert our_stable == stable, (text, allowed)
    # tiktoken's are in no order.
    assert sorted(our_rows) == sorted(rows), (text, allowed)


@pytest.mark.sampled(1.0)
@pytest.mark.fixtures
def test_unstable_ends(pair: Pair, texts: list[str]) -> None:
    generator = random.Random(0)
    ends = ["hello fanta", " ", "", "\n\n", "  \n  ", "日本", "é", "'s", "0123 "]
    ends += ["a\u2003", "a\x1c", "x \x85"]
    ends += [f"{end}<|endoftext|>{end}" for end in ends] + ["<|reserved_200018|>", "a<|reserved_200018|> "]
    for text in generator.choices(texts, k=20):
        start = generator.randrange(len(text))
        ends.append(text[start : start + generator.randint(1, 60)])
    hostile = [text for text in hostile_texts(300) if len(text) < 60 and text not in LONE_SURROGATES]
    for text in sample([*ends, *generator.sample(hostile, 40)], 0.04, pair[0].name):
        assert_same_completions(pair, text, set())
        assert_same_completions(pair, text, "all")


# The wrong arguments of each method.
WRONG: dict[str, list[tuple[Any, ...]]] = {
    "encode": [(b"a",), (None,)],
    "encode_ordinary": [(3,), (b"a",)],
    "encode_ordinary_batch": [([b"a"],)],
    "encode_batch": [([],), (["a", 3],), (3,), ("ab",)],
    "encode_with_unstable": [(b"a",), (3,)],
    "encode_to_numpy": [(b"a",)],
    "encode_single_token": [("absent ",), (b"\xff\xff\xff",), (3,), ("\ud800",)],
    "decode": [
        *(([10_000_000],), ([-1],), ([2**32],), ([1] * 10 + [-1],), (["a"],), ([1.0],), ([1.0] * 10,), (3,)),
        *(("ab",), (b"ab",), ([True, 5],), (np.array([5, 6]),), ([5], "nothing"), ([222], "nothing")),
    ],
    "decode_batch": [([[1], 3],), ([[1], [10_000_000]],), ([[1], [2**40]],)],
    "decode_single_token_bytes": [(10_000_000,), (-1,), (2**32,), ("a",), (1.0,), (True,)],
    "decode_tokens_bytes": [([1, -1],), (["a"],), ([1.0],)],
    "_encode_bytes": [("a",), (bytearray(b"a"),)],
}
WRONG_OPTIONS: list[tuple[str, Any, dict[str, Any]]] = [
    ("encode_batch", ["a"], {"num_threads": 0}),
    ("encode_batch", ["a"], {"num_threads": "2"}),
    ("encode_ordinary_batch", [], {"num_threads": -1}),
    ("decode_bytes_batch", [[97]], {"num_threads": -1}),
    ("decode_batch", [[1]], {"num_threads": 0}),
    ("encode", "a", {"allowed_special": ["<|endoftext|>"]}),
    ("encode", "a", {"allowed_special": "none"}),
    ("encode", "a", {"allowed_special": {3}}),
    ("encode", "a", {"disallowed_special": 3}),
    ("encode", "a", {"disallowed_special": None}),
    ("encode", "a", {"disallowed_special": {""}}),
]


def test_errors(pair: Pair) -> None:
    for method, calls in WRONG.items():
        for arguments in calls:
            assert_same(pair, method, *arguments)
    for method, argument, options in WRONG_OPTIONS:
        assert_same(pair, method, argument, **options)


@pytest.mark.fixtures
@pytest.mark.parametrize("pair", NAMES, indirect=True)
def test_pickles_hold_the_name(pair: Pair) -> None:
    for encoding in pair:
        data = pickle.dumps(encoding)
        assert len(data) < 200
        assert pickle.loads(data).encode("hello world") == encoding.encode("hello world")


# -- anybody's encodings --------------------------------------------------------------------------------

PATTERNS = [r"\w+|\s+", r" ?\w+", "[ab]+|c+(?! )", "(?s:.+)", r"(?i)A|\p{L}{2}| $"]
SPECIAL = {"<|a|>": 5000, "<|b|>": 5001, "c<": 5002}
TEXT = st.text("abc <|>é", max_size=20)
TOKENS = st.lists(st.text("abcé ", min_size=2, max_size=5), unique=True, max_size=12)


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("pattern", PATTERNS)
@settings(deadline=None)
@given(tokens=TOKENS.flatmap(st.permutations), texts=st.lists(TEXT, min_size=1, max_size=9))
def test_any_ranks(pattern: str, tokens: list[str], texts: list[str]) -> None:
    pair = both(pattern, (token for token in tokens if len(token.encode()) > 1), SPECIAL, gap=3)
    for text in texts:
        assert_same(pair, "encode_ordinary", text)
        assert_same(pair, "encode", text)
        assert_same(pair, "encode", text, allowed_special="all")
        assert_same(pair, "_encode_bytes", text.encode()[:-1])
        for allowed in (set(), {"c<"}, "all"):
            assert_same_completions(pair, text, allowed)
    assert_same(pair, "token_byte_values")


def test_pickles_of_anybodys_encodings_hold_the_same() -> None:
    assert_same(both(".", ["ab"], SPECIAL), "__getstate__")


# -- tables and files -----------------------------------------------------------------------------------


def test_the_tables_of_models() -> None:
    import tiktoken.model as their_model

    assert our_model.MODEL_TO_ENCODING == their_model.MODEL_TO_ENCODING
    assert our_model.MODEL_PREFIX_TO_ENCODING == their_model.MODEL_PREFIX_TO_ENCODING
    prefixes = itertools.product(their_model.MODEL_PREFIX_TO_ENCODING, ("", "o", "-x"))
    for name in (*their_model.MODEL_TO_ENCODING, *map("".join, prefixes)):
        assert ours_.encoding_name_for_model(name) == theirs_.encoding_name_for_model(name)


def test_the_names_of_encodings() -> None:
    assert ours_.list_encoding_names() == theirs_.list_encoding_names()
    assert ours_.__version__ == theirs_.__version__


@pytest.mark.fixtures
def test_rank_files(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken.load as their_load

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    path = str(shared / "vocab" / "r50k_base.tiktoken")
    assert our_load.load_tiktoken_bpe(path) == their_load.load_tiktoken_bpe(path)
    our_load.dump_tiktoken_bpe(our_load.load_tiktoken_bpe(path), str(tmp_path / "ours"))
    assert (tmp_path / "ours").read_bytes() == Path(path).read_bytes()
    vocab = tmp_path / "vocab.bpe"
    vocab.write_bytes(b"#version: 0.2\n" + (shared / "vocab" / "gpt2-merges.txt").read_bytes())
    files = (str(vocab), str(shared / "vocab" / "gpt2-vocab.json"))
    expected = their_load.data_gym_to_mergeable_bpe_ranks(*files)
    assert our_load.data_gym_to_mergeable_bpe_ranks(*files) == expected
