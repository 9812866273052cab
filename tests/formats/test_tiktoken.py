"""tiktoken's files without tiktoken: round trips, every refusal, broken files, the cache and downloads.

tests/peers compares with tiktoken itself.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import (
    AddedToken,
    ArgumentTypeError,
    BPETokenizer,
    FormatError,
    HubError,
    Model,
    ModelError,
    OptionError,
    PatternError,
    _core,
)
from bpe_tokenizer.compat.tiktoken import Encoding
from bpe_tokenizer.formats import tiktoken as format_
from bpe_tokenizer.formats.tiktoken.merges import ranks_from_model
from bpe_tokenizer.formats.tiktoken.patterns import MATCH_ALL, cover_all, model_settings, tiktoken_pattern
from bpe_tokenizer.formats.tiktoken.published import (
    PUBLISHED,
    PublishedEncoding,
    PublishedFile,
    find_published,
)
from bpe_tokenizer.formats.tiktoken.ranks import parse_ranks, write_ranks
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hostile import hostile_texts
from tiktoken_files import FileServer, bytes_and, merged, running

TINY = write_ranks(bytes_and("ab", "abc"))
TEXTS = ["ababc abcab", "<|end|>", "é日 \x00", *hostile_texts(50)[:200]]


def trained(texts: Sequence[str], vocab_size: int = 400, **options: Any) -> BPETokenizer:
    tokenizer = BPETokenizer(options.pop("split_pattern", "cl100k"), normalization=None)
    return tokenizer.train(texts, vocab_size, verbose=False, **options)


def ids(model: Model, texts: Sequence[str], special: bool = True) -> list[list[int]]:
    return _core.Encoder(model.core).encode_batch(texts, special)


def core(
    tokens: dict[int, bytes],
    merges: Sequence[tuple[bytes, bytes]] | None,
    added: Sequence[AddedToken] = (),
    **settings: Any,
) -> _core.Model:
    vocab = {byte: bytes([byte]) for byte in range(256)} | tokens
    if "pre_tokenizers" not in settings:
        settings.setdefault("split_patterns", [r"\S+|\s+"])
    return _core.Model(vocab, merges, added_tokens=added, **settings)


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
    assert load_kwargs == {
        "split_pattern": list(NAMED_PATTERNS["gpt2"].patterns),
        "special_tokens": {"<|end|>": 258},
    }


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
        (b"YQ==\n", "line 1: must be a token in base64 and its rank, but has 1 fields: b'YQ=='"),
        (b" 5\n", "line 1: must be a token in base64 and its rank, but has 1 fields"),
        (b"YQ== 0 1\n", "line 1: .* has 3 fields"),
        (b"YQ== 0 YWI=\n1\n", "line 1: .* has 3 fields"),
        (b"YQ== 0\nYWI= 1", None),
        (b"YQ== 0\nYW", "line 2: .* has 1 fields"),
        (b"YQ= 0\n", "line 1: the token is not valid base64"),
        (b"YQ=== 0\n", "not valid base64"),
        (b"YQ==YQ== 0\n", "not valid base64"),
        (b"Y 0\n", "not valid base64"),
        (b"Y!Q== 0\n", "not valid base64"),
        (b"\xff\xfe 0\n", "not valid base64"),
        (b"==== 0\n", "not valid base64"),
        (b"YQ== -1\n", "line 1: the rank is not a non-negative integer"),
        (b"YQ== +1\n", "the rank is not a non-negative integer"),
        (b"YQ== 1.0\n", "the rank is not a non-negative integer"),
        (b"YQ== 1_0\n", "the rank is not a non-negative integer"),
        (b"YQ== \xd9\xa1\n", "the rank is not a non-negative integer"),
        (b"YQ== YQ==\n", "the rank is not a non-negative integer"),
        (b"YQ== 4294967295\n", "the rank 4294967295 is too large; the largest rank is 4294967294"),
        (b"YQ== " + b"9" * 5000 + b"\n", "the rank is too large"),
        (b"YQ== 0\nYQ== 1\n", "duplicate token b'a'"),
        (b"YQ== 0\nYR== 1\n", "duplicate token b'a'"),
        (b"YQ== 0\n\nYQ== 1\n", "duplicate token b'a'"),
        (b"YQ== 7\nYg== 7\n", "duplicate rank 7: tokens b'a' and b'b'"),
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


@given(st.dictionaries(st.binary(min_size=1, max_size=9), st.integers(0, 2**32 - 2), min_size=1))
def test_what_is_written_is_read(ranks: dict[bytes, int]) -> None:
    unique = {token: rank for rank, token in {rank: token for token, rank in ranks.items()}.items()}
    assert parse_ranks(write_ranks(unique), "x") == unique


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none\.tiktoken: cannot be read"):
        format_.load(tmp_path / "none.tiktoken", split_pattern="gpt2", special_tokens={})
    with pytest.raises(FormatError, match="cannot be read"):
        format_.load(tmp_path, split_pattern="gpt2", special_tokens={})


def test_a_missing_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my.tiktoken"
    path.write_bytes(re.sub(rb"QQ==.*\n", b"", TINY))
    with pytest.raises(FormatError, match=r"my\.tiktoken: .*0x41"):
        format_.load(path, split_pattern="gpt2", special_tokens={})


def test_unknown_content_needs_the_pattern_and_the_special_tokens(tmp_path: Path) -> None:
    path = tmp_path / "cl100k_base.tiktoken"  # the name alone says nothing
    path.write_bytes(TINY)
    digest = hashlib.sha256(TINY).hexdigest()
    with pytest.raises(OptionError, match=rf"does not hold the split pattern.*{digest}.*pass split_pattern="):
        format_.load(path)
    with pytest.raises(OptionError, match=r"does not hold the special tokens.*special_tokens= \(\{\} if"):
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
        ({"<|x|>": "300"}, ArgumentTypeError, "must be an int"),
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
    for name, encoding in PUBLISHED.items():
        assert find_published(encoding.ranks.sha256, name) is encoding
    assert find_published(PUBLISHED["o200k_harmony"].ranks.sha256, "tokenizer") is PUBLISHED["o200k_base"]
    assert find_published(PUBLISHED["p50k_edit"].ranks.sha256, "tokenizer") is PUBLISHED["p50k_base"]
    assert find_published("0" * 64, "cl100k_base") is None
    llama = find_published("82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55", "tokenizer")
    assert llama is not None
    assert (llama.split_pattern,) == NAMED_PATTERNS["llama3"].patterns
    assert llama.special_tokens is None


# -- which models are ranks -----------------------------------------------------------------------------


def test_a_trained_tokenizer_is_saved_and_loaded(
    tmp_path: Path, stdlib_texts: list[str], mixed_text: str
) -> None:
    path = tmp_path / "my.tiktoken"
    corpus = [text[:20_000] for text in stdlib_texts] + [mixed_text]
    for special in (None, ["<|end|>", "<|pad|>"], {"<|end|>": 300, "<|far|>": 5000}):
        for pattern in ("cl100k", r"\w+", ("starcoder")):
            model = trained(corpus, split_pattern=pattern, special_tokens=special).model
            load_kwargs = format_.save(model, path)
            loaded = format_.load(path, **load_kwargs)
            assert loaded.core.vocab == model.core.vocab
            assert loaded.core.merges == model.core.merges
            assert loaded.core.split_patterns == model.core.split_patterns
            assert loaded.core.vocab_size == model.core.vocab_size
            texts = [*corpus, *TEXTS, "".join(load_kwargs["special_tokens"])]
            assert ids(loaded, texts) == ids(model, texts)


def test_a_model_that_does_not_split_is_saved(tmp_path: Path) -> None:
    model = Model(core({256: b"ab"}, [(b"a", b"b")], split_patterns=[]))
    load_kwargs = format_.save(model, tmp_path / "my.tiktoken")
    assert load_kwargs["split_pattern"] == [MATCH_ALL]
    assert ids(format_.load(tmp_path / "my.tiktoken", **load_kwargs), TEXTS) == ids(model, TEXTS)


A, B = b"a", b"b"
END = AddedToken("<|end|>", 999)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (core({}, [], normalization="NFC"), "^normalization: "),
        (core({}, [], normalizers=[("Lowercase",)]), "^normalizers: "),
        (core({}, [], add_prefix_space=True), "^add_prefix_space: "),
        (core({}, [], pre_tokenizers=[("Split", "a", "Contiguous", False)]), "^pre_tokenizers: "),
        (core({}, [], [END._replace(lstrip=True)]), r"^added_tokens: .*lstrip of '<\|end\|>'"),
        (core({}, [], [END._replace(single_word=True)]), "^added_tokens: .*single_word"),
        (
            core({}, [], [END._replace(special=False)]),
            "^added_tokens: .*which is not special and found in every",
        ),
        (core({}, [], [END, AddedToken("x", 5, normalized=True)._replace(id=998)]), "normalized"),
        (core({256: b"ab", 257: b"ab"}, []), "^vocab: duplicate token b'ab': ids 256 and 257"),
        (
            core({256: b"bc", 257: b"ab"}, [(A, B), (B, b"c")]),
            r"^merges: .*b'ab' \(id 257\) is merged before b'bc' \(id 256\)",
        ),
        (core({256: b"ab"}, []), "^merges: .*b'a' and b'b' are not merged"),
        (core({256: b"ab"}, [], ignore_merges=True), "^merges: .*b'a' and b'b' are not merged"),
        (core({256: b"abc"}, []), "^ignore_merges: no merges make the token b'abc'"),
        (
            core({256: b"ab", 257: b"bc", 258: b"abc"}, [(A, B), (B, b"c"), (A, b"bc")]),
            "^merges: .*b'ab' and b'c' are not merged",
        ),
        (
            core({256: b"ab"}, [(A, B)], [AddedToken("ab", 256)]),
            "^merges: .*makes the special token b'ab'",
        ),
        (core({}, [], [AddedToken("a", 97)]), "^vocab: .*no token for the byte 0x61"),
    ],
)
def test_a_model_that_ranks_cannot_hold_is_refused_by_name(
    tmp_path: Path, model: _core.Model, problem: str
) -> None:
    with pytest.raises(FormatError, match=problem):
        format_.save(Model(model), tmp_path / "my.tiktoken")
    assert list(tmp_path.iterdir()) == []


def test_models_beyond_bytes_are_refused(tmp_path: Path) -> None:
    characters = _core.Model({0: b"a"}, [], alphabet="characters")
    with pytest.raises(FormatError, match=r"^alphabet: "):
        format_.save(Model(characters), tmp_path / "my.tiktoken")
    incomplete = _core.Model({0: b"a"}, [], requires_all_bytes=False)
    with pytest.raises(FormatError, match=r"^vocab: "):
        format_.save(Model(incomplete), tmp_path / "my.tiktoken")


def test_merges_that_never_matter_are_accepted() -> None:
    # Llama 3's tokenizer.json lists every pair that could make a token; only one of them ever does.
    tokens = {256: b"ab", 257: b"bc", 258: b"abc"}
    model = core(tokens, [(A, B), (B, b"c"), (b"ab", b"c"), (A, b"bc")])
    assert ranks_from_model(model, "x")[b"abc"] == 258
    # A token that merging does not make is no matter where pieces are looked up.
    assert ranks_from_model(core({256: b"abc"}, [], ignore_merges=True), "x")[b"abc"] == 256


def random_model(generator: random.Random) -> _core.Model:
    """Tokens of few letters, merges more or less in the order of the ids, some missing, some too many."""
    found = {"".join(generator.choices("abc", k=generator.randint(2, 4))) for _ in range(8)}
    tokens = sorted(found, key=lambda token: (len(token), token))
    if generator.random() < 0.3:
        generator.shuffle(tokens)
    vocab = {256 + 3 * index: token.encode() for index, token in enumerate(tokens)}
    known = {*"abc", *tokens}
    merges = []
    for token in tokens:
        pairs = [(token[:at], token[at:]) for at in range(1, len(token))]
        pairs = [pair for pair in pairs if known.issuperset(pair)]
        generator.shuffle(pairs)
        merges += pairs[: generator.choice([1, 1, 2, 3]) if generator.random() < 0.95 else 0]
    if generator.random() < 0.2 and len(merges) > 1:
        at = generator.randrange(len(merges) - 1)
        merges[at : at + 2] = reversed(merges[at : at + 2])
    pairs_of_bytes = [(left.encode(), right.encode()) for left, right in merges]
    return core(vocab, pairs_of_bytes, split_patterns=[], ignore_merges=generator.random() < 0.5)


def test_accepted_models_give_the_ids_of_their_ranks() -> None:
    generator = random.Random(0)
    pieces = [
        "".join(letters) for length in range(1, 7) for letters in itertools.product("abc", repeat=length)
    ]
    accepted = 0
    for _ in range(400):
        model = random_model(generator)
        try:
            ranks = ranks_from_model(model, "x")
        except FormatError:
            continue
        accepted += 1
        for piece in [*pieces[:39], *generator.sample(pieces, 100)]:
            data = piece.encode()
            parts = [data] if data in ranks else merged(ranks, data)
            assert _core.Encoder(model).encode(piece) == [ranks[part] for part in parts], (
                model.merges,
                piece,
            )
    assert 50 < accepted < 350


# -- published encodings --------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[FileServer]:
    with running() as content:
        yield content


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(directory))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return directory


@pytest.fixture
def tiny(server: FileServer, cache: Path, monkeypatch: pytest.MonkeyPatch) -> PublishedFile:
    """A published encoding of this name, and where its ranks are."""
    server.files["/encodings/tiny.tiktoken"] = TINY
    file = PublishedFile(f"{server.address}/encodings/tiny.tiktoken", hashlib.sha256(TINY).hexdigest())
    encoding = PublishedEncoding(file, NAMED_PATTERNS["r50k"].patterns[0], {"<|end|>": 258})
    monkeypatch.setattr(format_, "PUBLISHED", {"tiny": encoding, "gpt2": encoding})
    return file


def cached_name(url: str) -> str:
    return hashlib.sha1(url.encode()).hexdigest()


def test_an_encoding_is_downloaded_once_and_kept_where_tiktoken_keeps_it(
    server: FileServer, cache: Path, tiny: PublishedFile
) -> None:
    model = format_.load_named("tiny")
    assert ids(model, ["abc<|end|>"]) == [[257, 258]]
    assert [path.name for path in cache.iterdir()] == [cached_name(tiny.url)]
    assert (cache / cached_name(tiny.url)).read_bytes() == TINY
    assert format_.load_named("tiny").core.vocab == model.core.vocab
    assert format_.load_named("tiny", local_files_only=True).core.vocab == model.core.vocab
    assert len(server.requests) == 1


def test_nothing_is_downloaded_if_only_local_files_may_be_used(
    server: FileServer, cache: Path, tiny: PublishedFile, tmp_path: Path
) -> None:
    with pytest.raises(HubError, match=rf"^tiny: .*{cached_name(tiny.url)} does not hold .*local_files_only"):
        format_.load_named("tiny", local_files_only=True)
    with pytest.raises(HubError, match="the cache, which is disabled"):
        format_.load_named("tiny", cache_dir="", local_files_only=True)
    cache.mkdir()
    (cache / cached_name(tiny.url)).write_bytes(TINY + b"\n")  # damaged
    with pytest.raises(HubError, match="SHA-256"):
        format_.load_named("tiny", local_files_only=True)
    (tmp_path / "tiny.tiktoken").write_bytes(TINY + b"\n")
    with pytest.raises(HubError):
        format_.load_named("tiny", cache_dir=tmp_path, local_files_only=True)
    (tmp_path / "tiny.tiktoken").write_bytes(TINY)
    assert format_.load_named("tiny", cache_dir=tmp_path, local_files_only=True).core.vocab_size == 259
    assert server.requests == []


def test_a_damaged_file_in_the_cache_is_replaced(
    server: FileServer, cache: Path, tiny: PublishedFile
) -> None:
    cache.mkdir()
    (cache / cached_name(tiny.url)).write_bytes(TINY[:1000])
    format_.load_named("tiny")
    assert (cache / cached_name(tiny.url)).read_bytes() == TINY
    assert len(server.requests) == 1


@pytest.mark.parametrize("data", [b"", TINY[:-1], TINY + b"YWE= 258\n", b"<html>log in</html>"])
def test_what_is_not_published_is_neither_used_nor_kept(
    server: FileServer, cache: Path, tiny: PublishedFile, data: bytes
) -> None:
    server.files["/encodings/tiny.tiktoken"] = data
    digest = hashlib.sha256(data).hexdigest()
    with pytest.raises(FormatError, match=rf"downloaded file has the SHA-256 .*{digest}, not {tiny.sha256}"):
        format_.load_named("tiny")
    assert not cache.exists()


def test_a_download_that_fails_is_an_error_that_says_so(
    server: FileServer, cache: Path, tiny: PublishedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/encodings/tiny.tiktoken"] = None
    with pytest.raises(HubError, match=r"tiny\.tiktoken: (returned 3 of 9 bytes|cannot be downloaded)"):
        format_.load_named("tiny")
    del server.files["/encodings/tiny.tiktoken"]
    with pytest.raises(HubError, match=r"cannot be downloaded: .*404"):
        format_.load_named("tiny")
    nowhere = PublishedEncoding(PublishedFile("http://127.0.0.1:9/x", "0" * 64), "a", {})
    monkeypatch.setattr(format_, "PUBLISHED", {"tiny": nowhere})
    with pytest.raises(HubError, match="cannot be downloaded"):
        format_.load_named("tiny")
    assert not cache.exists()


def test_no_more_is_read_than_a_tokenizer_file_has(
    server: FileServer, cache: Path, tiny: PublishedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpe_tokenizer.formats.tiktoken.cache._MAX_BYTES", 100)
    with pytest.raises(HubError, match="more than 100 bytes"):
        format_.load_named("tiny")


def test_the_cache_is_where_the_environment_says(
    server: FileServer, tiny: PublishedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(first))
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", str(second))
    format_.load_named("tiny")
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    format_.load_named("tiny")
    monkeypatch.delenv("DATA_GYM_CACHE_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(third))
    format_.load_named("tiny")
    name = cached_name(tiny.url)
    assert all(path.exists() for path in (first / name, second / name, third / "data-gym-cache" / name))
    assert len(server.requests) == 3


def test_an_empty_name_means_no_cache(
    server: FileServer, tiny: PublishedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    monkeypatch.chdir(tmp_path)
    format_.load_named("tiny")
    format_.load_named("tiny")
    assert len(server.requests) == 2
    assert list(tmp_path.iterdir()) == []


def test_only_a_cache_that_was_asked_for_must_be_writable(
    tiny: PublishedFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_bytes(b"a file, where a directory is wanted")
    with pytest.raises(OSError, match="blocked"):
        format_.load_named("tiny", cache_dir=blocked)
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(blocked))
    assert format_.load_named("tiny").core.vocab_size == 259


def data_gym_files() -> tuple[bytes, bytes]:
    """GPT-2's two files for bytes, "ab" and "abc"."""
    order = sorted(range(256), key=lambda byte: _core.to_printable(bytes([byte])))
    tokens = [_core.to_printable(bytes([byte])) for byte in order] + ["ab", "abc", "<|endoftext|>"]
    encoder = json.dumps({token: token_id for token_id, token in enumerate(tokens)}).encode()
    return b"#version: 0.2\na b\nab c\n", encoder


