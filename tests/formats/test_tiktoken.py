"""Rank files, `tiktoken.Encoding` objects and their patterns."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import (
    AddedToken,
    ArgumentTypeError,
    BPETokenizer,
    FormatError,
    Model,
    ModelError,
    OptionError,
    PatternError,
    _core,
)
from bpe_tokenizer.compat.tiktoken import Encoding
from bpe_tokenizer.formats import tiktoken as format_
from bpe_tokenizer.formats.tiktoken.patterns import tiktoken_pattern
from bpe_tokenizer.formats.tiktoken.published import PUBLISHED, find_published
from bpe_tokenizer.formats.tiktoken.ranks import parse_ranks, write_ranks
from bpe_tokenizer.model import PrefixSpace, Split
from bpe_tokenizer.patterns import NAMED_PATTERNS
from tiktoken_files import TINY, bytes_and, core, encoding, ids

# -- rank files -----------------------------------------------------------------------------------------


def test_a_rank_file_is_read_and_written_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "my.tiktoken"
    path.write_bytes(TINY)
    model = format_.load(path, split_pattern="gpt2", special_tokens=["<|end|>"])
    assert model.core.merges == [(b"a", b"b"), (b"ab", b"c")]
    assert model.core.ignore_merges
    assert [token[:3] for token in model.core.added_tokens] == [("<|end|>", 258, True)]
    assert ids(model, ["abcab<|end|>"]) == [[257, 256, 258]]
    load_kwargs = format_.save(model, tmp_path / "sub" / "again.tiktoken")
    assert (tmp_path / "sub" / "again.tiktoken").read_bytes() == TINY
    patterns = list(NAMED_PATTERNS["gpt2"].patterns)
    assert load_kwargs == {"split_pattern": patterns, "special_tokens": {"<|end|>": 258}}


@pytest.mark.parametrize(
    "data",
    [
        TINY.replace(b"\n", b"\r\n"),
        TINY.replace(b"\n", b"\n\n"),
        TINY.removesuffix(b"\n"),
        TINY.replace(b" ", b"\t "),
        b"\n" + TINY + b"  \n",
        b"".join(reversed(TINY.splitlines(keepends=True))),
    ],
    ids=["line ends of Windows", "blank lines", "no last line end", "tabs", "edges", "another order"],
)
def test_spellings_that_tiktoken_reads_are_read(data: bytes) -> None:
    assert parse_ranks(data, "x") == bytes_and("ab", "abc")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "holds no tokens"),
        (b"\n \n", "holds no tokens"),
        (b"YQ==\n", 'line 1: must be a token in base64 and its rank, but has 1 fields: "YQ=="'),
        (b"\xdf" * 1000, 'line 1: .* 1 fields: "\ufffd{10}…\ufffd{10}"$'),
        (b" 5\n", "line 1: must be a token in base64 and its rank, but has 1 fields"),
        (b"YQ== 0 1\n", "line 1: .* has 3 fields"),
        (b"YQ== 0 YWI=\n1\n", "line 1: .* has 3 fields"),
        (b"YQ== 0\nYWI= 1", None),
        (b"YQ== 0\nYW", "line 2: .* has 1 fields"),
        (b"YQ= 0\n", "line 1: the token is not valid base64"),
        (b"YQ=== 0\n", "not valid base64"),
        (b"YQ==YQ== 0\n", "not valid base64"),
        (b"Y!Q== 0\n", "not valid base64"),
        (b"\xff\xfe 0\n", "not valid base64"),
        (b"YQ== -1\n", "line 1: the rank is not a non-negative integer"),
        (b"YQ== +1\n", "the rank is not a non-negative integer"),
        (b"YQ== 1_0\n", "the rank is not a non-negative integer"),
        (b"YQ== \xd9\xa1\n", "the rank is not a non-negative integer"),
        (b"YQ== YQ==\n", "the rank is not a non-negative integer"),
        (b"YQ== 4294967295\n", "line 1: the rank is too large; the largest rank is 4294967294"),
        (b"YQ== " + b"9" * 5000 + b"\n", "the rank is too large"),
        (b"YQ== 0\nYQ== 1\n", 'duplicate token "a"'),
        (b"YQ== 0\nYR== 1\n", 'duplicate token "a"'),
        (b"YQ== 7\nYg== 7\n", 'duplicate rank 7: tokens "a" and "b"'),
        (b"YQ== 7\nYg== 007\n", "duplicate rank 7"),
        (b"A" * 10_000_000 + b"\n", "must be a token in base64"),
        (b"\x00" * 1000, "must be a token in base64"),
        (b'{"model": {"type": "BPE"}}', "must be a token in base64|not valid base64"),
    ],
)
def test_a_broken_rank_file_is_refused_by_line(tmp_path: Path, data: bytes, problem: str | None) -> None:
    path = tmp_path / "broken.tiktoken"
    path.write_bytes(data)
    if problem is None:
        assert parse_ranks(data, "x") == {b"a": 0, b"ab": 1}
        problem = "no token for the byte"
    with pytest.raises(FormatError, match=problem) as caught:
        format_.load(path, split_pattern="gpt2", special_tokens={})
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("line", [b"YQ== 4294967294\n", b"YQ==\t4294967294\n"])
def test_the_largest_rank_is_read(line: bytes) -> None:
    assert parse_ranks(line, "x") == {b"a": 4294967294}


FRAGMENTS = st.sampled_from([b"YQ==", b"YWI=", b" ", b"\n", b"1", b"=", b"\r"])


@given(st.binary(max_size=60) | st.lists(FRAGMENTS).map(b"".join))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        ranks = parse_ranks(data, "x")
    except FormatError:
        return
    assert parse_ranks(write_ranks(ranks), "x") == dict(sorted(ranks.items(), key=lambda item: item[1]))
    lines = [line.split() for line in data.splitlines() if line.split()]
    assert ranks == {base64.b64decode(token): int(rank) for token, rank in lines}


def test_special_tokens_that_fill_the_holes_between_the_ranks_belong_to_the_vocabulary() -> None:
    ranks = bytes_and() | {b"ab": 256, b"abc": 258}
    model = format_.from_encoding(encoding(ranks=ranks, special={"<1>": 261, "<2>": 259, "<3>": 257}))
    assert model.core.added_ids_in_vocab == [257, 259]
    assert model.core.vocab_size == 260


def test_unknown_content_needs_the_pattern_and_the_special_tokens(tmp_path: Path) -> None:
    path = tmp_path / "cl100k_base.tiktoken"  # the name alone says nothing
    path.write_bytes(TINY)
    digest = hashlib.sha256(TINY).hexdigest()
    with pytest.raises(OptionError, match=rf"does not hold the split pattern.*{digest}.*pass split_pattern="):
        format_.load(path)
    with pytest.raises(OptionError, match=r"does not hold the special tokens.*special_tokens= \(\{\} for"):
        format_.load(path, split_pattern="cl100k")
    with pytest.raises(OptionError, match="split_pattern="):
        format_.load(path, special_tokens={})
    with pytest.raises(PatternError, match="did you mean 'cl100k'"):
        format_.load(path, split_pattern="cl100", special_tokens={})


@pytest.mark.parametrize(
    ("special_tokens", "expected"),
    [
        ({"<|x|>": 258, "<|y|>": 1000}, {"<|x|>": 258, "<|y|>": 1000}),
        (["<|x|>", "<|y|>"], {"<|x|>": 258, "<|y|>": 259}),
        (["ab", "<|y|>"], {"ab": 256, "<|y|>": 258}),
        ({"<|reserved_200018|>": 200018}, {"<|reserved_200018|>": 200018}),
        ({"<|reserved_200018|>": 200018, "<|x|>": 200018}, {"<|x|>": 200018}),
        ({}, {}),
    ],
)
def test_special_tokens_are_given_as_a_dict_or_a_list(
    tmp_path: Path, special_tokens: Any, expected: dict[str, int]
) -> None:
    path = tmp_path / "my.tiktoken"
    path.write_bytes(TINY)
    model = format_.load(path, split_pattern="gpt2", special_tokens=special_tokens)
    assert {token[0]: token[1] for token in model.core.added_tokens} == expected


@pytest.mark.parametrize(
    ("special_tokens", "error", "problem"),
    [
        ({"<|x|>": 256}, FormatError, r'my\.tiktoken: .*"<\|x\|>".*belongs to the token'),
        ({"<|x|>": 300, "<|y|>": 300}, FormatError, "same id"),
        ({"": 300}, ModelError, "empty"),
        ({"<|x|>": -1}, ModelError, "-1"),
        ({"<|x|>": "300"}, ArgumentTypeError, r"'<\|x\|>'.* must be an int"),
        ("<|x|>", ArgumentTypeError, "must be a list or a dict"),
        (["<|x|>", "<|x|>"], ModelError, "twice"),
    ],
)
def test_special_tokens_that_contradict_the_file_are_refused(
    tmp_path: Path, special_tokens: Any, error: type[Exception], problem: str
) -> None:
    path = tmp_path / "my.tiktoken"
    path.write_bytes(TINY)
    with pytest.raises(error, match=problem):
        format_.load(path, split_pattern="gpt2", special_tokens=special_tokens)


def test_what_is_published_is_recognised_by_its_content() -> None:
    for name, published in PUBLISHED.items():
        assert find_published(published.ranks.sha256, name) is published
    assert find_published(PUBLISHED["o200k_harmony"].ranks.sha256, "tokenizer") is PUBLISHED["o200k_base"]
    assert find_published(PUBLISHED["p50k_edit"].ranks.sha256, "tokenizer") is PUBLISHED["p50k_base"]
    assert find_published("0" * 64, "cl100k_base") is None
    llama = find_published("82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55", "tokenizer")
    assert llama is not None
    assert (llama.split_pattern,) == NAMED_PATTERNS["llama3"].patterns
    assert llama.special_tokens is None


# -- objects and patterns -------------------------------------------------------------------------------


def test_what_is_no_encoding_is_refused() -> None:
    for wrong in ("cl100k_base", None, object()):
        thing: Any = wrong
        with pytest.raises(ArgumentTypeError, match=r"expected a tiktoken\.Encoding, not"):
            format_.from_encoding(thing)


def test_an_encoding_that_a_model_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(FormatError, match=r"^the encoding 'mine': .*0x"):
        format_.from_encoding(encoding(ranks={b"ab": 0, b"b": 1}))
    with pytest.raises(FormatError, match=r"^the encoding 'mine': .*same id"):
        format_.from_encoding(encoding(special={"<|a|>": 300, "<|b|>": 300}))


@pytest.mark.parametrize("patterns", ["ab", [r"\w+"], [r"\w*"], [r"(a)\1"], ["(?s:..)"], ["a|(?<=q)"]])
def test_patterns_that_tiktoken_cannot_hold_are_refused(patterns: Sequence[str]) -> None:
    problem = "may leave text unmatched" if len(patterns) == 1 else "can hold one pattern, not 2"
    with pytest.raises(FormatError, match=f"^split_patterns: .*{problem}"):
        tiktoken_pattern(core({}, [], split_patterns=[*patterns]), "x")


@pytest.fixture
def their_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our `Encoding` in the place of tiktoken's, which may not be installed."""
    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(Encoding=Encoding))


