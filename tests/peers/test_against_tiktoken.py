"""Ids equal to tiktoken's, of what it publishes and of what we train, from its files and its objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, FormatError, Model, _core
from bpe_tokenizer.formats import tiktoken as format_
from bpe_tokenizer.formats.tiktoken.published import PUBLISHED
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hostile import after_a_letter, code_points, hostile_texts, special_token_texts
from peers.hf_vocabularies import gguf
from small_tokenizers import without_surrogates
from tiktoken_files import their_encoding

tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")

pytestmark = pytest.mark.peer

CORPORA = ["books", "code", "multi", "zh"]
SPECIAL = ["<|end|>", "<|pad|>"]
RANKS = ["r50k_base", "p50k_base", "cl100k_base", "o200k_base"]
SAMPLE = 300_000
SINGLE = [name for name, named in NAMED_PATTERNS.items() if len(named.patterns) == 1]

Documents = Callable[[str, int], list[str]]
Pair = tuple[Any, Model]


def assert_same_ids(theirs: Any, ours: Model, texts: Sequence[str], special: bool = False) -> None:
    allowed = theirs.special_tokens_set if special else set()
    encoder = _core.Encoder(ours.core)
    for text, row in zip(texts, encoder.encode_batch(texts, special), strict=True):
        assert theirs.encode(text, allowed_special=allowed, disallowed_special=()) == row, repr(text[:500])


# -- published encodings --------------------------------------------------------------------------------


@pytest.fixture(scope="session", params=[pytest.param(name, marks=pytest.mark.fixtures) for name in RANKS])
def pair(request: pytest.FixtureRequest, cache: Path) -> Pair:
    """tiktoken's encoding and ours, from the same cache."""
    ours = format_.load_named(request.param, cache_dir=cache, local_files_only=True)
    return their_encoding(request.param, cache), ours


def test_the_named_patterns_are_tiktokens(pair: Pair) -> None:
    theirs, ours = pair
    name = {"r50k_base": "r50k", "p50k_base": "r50k"}.get(theirs.name, theirs.name.removesuffix("_base"))
    assert [*NAMED_PATTERNS[name].patterns] == ours.core.split_patterns == [theirs._pat_str]


@pytest.mark.parametrize("corpus_name", CORPORA)
def test_a_sample_of_each_corpus(pair: Pair, documents: Documents, corpus_name: str) -> None:
    assert_same_ids(*pair, documents(corpus_name, SAMPLE))


@pytest.mark.slow
@pytest.mark.parametrize("corpus_name", CORPORA)
def test_each_corpus_whole(pair: Pair, documents: Documents, corpus_name: str) -> None:
    assert_same_ids(*pair, documents(corpus_name, -1))


def test_hostile_texts(pair: Pair) -> None:
    assert_same_ids(*pair, hostile_texts())


def test_code_points_of_the_first_plane(pair: Pair) -> None:
    assert_same_ids(*pair, list(code_points(0, 0x10000)))
    assert_same_ids(*pair, list(after_a_letter(code_points(0, 0x10000, 3))))


@pytest.mark.slow
def test_every_code_point(pair: Pair) -> None:
    assert_same_ids(*pair, list(code_points()))
    assert_same_ids(*pair, list(after_a_letter(code_points())))
    # Between other characters, many to a text: what comes before and behind decides too.
    characters = list(code_points())
    for joint in (" ", "'", "a ", "1\n", "é!", "\n\n"):
        assert_same_ids(*pair, [joint.join(characters[i : i + 500]) for i in range(0, len(characters), 500)])


def test_decoding(pair: Pair, documents: Documents) -> None:
    theirs, ours = pair[0], BPETokenizer.from_model(pair[1])
    for text in [*documents("multi", 100_000), *hostile_texts(500)]:
        ids = theirs.encode_ordinary(text)
        assert ours.decode(ids) == theirs.decode(ids)
        for start in range(0, min(len(ids), 20)):  # token by token: characters are cut
            assert ours.decode_bytes(ids[start : start + 1]) == theirs.decode_bytes(ids[start : start + 1])
    assert ours.vocab == {token_id: theirs.decode_single_token_bytes(token_id) for token_id in ours.vocab}


