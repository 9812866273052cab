"""Ids equal to tiktoken's, for its four encodings over the published ranks and its own patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.patterns import NAMED_PATTERNS
from hostile import after_a_letter, code_points, hostile_texts, special_token_texts
from small_tokenizers import without_surrogates
from tiktoken_files import their_encoding

if TYPE_CHECKING:
    import tiktoken

pytest.importorskip("tiktoken", reason="tiktoken is not installed")

pytestmark = [pytest.mark.peer, pytest.mark.fixtures]

CORPORA = ["books", "code", "multi", "zh"]
SAMPLE = 300_000

Documents = Callable[[str, int], list[str]]
Pair = tuple["tiktoken.Encoding", BPETokenizer]


@pytest.fixture(scope="session", params=["r50k_base", "p50k_base", "cl100k_base", "o200k_base"])
def pair(request: pytest.FixtureRequest, cache: Path) -> Pair:
    """tiktoken's encoding and ours, from the same cache."""
    ours = BPETokenizer.from_tiktoken(request.param, cache_dir=cache, local_files_only=True)
    return their_encoding(request.param, cache), ours


def assert_same_ids(pair: Pair, texts: Sequence[str]) -> None:
    theirs, ours = pair
    expected = [theirs.encode_ordinary(text) for text in texts]
    ids, offsets = ours.encode_ragged(texts)
    lengths = np.fromiter(map(len, expected), np.int64, len(expected))
    flat = np.fromiter((token for row in expected for token in row), np.uint32, int(lengths.sum()))
    if np.array_equal(np.diff(offsets), lengths) and np.array_equal(ids, flat):
        return
    for text, row, start, end in zip(texts, expected, offsets, offsets[1:], strict=False):
        assert ids[start:end].tolist() == row, repr(text[:1000])


def test_the_named_patterns_are_tiktokens(pair: Pair) -> None:
    theirs, ours = pair
    name = {"r50k_base": "r50k", "p50k_base": "r50k"}.get(theirs.name, theirs.name.removesuffix("_base"))
    assert NAMED_PATTERNS[name].patterns == (ours.split_pattern,) == (theirs._pat_str,)


@pytest.mark.parametrize("corpus_name", CORPORA)
def test_a_sample_of_each_corpus(pair: Pair, documents: Documents, corpus_name: str) -> None:
    assert_same_ids(pair, documents(corpus_name, SAMPLE))


@pytest.mark.slow
@pytest.mark.parametrize("corpus_name", CORPORA)
def test_each_corpus_whole(pair: Pair, documents: Documents, corpus_name: str) -> None:
    assert_same_ids(pair, documents(corpus_name, -1))


def test_hostile_texts(pair: Pair) -> None:
    assert_same_ids(pair, hostile_texts())


def test_code_points_of_the_first_plane(pair: Pair) -> None:
    assert_same_ids(pair, list(code_points(0, 0x10000)))
    assert_same_ids(pair, list(after_a_letter(code_points(0, 0x10000, 3))))


@pytest.mark.slow
def test_every_code_point(pair: Pair) -> None:
    assert_same_ids(pair, list(code_points()))
    assert_same_ids(pair, list(after_a_letter(code_points())))
    # Between other characters, many to a text: what comes before and behind decides too.
    characters = list(code_points())
    for joint in (" ", "'", "a ", "1\n", "é!", "\n\n"):
        assert_same_ids(pair, [joint.join(characters[i : i + 500]) for i in range(0, len(characters), 500)])


def test_decoding(pair: Pair, documents: Documents) -> None:
    theirs, ours = pair
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


@pytest.mark.parametrize("pair", ["r50k_base"], indirect=True)
def test_gpt2s_two_files(pair: Pair, shared: Path, tokenizers_gpt2: Any, documents: Documents) -> None:
    ours = BPETokenizer.load(shared / "vocab" / "gpt2-vocab.json", "gpt2")
    assert ours.special_tokens == {"<|endoftext|>": 50256}
    texts = [*hostile_texts(1000), *special_token_texts(["<|endoftext|>"])]
    texts += [document for name in CORPORA for document in documents(name, SAMPLE)]
    assert_same_ids((pair[0], ours), texts)
    for text in map(without_surrogates, texts):
        ids = ours.encode(text, allowed_special="all")
        assert ids == pair[0].encode(text, allowed_special="all") == tokenizers_gpt2.encode(text).ids
        assert ours.decode(ids) == text