DROPPING = Split(pattern="b+", behavior="Removed", invert=True)


@pytest.mark.usefixtures("their_class")
@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (core({256: b"ab"}, []), "^merges: tiktoken cannot"),
        (core({}, [], [AddedToken("<|a|>", 300, special=False)]), "^added_tokens: tiktoken cannot"),
        (core({}, [], split_patterns=["a", "b"]), "^split_patterns: tiktoken can hold one"),
        (core({}, [], pre_tokenizers=[DROPPING, DROPPING]), "^pre_tokenizers: tiktoken "),
        (core({}, [], pre_tokenizers=[DROPPING._replace(invert=False)]), "^pre_tokenizers: "),
        (core({}, [], pre_tokenizers=[DROPPING._replace(behavior="Contiguous")]), "^pre_tokenizers: "),
        (core({}, [], pre_tokenizers=[DROPPING], normalization="NFC"), "^pre_tokenizers: "),
        (core({}, [], pre_tokenizers=[PrefixSpace()]), "^(pre_tokenizers|add_prefix_space): "),
        (_core.Model({0: b"b"}, [], pre_tokenizers=[DROPPING], requires_all_bytes=False), "^vocab: "),
        (_core.Model({0: b"b"}, [], pre_tokenizers=[DROPPING], alphabet="characters"), "^alphabet: "),
    ],
)
def test_what_an_encoding_cannot_hold(model: _core.Model, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        format_.to_encoding(Model(model), "mine")


@pytest.mark.usefixtures("their_class")
def test_models_with_looked_up_pieces_become_encodings() -> None:
    made = format_.to_encoding(Model(core({256: b"abc"}, [], ignore_merges=True)), "mine")
    assert made.encode("abc ab") == [256, 32, 97, 98]
    whole = Model(core({256: b"a b"}, [], split_patterns=[], ignore_merges=True))
    assert format_.to_encoding(whole, "mine").encode("a b") == [256]


def test_two_tokens_of_one_rank() -> None:
    twice: Any = SimpleNamespace(
        _mergeable_ranks=bytes_and() | {b"ab": 97}, _pat_str="a", _special_tokens={}, name="mine"
    )
    with pytest.raises(FormatError, match=r"^the encoding .mine.: duplicate rank"):
        format_.from_encoding(twice)


def test_to_encoding_needs_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ImportError, match="pip install tiktoken"):
        format_.to_encoding(Model(core({}, [])), "mine")