@pytest.fixture(scope="module")
def tokenizers_gpt2(shared: Path) -> Any:
    """`tokenizers` over GPT-2's two files, read by its own reader."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    files = [str(shared / "vocab" / name) for name in ("gpt2-vocab.json", "gpt2-merges.txt")]
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*files))
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    theirs.add_special_tokens(["<|endoftext|>"])
    return theirs


@pytest.mark.fixtures
@pytest.mark.parametrize("pair", ["r50k_base"], indirect=True)
def test_gpt2s_two_files(pair: Pair, shared: Path, tokenizers_gpt2: Any, documents: Documents) -> None:
    ours = BPETokenizer.load(shared / "vocab" / "gpt2-vocab.json", "gpt2")
    assert ours.special_tokens == {"<|endoftext|>": 50256}
    texts = [*hostile_texts(1000), *special_token_texts(["<|endoftext|>"])]
    texts += [document for name in CORPORA for document in documents(name, SAMPLE)]
    assert_same_ids(pair[0], ours.model, texts)
    for text in map(without_surrogates, texts):
        ids = ours.encode(text, allowed_special="all")
        assert ids == pair[0].encode(text, allowed_special="all") == tokenizers_gpt2.encode(text).ids
        assert ours.decode(ids) == text


@pytest.mark.sampled(0.15)
@pytest.mark.fixtures
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_encodings_by_name(
    name: str, cache: Path, documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
    theirs = their_encoding(name, cache)
    for model in (
        format_.load_named(name, local_files_only=True),
        format_.load_named(name, cache_dir=cache),
        format_.from_encoding(theirs),
    ):
        added = {token[0]: token[1] for token in model.core.added_tokens}
        second = {"<|reserved_200018|>"} if name == "o200k_harmony" else set()
        assert added == {text: id_ for text, id_ in theirs._special_tokens.items() if text not in second}
        assert model.core.split_patterns == [theirs._pat_str]
        texts = [text for corpus in CORPORA for text in documents(corpus, 20_000)]
        assert_same_ids(theirs, model, [*texts, *hostile_texts(200)])
        assert_same_ids(theirs, model, list(special_token_texts(sorted(added)[:5])), special=True)


@pytest.mark.fixtures
def test_published_files_are_recognised_and_written_byte_for_byte(shared: Path, tmp_path: Path) -> None:
    for name in RANKS:
        path = shared / "vocab" / f"{name}.tiktoken"
        model = format_.load(path)
        assert {token[0]: token[1] for token in model.core.added_tokens} == PUBLISHED[name].special_tokens
        load_kwargs = format_.save(model, tmp_path / "again.tiktoken")
        assert (tmp_path / "again.tiktoken").read_bytes() == path.read_bytes()
        assert load_kwargs["special_tokens"] == PUBLISHED[name].special_tokens
        assert load_kwargs["split_pattern"] == [PUBLISHED[name].split_pattern]


@pytest.mark.fixtures
def test_llama3s_ranks_are_recognised(shared: Path, tmp_path: Path) -> None:
    ids = gguf(shared / "vocab" / "ggml-vocab-llama-bpe.gguf")[0]
    vocab = {index: _core.from_printable(token) or b"" for token, index in ids.items() if index < 128_000}
    path = tmp_path / "tokenizer.model"
    format_.save(Model(_core.Model(vocab, None, split_patterns=["a"])), path)
    model = format_.load(path, special_tokens={"<|begin_of_text|>": 128000})
    assert model.core.split_patterns == list(NAMED_PATTERNS["llama3"].patterns)
    with pytest.raises(ValueError, match="special tokens, and models name them differently"):
        format_.load(path)


@pytest.mark.sampled(0.15)
@pytest.mark.fixtures
@pytest.mark.parametrize("pattern", SINGLE)
def test_tiktoken_gives_the_ids_of_a_trained_tokenizer(
    pattern: str, documents: Documents, tmp_path: Path
) -> None:
    texts = [text for corpus in CORPORA for text in documents(corpus, 60_000)]
    tokenizer = BPETokenizer(pattern, normalization=None)
    tokenizer.train(texts[::2], vocab_size=3000, special_tokens=SPECIAL, verbose=False)
    theirs = format_.to_encoding(tokenizer.model, "ours")
    assert theirs.name == "ours"
    assert theirs._pat_str == NAMED_PATTERNS[pattern].patterns[0]
    assert_same_ids(theirs, tokenizer.model, [*texts, *hostile_texts(300)])
    assert_same_ids(theirs, tokenizer.model, list(special_token_texts(SPECIAL)), special=True)
    back = format_.from_encoding(theirs)
    assert back.core.vocab == tokenizer.model.core.vocab
    assert back.core.merges == tokenizer.model.core.merges
    assert_same_ids(theirs, back, texts)
    # And by the file, with what tiktoken reads it with.
    format_.save(tokenizer.model, tmp_path / "ours.tiktoken")
    from tiktoken.load import load_tiktoken_bpe

    assert load_tiktoken_bpe(str(tmp_path / "ours.tiktoken")) == theirs._mergeable_ranks


ANY = [r"\w+", "b+|é", "(?i:ab)|c", r"\p{L}+| ?\p{N}", "a|b$", "a(?=b)|c", r"\S+", "(?s:.{3})"]


@pytest.mark.parametrize("pattern", ANY)
def test_tiktoken_gives_the_ids_of_any_pattern(
    pattern: str, stdlib_texts: list[str], mixed_text: str
) -> None:
    texts = [text[:20_000] for text in stdlib_texts] + [mixed_text]
    with pytest.raises(FormatError, match="may leave text unmatched; add branches that match it"):
        format_.to_encoding(
            BPETokenizer(pattern, normalization=None).train("low low", 257, verbose=False).model, "ours"
        )
    pattern = rf"{pattern}|\s+|\S"
    tokenizer = BPETokenizer(pattern, normalization=None)
    tokenizer.train(texts, vocab_size=400, special_tokens=SPECIAL, verbose=False)
    theirs = format_.to_encoding(tokenizer.model, "ours")
    short = [text for text in hostile_texts(300) if len(text) < 1000]
    assert_same_ids(theirs, tokenizer.model, [*texts, *short])
    assert_same_ids(theirs, tokenizer.model, list(special_token_texts(SPECIAL)), special=True)
    back = format_.from_encoding(theirs)
    assert back.core.split_patterns == [pattern]


@pytest.mark.parametrize("pattern", [r"\w+", "b+|é", "(?s).{3}"])
def test_a_model_drops_what_tiktoken_drops(pattern: str, mixed_text: str) -> None:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257, "é".encode(): 258}
    theirs = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|e|>": 300})
    model = format_.from_encoding(theirs)
    short = [text for text in hostile_texts(300) if len(text) < 1000]
    assert_same_ids(theirs, model, [mixed_text, *short])
    assert_same_ids(theirs, model, list(special_token_texts(["<|e|>"])), special=True)
    again = format_.to_encoding(model, "x")
    assert again._pat_str == pattern
    assert again._mergeable_ranks == ranks
