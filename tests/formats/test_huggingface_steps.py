"""The steps of a tokenizer.json: what is read of each, and what is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import FormatError, PostProcessor
from bpe_tokenizer.formats.huggingface.decoder import read_decoder, write_decoder
from bpe_tokenizer.formats.huggingface.post_processor import read_post_processor
from bpe_tokenizer.formats.huggingface.pre_tokenizer import (
    PUNCTUATION,
    read_pre_tokenizer,
    write_pre_tokenizer,
)
from bpe_tokenizer.formats.json_file import Field
from bpe_tokenizer.model import Decoder, Metaspace, PrefixSpace, Split
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN
from hf_files import FUSE, LLAMA3_REGEX, STRIP, TO_SPACE, byte_level, split, template

GPT2_SPLIT = Split(pattern=GPT2_SPLIT_PATTERN)
SPACES = Split(pattern=r"\s", behavior="Removed")
SIGNS = Split(pattern=f"[{PUNCTUATION}]")
RUNS_OF_SIGNS = Split(pattern=f"[{PUNCTUATION}]+")
WORDS = Split(pattern=r"\w+|[^\w\s]+", behavior="Removed", invert=True)
LLAMA3 = Split(pattern=LLAMA3_REGEX)
FIRST = {"type": "Metaspace", "replacement": "_"}
NEVER = {"prepend_scheme": "never", "add_prefix_space": False, "split": False, "str_rep": "_"}
FALLBACK = {"type": "ByteFallback"}


def field(value: Any) -> Field:
    return Field(Path("tokenizer.json"), "x", value)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"type": "ByteLevel", "add_prefix_space": False}, [GPT2_SPLIT]),
        (byte_level(add_prefix_space=True), [PrefixSpace(), GPT2_SPLIT]),
        (byte_level(use_regex=False), []),
        (FIRST, [Metaspace("Metaspace", "_", "always", True)]),
        (FIRST | NEVER, [Metaspace("Metaspace", "_", "never", False)]),
        (
            FIRST | {"prepend_scheme": "first", "add_prefix_space": True},
            [Metaspace("Metaspace", "_", "first", True)],
        ),
        ({"type": "Digits", "individual_digits": True}, [Split(pattern=r"\p{N}")]),
        ({"type": "Digits", "individual_digits": False}, [Split(pattern=r"\p{N}+")]),
        ({"type": "Punctuation"}, [SIGNS]),
        ({"type": "Punctuation", "behavior": "Contiguous"}, [RUNS_OF_SIGNS]),
        ({"type": "Punctuation", "behavior": "MergedWithNext"}, [SIGNS._replace(behavior="MergedWithNext")]),
        ({"type": "BertPreTokenizer"}, [SPACES, SIGNS]),
        ({"type": "Whitespace"}, [WORDS]),
        ({"type": "WhitespaceSplit"}, [SPACES]),
        ({"type": "CharDelimiterSplit", "delimiter": "."}, [Split(pattern=r"\.", behavior="Removed")]),
        ({"type": "FixedLength"}, [Split(pattern=r"[\s\S]{5}")]),
        ({"type": "FixedLength", "length": 1}, [Split(pattern=r"[\s\S]{1}")]),
        ({"type": "FixedLength", "length": 1000}, [Split(pattern=r"[\s\S]{1000}")]),
        (split("a+", invert=True), [Split(pattern="a+")]),
        (split("a+", behavior="Removed"), [Split(pattern="a+", behavior="Removed")]),
        (split("a+", behavior="Removed", invert=True), [Split("Split", "a+", "Removed", True)]),
        (split(LLAMA3_REGEX, behavior="Removed", invert=True), [LLAMA3]),
        (split(LLAMA3_REGEX, behavior="Removed"), [LLAMA3._replace(behavior="Removed")]),
    ],
)
def test_the_steps_that_split(step: Any, expected: list[Any]) -> None:
    in_bytes = step["type"] == "ByteLevel"
    assert read_pre_tokenizer(field(step)) == (expected, in_bytes)
    if step["type"] not in ("ByteLevel", "Metaspace"):
        of_bytes = [split._replace(type="SplitBytes") for split in expected]
        assert read_pre_tokenizer(field(step), in_bytes=True) == (of_bytes, True)
    assert read_pre_tokenizer(field(write_pre_tokenizer(expected, in_bytes))) == (expected, in_bytes)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (SIGNS, {"type": "Punctuation", "behavior": "Isolated"}),
        (RUNS_OF_SIGNS, {"type": "Punctuation", "behavior": "Contiguous"}),
        (SPACES, {"type": "WhitespaceSplit"}),
        (Split(pattern=r"a\.b"), split("a.b", "String")),
    ],
)
def test_a_step_is_written_in_its_shortest_form(step: Any, expected: Any) -> None:
    assert write_pre_tokenizer([step], in_bytes=False) == expected


def bert(cls: Any = ("a", 1), sep: Any = ("b", 2), kind: str = "BertProcessing") -> Any:
    return {"type": kind, "cls": list(cls), "sep": list(sep)}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"type": "ByteLevel"}, PostProcessor()),
        (bert(), PostProcessor((1,), (2,))),
        (bert(["a", 3], ["b", 3], "RobertaProcessing"), PostProcessor((3,), (3,))),
        (template("x", "$A", "y", "x", ids={"x": [1, 2], "y": [3]}), PostProcessor((1, 2), (3, 1, 2))),
        (template("$A", ids={}), PostProcessor()),
        (template("$A", "$A", ids={}), r"^tokenizer\.json: x\.single: holds Sequence A 2 times"),
        (bert(["a"]), r"x\.cls: .* must be a token and its id"),
        (bert(sep=["b", 4]), r"x\.sep\[1\]: 4 is not the id of"),
        (bert([1, 1]), r"x\.cls\[0\]: must be a string"),
        ({"type": "BertProcessing", "sep": ["b", 2]}, r"x\.cls: is missing"),
    ],
)
def test_the_steps_that_add_tokens(step: Any, expected: PostProcessor | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(FormatError, match=expected):
            read_post_processor(field(step), {1, 2, 3})
        return
    steps = [{"type": "ByteLevel"}, step, {"type": "ByteLevel"}]
    for each in (step, {"type": "Sequence", "processors": steps}):
        assert read_post_processor(field(each), {1, 2, 3}) == expected


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([FUSE], None),
        ([], None),
        ([TO_SPACE], Decoder(space="▁")),
        ([FALLBACK], Decoder(byte_fallback=True)),
        ([TO_SPACE, FALLBACK, FUSE], Decoder("▁", True, "none")),
        ([FUSE, STRIP], Decoder(strip="one")),
        ([FUSE, STRIP | {"start": 0, "stop": 0}], None),
        ([TO_SPACE, FALLBACK, FUSE, STRIP], Decoder("▁", True, "one")),
        ([FIRST], Decoder("_", False, "first")),
        ([FIRST | {"prepend_scheme": "never"}], Decoder("_", False, "none")),
        ([FUSE, STRIP | {"stop": 1}], r"x\.decoders\[1\]: .* must strip one space"),
        ([FUSE, STRIP, FUSE], r"x\.decoders\[2\]: Fuse is not supported here"),
        ([TO_SPACE, TO_SPACE], r"x\.decoders\[1\]: Replace is not supported here"),
        ([FIRST | {"replacement": "ab"}], r"replacement: 'ab' must be one character"),
    ],
)
def test_the_steps_that_decode(steps: list[Any], expected: Decoder | str | None) -> None:
    read = field({"type": "Sequence", "decoders": steps})
    if isinstance(expected, str):
        with pytest.raises(FormatError, match=expected):
            read_decoder(read)
        return
    assert read_decoder(read) == expected
    assert read_decoder(field(write_decoder(expected))) == expected


@pytest.mark.parametrize(
    ("decoder", "expected"),
    [
        (None, FUSE),
        (Decoder(strip="one"), {"type": "Sequence", "decoders": [FUSE, STRIP]}),
        (Decoder("▁"), {"type": "Sequence", "decoders": [TO_SPACE, FUSE]}),
        (Decoder("_", strip="first"), FIRST | {"prepend_scheme": "always", "split": True}),
    ],
)
def test_what_is_written_of_a_decoder(decoder: Decoder | None, expected: Any) -> None:
    assert write_decoder(decoder) == expected


def test_a_decoder_that_no_step_is() -> None:
    with pytest.raises(FormatError, match=r"^decoder: tokenizer\.json cannot hold"):
        write_decoder(Decoder("▁", byte_fallback=True, strip="first"))