def test_special_tokens_that_begin_alike_are_refused() -> None:
    pytest.importorskip("tiktoken")
    model = Model(core({}, [], [AddedToken("<|a|>", 300), AddedToken("<|a|>x", 301)]))
    with pytest.raises(FormatError, match=r"^added_tokens: .*'<\|a\|>' and '<\|a\|>x'"):
        format_.to_encoding(model, "mine")


def test_an_empty_token_keeps_its_id_as_in_whispers_file(tmp_path: Path) -> None:
    """The last line of multilingual.tiktoken is `= 50256`."""
    path, again = tmp_path / "multilingual.tiktoken", tmp_path / "again.tiktoken"
    ranks = {**{bytes([i]): i for i in range(256)}, b"ab": 256, b" th": 257, b"": 258}
    lines = [f"{base64.b64encode(token).decode() or '='} {rank}\n" for token, rank in ranks.items()]
    path.write_text("".join(lines), encoding="ascii")
    ours = BPETokenizer.from_tiktoken(path, split_pattern="gpt2", special_tokens={"<|end|>": 259})
    assert (ours.n_vocab, ours.vocab[258], ours.decode_bytes([97, 258, 98])) == (260, b"", b"ab")
    format_.save(Model(core({256: b"ab", 257: b""}, [(b"a", b"b")])), again)
    assert again.read_bytes().endswith(b"\n= 257\n")
    tiktoken_load = pytest.importorskip("tiktoken.load")
    assert tiktoken_load.load_tiktoken_bpe(str(path)) == ranks
    pattern, special = NAMED_PATTERNS["gpt2"].patterns[0], {"<|end|>": 259}
    theirs = pytest.importorskip("tiktoken").Encoding(
        "x", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
    )
    for text in ("", "a", "ab", "abab th", " the ab", "\n\n", "café", "日本", "a'll", " " * 9, "1 23"):
        assert ours.encode(text) == theirs.encode(text)