def test_gpt2_may_be_there_in_its_own_two_files(
    server: FileServer, cache: Path, tiny: PublishedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.mkdir()
    for name, data in zip(("VOCAB_BPE", "ENCODER_JSON"), data_gym_files(), strict=True):
        file = PublishedFile(f"{server.address}/{name}", hashlib.sha256(data).hexdigest())
        monkeypatch.setattr(format_, name, file)
        (cache / cached_name(file.url)).write_bytes(data)
    model = format_.load_named("gpt2")
    assert model.core.vocab[0] == b"!"
    assert model.core.merges == [(b"a", b"b"), (b"ab", b"c")]
    assert server.requests == []


@pytest.mark.parametrize("name", ["cl100k", "gpt-2", "", "../etc/passwd"])
def test_another_name_is_refused(name: str, cache: Path) -> None:
    with pytest.raises(OptionError, match=f"unknown encoding {re.escape(repr(name))}.*o200k_harmony"):
        format_.load_named(name)
    nothing: Any = None
    with pytest.raises(ArgumentTypeError):
        format_.load_named(nothing)


def test_harmony_keeps_the_first_of_two_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    special = PUBLISHED["o200k_harmony"].special_tokens
    assert special is not None
    assert len(special) == 1091
    path = tmp_path / "my.tiktoken"
    path.write_bytes(TINY)
    model = format_.load(path, split_pattern="o200k", special_tokens=special)
    contents = {token[1]: token[0] for token in model.core.added_tokens}
    assert len(contents) == 1090
    assert contents[200018] == "<|endofprompt|>"


# -- objects and patterns -------------------------------------------------------------------------------


def encoding(pat_str: str = r"\S+|\s+", special: dict[str, int] | None = None, **more: Any) -> Any:
    ranks = more.pop("ranks", bytes_and("ab", "abc"))
    return Encoding("mine", pat_str=pat_str, mergeable_ranks=ranks, special_tokens=special or {}, **more)


@pytest.mark.parametrize("pattern", [*(named.patterns[0] for named in NAMED_PATTERNS.values()), r"\w+", "b"])
def test_the_model_of_an_encoding_gives_its_ids(pattern: str) -> None:
    theirs = encoding(pattern, {"<|end|>": 999})
    model = format_.from_encoding(theirs)
    for text, row in zip(TEXTS, ids(model, TEXTS), strict=True):
        assert row == theirs.encode(text, allowed_special="all")


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


@pytest.mark.parametrize(
    "pattern", [named.patterns[0] for named in NAMED_PATTERNS.values() if len(named.patterns) == 1]
)
def test_published_patterns_match_everything(pattern: str) -> None:
    assert model_settings(pattern) == {"split_patterns": [pattern]}
    texts = [*TEXTS, "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000), 0x1F600, 0xE0100, 0x10FFFF]))]
    all_pieces = _core.Encoder(core({}, [], split_patterns=[pattern]))
    matches = _core.Encoder(core({}, [], pre_tokenizers=[("Split", pattern, "Removed", True)]))
    for text in texts:
        assert matches.pieces(text) == all_pieces.pieces(text)


@pytest.mark.parametrize(
    "pattern", [r"\w+", "b+", "(?i)ab|c", r"(ab)+c|\\\\", r"\p{L}+| ?\p{N}", "a|b$", "(?<=a)b", "a(?=b)|c"]
)
def test_other_patterns_are_made_to_match_everything(pattern: str) -> None:
    pat_str = tiktoken_pattern(core({}, [], split_patterns=[pattern]), "x")
    assert pat_str == cover_all(pattern)
    assert model_settings(pat_str) == {"split_patterns": [pattern]}
    given = _core.SplitPattern(pattern)
    matches = _core.Encoder(core({}, [], pre_tokenizers=[("Split", pat_str, "Removed", True)]))
    for text in ["abcabAB12 3", "xab", "b ab", *TEXTS]:
        repaired = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert matches.pieces(text) == [piece.encode() for piece in given.split(repaired)], text


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        (["a", "b"], "can hold one pattern, not 2"),
        ([r"(a)\1"], "back-reference"),
        ([r"\w*"], "matches the empty text"),
        (["a|(?<=q)"], "matches the empty text"),
        (["(?x)a # a comment"], "cannot be made"),
    ],
)
def test_patterns_that_tiktoken_cannot_hold_are_refused(patterns: list[str], problem: str) -> None:
    with pytest.raises(FormatError, match=f"^split_patterns: .*{problem}"):
        tiktoken_pattern(core({}, [], split_patterns=patterns), "x")


def test_to_encoding_needs_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ImportError, match="pip install tiktoken"):
        format_.to_encoding(Model(core({}, [])), "mine")


def test_special_tokens_that_begin_alike_are_refused() -> None:
    pytest.importorskip("tiktoken")
    model = Model(core({}, [], [AddedToken("<|a|>", 300), AddedToken("<|a|>x", 301)]))
    with pytest.raises(FormatError, match=r"^added_tokens: .*'<\|a\|>' and '<\|a\|>x'"):
        format_.to_encoding(model, "mine")
