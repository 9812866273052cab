"""SentencePiece-style BPE in GGUF files: by scores and by merges."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats import gguf
from bpe_tokenizer.formats.gguf import scores
from bpe_tokenizer.formats.gguf.file import ValueType, write_metadata
from bpe_tokenizer.formats.gguf.scores import merges_from_scores
from bpe_tokenizer.model import Decoder, PostProcessor, Replace
from gguf_files import (
    CONTROL,
    NORMAL,
    UNUSED,
    USER_DEFINED,
    WORDS,
    gemma,
    load,
    refusal,
    spm,
    spm_ids,
    spm_tokenizer,
)

# -- SentencePiece-style BPE by scores ------------------------------------------------------------------


@pytest.mark.parametrize("prefix", [True, False])
def test_scores_as_llama_cpp_joins_by_them(path: Path, prefix: bool) -> None:
    tokenizer, ids = spm_tokenizer(path, WORDS, tokenizer__ggml__add_space_prefix=prefix)
    texts = ["", "a", " ", "  ", "ab ab", "abab", "baab  ba", "éa日", "▁a", "<s>", "\n", "a\0b", "<0x41>"]
    generator = random.Random(1)
    texts += ["".join(generator.choices("ab é<日", k=generator.randint(1, 12))) for _ in range(300)]
    for text in texts:
        assert tokenizer.encode(text) == spm_ids(text, WORDS, ids, prefix=prefix), text
        assert tokenizer.decode(tokenizer.encode(text)) == (text.replace("▁", " ") if text else ""), text
    assert tokenizer.encode("a", add_special_tokens=True)[0] == 1
    assert (tokenizer.bos_token, tokenizer.eos_token, tokenizer.unk_token) == ("<s>", "</s>", "<unk>")


def test_a_space_stands_before_what_follows_an_added_token(path: Path) -> None:
    tokenizer, ids = spm_tokenizer(path, WORDS, more=[("<x>", USER_DEFINED)])
    expected = [ids["▁ab"], ids["<x>"], ids["▁a"], ids["<x>"], ids["▁"], ids["▁ab"], 1, ids["▁a"]]
    assert tokenizer.encode("ab<x>a<x> ab<s>a", allowed_special="all") == expected


def test_tokens_of_phi_3_take_white_space_along(path: Path) -> None:
    more = [("<|user|>", CONTROL), ("<|endoftext|>", CONTROL)]
    tokenizer, ids = spm_tokenizer(path, WORDS, more=more, general__name="Phi-3 mini")
    text = "<|user|> \n a</s>  a<s> a<|endoftext|> a"
    expected = ["<|user|>", "▁a", "</s>", "▁a", "<s>", "▁", "▁a", "<|endoftext|>", "▁", "▁a"]
    assert tokenizer.encode(text, allowed_special="all") == [ids[token] for token in expected]
    message = refusal(spm(path, WORDS, general__name="phi3"))
    assert "tokenizer.ggml.tokens: general.name is 'phi3', for which llama.cpp needs a token" in message
    assert "'<|endoftext|>'" in message


@settings(max_examples=200)
@given(
    words=st.dictionaries(st.text("ab▁", min_size=2, max_size=5), st.integers(1, 5), max_size=8),
    texts=st.lists(st.text("ab ", max_size=12), min_size=5, max_size=5),
)
def test_equal_scores_are_exact_or_refused(words: dict[str, int], texts: list[str]) -> None:
    scores = {"a": 0.0, "b": 0.0, "▁": 0.0} | {word: -float(score) for word, score in words.items()}
    ids = {text: index for index, text in enumerate(scores)}
    try:
        merges = merges_from_scores(scores)
    except FormatError:
        return
    core = _core.Model(
        {index: text.encode() for text, index in ids.items()},
        [(left.encode(), right.encode()) for left, right in merges],
        normalizers=[Replace(pattern=" ", content="▁")],
        alphabet="characters",
        decoder=Decoder("▁", False, "none"),
    )
    encoder = _core.Encoder(core)
    for text in texts:
        assert encoder.encode(text) == spm_ids(text, scores, ids, prefix=False)


def test_runs_of_spaces_of_one_score(path: Path) -> None:
    """As Llama 2 has them: "▁▁" to sixteen, all of one score."""
    runs = {"▁" * count: -1e9 for count in range(2, 17)}
    scores = {"▁": -1.0, "a": -2.0, "▁a": -3.0} | runs
    tokenizer, ids = spm_tokenizer(path, scores)
    for count in range(100):
        for text in (" " * count, " " * count + "a", "a" + " " * count + "a"):
            assert tokenizer.encode(text) == spm_ids(text, scores, ids), count


def test_scores_that_no_merges_amount_to(path: Path) -> None:
    tied = {"a": -1.0, "b": -1.0, "ab": -2.0, "ba": -2.0}
    assert "'ab', 'ba' have the same score" in refusal(spm(path, tied)).replace("'ba', 'ab'", "'ab', 'ba'")
    message = refusal(spm(path, {"x": -1.0, "xy": -2.0}))
    assert message.endswith("tokens: the token 'xy' has the character 'y', which is not a token")
    # A text to merge has no space.
    load(spm(path, {"x": -1.0, "x ": -2.0, "x y": -3.0, "z": -4.0}))
    message = refusal(spm(path, WORDS, tokenizer__ggml__scores=[0.0]))
    assert message.endswith(": tokenizer.ggml.scores: must be 269 numbers, one for each token")
    spm(path, {}, byte_tokens=False, tokenizer__ggml__scores=[0.0, 0.0, float("nan")])
    assert "numbers, one for each" in refusal(path)
    assert "must be an array of numbers" in refusal(spm(path, WORDS, tokenizer__ggml__scores=True))


def characters_and(**words: float) -> dict[str, float]:
    return {"a": 0.0, "b": 0.0} | words


@pytest.mark.parametrize(
    ("scores", "merges"),
    [
        # Of three equal scores, two are of tokens that merging does not make.
        (characters_and(bbaa=-1, bb=-1, baa=-1), [("b", "b")]),
        # The left of two neighbours takes the symbol between them.
        (characters_and(ab=-2, aa=-2), [("a", "a"), ("a", "b")]),
        # Two groups of equal scores, of tokens that do not meet.
        (characters_and(c=0, d=0, aa=-1, bb=-1, cc=-2, dd=-2), [(c, c) for c in "abcd"]),
        # Every cut of a token is a merge.
        (characters_and(ab=-1, abb=-2, bb=-3), [("a", "b"), ("a", "bb"), ("ab", "b"), ("b", "b")]),
    ],
)
def test_equal_scores_that_merges_express(scores: dict[str, float], merges: list[tuple[str, str]]) -> None:
    assert merges_from_scores(scores) == merges


def test_tokens_of_equal_scores_are_ordered_alike_in_every_process() -> None:
    tied = dict.fromkeys("abcd", 0.0) | dict.fromkeys(("cc", "aa", "ac", "aac", "db"), -7.0)
    code = f"from {merges_from_scores.__module__} import *; print(merges_from_scores({tied}))"
    lists = set()
    for seed in "123456":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        lists.add(subprocess.check_output([sys.executable, "-c", code], env=environment))
    assert len(lists) == 1


def test_scores_that_take_too_much_work(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {"▁" * count: -1e9 for count in range(1, 17)}
    monkeypatch.setattr(scores, "_MAX_CONSTRAINTS", 15)
    load(spm(path, runs, byte_tokens=False))
    monkeypatch.setattr(scores, "_MAX_CONSTRAINTS", 14)
    message = refusal(spm(path, runs, byte_tokens=False))
    assert "the token '▁▁' and 14 others have the same score, too many to order" in message
    monkeypatch.setattr(scores, "_MAX_WORK", 25 + 9 + 16)  # "<unk>", "<s>", "</s>"
    assert load(spm(path, {}, byte_tokens=False)).vocab_size == 3
    assert "tokens: the tokens are too long" in refusal(spm(path, {"a": 0.0}, byte_tokens=False))


def test_no_scores_are_equal_scores(path: Path) -> None:
    tokenizer, ids = spm_tokenizer(path, {"a": -1.0, "▁": -1.0, "▁a": -1.0}, tokenizer__ggml__scores=None)
    assert tokenizer.encode("a") == [ids["▁a"]]
    more: dict[str, Any] = {"tokenizer__ggml__scores": [0.0] * 3 + [-1.0] * 3}
    assert load(spm(path, {"a": 0.0}, byte_tokens=False, **more)).vocab_size == 4


def test_scores_have_32_bits(path: Path) -> None:
    """So scores that differ less are equal, as in llama.cpp."""
    for second, tied in ((-2.0 - 1e-6, False), (-2.0 - 1e-12, True)):
        rows: list[tuple[str, ValueType, Any]] = [
            ("tokenizer.ggml.model", ValueType.STRING, "llama"),
            ("tokenizer.ggml.tokens", ValueType.STRING, ["a", "b", "ab", "ba"]),
            ("tokenizer.ggml.scores", ValueType.FLOAT64, [-1.0, -1.0, -2.0, second]),
        ]
        path.write_bytes(write_metadata(rows))
        if tied:
            assert "have the same score" in refusal(path)
        else:
            assert gguf.load(path).core.merges == [(b"a", b"b"), (b"b", b"a")]


@pytest.mark.parametrize("text", ["<0x0A>b", "b<0x0A>", "\n<0x0A>", "<0x0A>\n"])
def test_byte_tokens_within_tokens(path: Path, text: str) -> None:
    characters = dict.fromkeys("<0xA>b\n", -9.0)
    message = ": tokenizer.ggml.tokens: a byte token like <0x0A> is part of another token"
    assert refusal(spm(path, characters | {text: -1.0})).endswith(message)
    load(spm(path, characters | {"<0": -1.0}))
    load(spm(path, {text: -1.0}))  # nothing makes the token


def test_a_byte_token_within_a_merge(path: Path) -> None:
    texts = ["b", "<0x0A>b"]
    message = ": tokenizer.ggml.tokens: a byte token like <0x0A> is part of another token"
    assert refusal(gemma(path, ["<0x0A> b"], texts)).endswith(message)
    load(gemma(path, [], texts))


def test_what_a_config_keeps(path: Path) -> None:
    model = gguf.load(spm(path, WORDS))
    assert model.config == {"gguf": {"model": "llama"}}
    assert model.named_tokens == {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}
    assert gguf.load(gemma(path, [], ["a"])).config == {"gguf": {"model": "gemma4", "pre": "gemma4"}}
    assert gguf.load(spm(path, WORDS, byte_tokens=False)).core.unk_id == 0
    assert gguf.load(spm(path, WORDS)).core.unk_id is None  # no character is unknown


def test_characters_without_tokens_and_bytes_are_unknown(path: Path) -> None:
    tokenizer, ids = spm_tokenizer(path, WORDS, byte_tokens=False)
    assert tokenizer.encode("a日") == [ids["▁a"], 0]
    hole = 3 + len(WORDS)
    more = [(f"<unused {hole}>", UNUSED)]
    message = refusal(spm(path, WORDS, more, byte_tokens=False, tokenizer__ggml__unknown_token_id=hole))
    assert message.endswith(f"tokens: the unknown token's id {hole} is not in the vocabulary")


# -- SentencePiece-style BPE by merges ------------------------------------------------------------------


def test_gemma4(path: Path) -> None:
    texts = ["▁", "a", "b", "\n", "ab", "▁ab", "\n\n", "a\n"]
    tokenizer = load(gemma(path, ["\n \n", "a b", "▁ ab", "a \n"], texts))
    ids = {text: index for index, text in enumerate(texts, 259)}
    assert tokenizer.encode("ab ab\n\na\n") == [ids[text] for text in ("ab", "▁ab", "\n\n", "a", "\n")]
    assert tokenizer.encode("a日") == [ids["a"], *(3 + byte for byte in "日".encode())]
    assert tokenizer.encode("a", add_special_tokens=True) == [2, ids["a"]]  # whatever the file says
    assert tokenizer.decode(tokenizer.encode(" ab日 ")) == " ab日 "
    message = ": tokenizer.ggml.tokens: merging newlines does not make the token '\\n\\n'"
    assert refusal(gemma(path, ["a b"], texts)).endswith(message)
    some: dict[str, Any] = {"tokenizer.ggml.tokens": ["<pad>", "<eos>", "<bos>", "<0x00>"]}
    message = ": tokenizer.ggml.tokens: some of the tokens <0x00> to <0xFF> are missing"
    assert refusal(gemma(path, [], [], **some)).endswith(message)
    named: dict[str, Any] = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "granite-embed-multi-311m"}
    granite = gemma(path, ["\n \n", "a b"], ["a", "b", "ab", "\n", "\n\n"], **named)
    assert gguf.load(granite).post_processor == PostProcessor((2,))
    named["tokenizer.ggml.pre"] = "sarvam-moe"
    other = load(gemma(path, ["a b"], texts, **named))
    assert other.encode("\n\nab", add_special_tokens=True) == [ids["\n"], ids["\n"], ids["ab"]]


def test_merges_of_characters(path: Path) -> None:
    texts = ["a", "b", "c", "ab", "a b", "b c", "ab c", "a bc"]
    # The first space separates; what has a further one, no text becomes.
    merges = gguf.load(gemma(path, ["a b", "a  b", "a x y", "x y b", "a b c"], texts)).core.merges
    assert merges == [(b"a", b"b"), (b"a", b"b c")]
    for merge, part in (("a zz", "zz"), ("zz a", "zz"), (b"a \xff", "\ufffd"), ("b a", "ba")):
        message = refusal(gemma(path, ["a b", merge], texts))  # type: ignore[list-item]
        assert message.endswith(f"merges[1]: {part!r} is not a token that merging can make"), merge


def test_characters_without_tokens_and_bytes_keep_their_neighbours_apart(path: Path) -> None:
    tokens: dict[str, Any] = {"tokenizer.ggml.tokens": ["a", "b", "ab"]}
    tokens["tokenizer.ggml.token_type"] = [NORMAL] * 3
    assert load(gemma(path, ["a b"], [], **tokens)).encode("aba日b") == [2, 0, 1]


NEWLINES = ["\n" * count for count in range(1, 6)]


@pytest.mark.parametrize(
    ("merges", "unmade"),
    [
        (["\n \n", "\n\n \n\n", "\n\n \n", "\n\n\n\n \n"], None),
        (["\n \n", "\n\n \n", "\n\n\n \n", "\n\n\n\n \n"], "\n" * 4),
        (["\n\n \n", "\n \n", "\n\n \n\n", "\n\n\n\n \n"], "\n" * 4),
        (["\n \n", "\n\n \n\n", "\n\n \n"], "\n" * 5),
    ],
)
def test_runs_of_newlines(path: Path, merges: list[str], unmade: str | None) -> None:
    """llama.cpp replaces a run by its token before it merges."""
    gemma(path, merges, ["a", *NEWLINES])
    if unmade is None:
        tokenizer = load(path)
        for index, text in enumerate(NEWLINES, 260):
            assert tokenizer.encode(f"a{text}") == [259, index]
    else:
        assert f"merging newlines does not make the token {unmade!r}" in refusal(path)
