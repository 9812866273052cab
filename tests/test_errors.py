from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import bpe_tokenizer
from bpe_tokenizer import ArgumentTypeError, BPETokenizer, TokenizerError, _core, errors

NO_TEXT: Any = 3
NO_VOCAB: Any = {"a": 1}
NO_PATTERNS: Any = [1]


@pytest.mark.parametrize("name", sorted(set(errors.__all__) - {"TokenizerError", "shorten"}))
def test_every_error_is_one_of_ours_and_the_built_in_that_fits(name: str) -> None:
    error = getattr(bpe_tokenizer, name)
    assert issubclass(error, TokenizerError)
    assert issubclass(error, ValueError | TypeError | KeyError | RuntimeError | ImportError | OSError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tokenizer: tokenizer.encode(3), "encode expects a str, not int"),
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
