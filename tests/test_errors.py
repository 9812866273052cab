from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bpe_tokenizer
from bpe_tokenizer import ArgumentTypeError, BPETokenizer, TokenizerError, _core, errors

NO_TEXT: Any = 3
NO_VOCAB: Any = {"a": 1}
NO_PATTERNS: Any = [1]


FUNCTIONS = {"caller_level", "did_you_mean", "escaped", "shorten"}


@pytest.mark.parametrize("name", sorted({*errors.__all__} - {"TokenizerError", *FUNCTIONS}))
def test_every_error_is_one_of_ours_and_the_built_in_that_fits(name: str) -> None:
    error = getattr(bpe_tokenizer, name)
    assert issubclass(error, TokenizerError)
    assert issubclass(error, ValueError | TypeError | KeyError | RuntimeError | ImportError | OSError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tokenizer: tokenizer.encode(b"a"), "encode_bytes"),
        (lambda tokenizer: tokenizer.encode_bytes("a"), "encode_bytes expects bytes, not str"),
        (lambda tokenizer: tokenizer.encode_batch(["a", 3]), "item 1 is int"),
        (lambda tokenizer: tokenizer.decode([1, "a"]), "ids must be integers, not 'a' at position 1"),
        (lambda tokenizer: tokenizer.truncate("a", "b"), "max_tokens must be an int, not str"),
        (
            lambda tokenizer: _core.Encoder(tokenizer.model.core).encode(NO_TEXT),
            "text must be str or bytes, not int",
        ),
        (lambda tokenizer: _core.Model(NO_VOCAB, [], split_patterns=[]), "vocab holds the wrong types"),
        (lambda tokenizer: BPETokenizer(split_pattern=NO_PATTERNS), "a split pattern must be a str, not int"),
        (lambda tokenizer: tokenizer.train(3, verbose=False), "a corpus must be a str, a Path or"),
    ],
)
def test_a_wrong_type_is_named(
    tokenizer: BPETokenizer, call: Callable[[BPETokenizer], object], message: str
) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        call(tokenizer)


LONG = "x" * 5000
LONG_TOKEN = f"<|{LONG}|>"
LONG_CALLS: dict[str, Callable[[BPETokenizer], object]] = {
    "allowed_special": lambda tokenizer: tokenizer.encode("a", allowed_special={LONG}),
    "allowed_special-str": lambda tokenizer: tokenizer.encode("a", allowed_special=cast("Any", LONG)),
    "disallowed_special": lambda tokenizer: tokenizer.encode(LONG_TOKEN, disallowed_special={LONG_TOKEN}),
    "bos_token": lambda tokenizer: setattr(tokenizer, "bos_token", LONG),
    "bos_token_id": lambda tokenizer: setattr(tokenizer, "bos_token_id", LONG),
    "add_special_tokens": lambda tokenizer: tokenizer.add_special_tokens({LONG: -1}),
    "add_special_tokens-str": lambda tokenizer: tokenizer.add_special_tokens(LONG),
    "add_special_tokens-taken": lambda tokenizer: tokenizer.add_special_tokens({LONG: 65}),
    "add_special_tokens-twice": lambda tokenizer: tokenizer.add_special_tokens([LONG, LONG]),
    "convert_tokens_to_string": lambda tokenizer: tokenizer.convert_tokens_to_string(LONG),
    "decode-errors": lambda tokenizer: tokenizer.decode([65], errors=LONG),
    "encode_with_offsets": lambda tokenizer: tokenizer.encode_with_offsets("a", unit=cast("Any", LONG)),
    "return_tensors": lambda tokenizer: tokenizer.encode_batch(["a"], return_tensors=cast("Any", LONG)),
    "padding": lambda tokenizer: tokenizer.encode_batch(["a"], padding=cast("Any", LONG)),
    "max_tokens": lambda tokenizer: tokenizer.truncate("a", -(10**4000)),
    "normalization": lambda _: BPETokenizer(normalization=cast("Any", LONG)),
    "split_pattern": lambda _: BPETokenizer(split_pattern=f"({LONG}"),
    "split_pattern-name": lambda _: BPETokenizer(split_pattern=f"{LONG}("),
    "from_tiktoken": lambda _: BPETokenizer.from_tiktoken(LONG),
    "from_tiktoken-pattern": lambda _: BPETokenizer.from_tiktoken(LONG, split_pattern="a"),
    "tie_break": lambda tokenizer: tokenizer.train("a", tie_break=cast("Any", LONG), verbose=False),
    "special_tokens": lambda tokenizer: tokenizer.train("a", special_tokens={LONG: 1}, verbose=False),
    "max_memory": lambda tokenizer: tokenizer.train("a", max_memory=LONG, verbose=False),
    "chat_template": lambda tokenizer: tokenizer.apply_chat_template([], LONG),
    "role": lambda tokenizer: tokenizer.apply_chat_template([{"role": LONG, "content": ""}], "chatml"),
    "export": lambda tokenizer: tokenizer.export("x", LONG),
}


@pytest.mark.parametrize("name", LONG_CALLS)
def test_long_values_are_shortened_in_messages(tokenizer: BPETokenizer, name: str) -> None:
    tokenizer = copy.copy(tokenizer)
    tokenizer.add_special_tokens([LONG_TOKEN])
    with pytest.raises(TokenizerError) as caught:
        LONG_CALLS[name](tokenizer)
    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize("value", ["a" * 1000, b"\xff" * 1000, [1] * 1000, 10**1000, "\x00" * 79, "'", ""])
def test_shorten(value: object) -> None:
    for limit in (20, 80):
        text = errors.shorten(value, limit)
        assert len(text) <= limit
        assert text == repr(value) or text[:-1].endswith("...")


def test_every_message_prints_on_one_line_and_has_an_end() -> None:
    hostile = "\x1b]0;x\x07\x7f\x9b\u2028\u202e\udcff\n" + "k" * 5_000_000
    for name in set(errors.__all__) - {"DecodingError", "ContextLengthError", *FUNCTIONS}:
        error = getattr(errors, name)(f"tokenizer.json: {hostile}: is wrong; write another")
        again = pickle.loads(pickle.dumps(error))
        assert str(error) == str(again) == error.args[0]
        assert str(error).isprintable()
        assert len(str(error)) <= 500
        assert str(error).startswith(r"tokenizer.json: \x1b]0;x\x07\x7f\x9b\u2028\u202e\udcff\n")
        assert str(error).endswith("k: is wrong; write another")


@given(st.text(), st.integers(12, 80))
def test_escaped(text: str, limit: int) -> None:
    shown = errors.escaped(text, limit)
    assert shown.isprintable()
    assert len(shown) <= limit
    assert errors.escaped(shown, limit) == shown
    assert (shown == text) == (text.isprintable() and len(text) <= limit)
