"""`extend` and `truncate_vocab`: vocabularies that change without a change of their ids."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from bpe_tokenizer import (
    BPETokenizer,
    CorpusError,
    FormatError,
    Model,
    ModelError,
    NotTrainedError,
    OptionError,
    _core,
)
from bpe_tokenizer.model import PlainNormalizer, Split

TIE_BREAKS: list[Literal["largest", "huggingface"]] = ["largest", "huggingface"]
CODE = Path(argparse.__file__)
WORDS = Path(__file__).read_text(encoding="utf-8")
SPECIALS: dict[str, Any] = {
    "none": None,
    "a list": ["<|a|>", "<|b|>"],
    "among the ids": {"<|a|>": 270, "<|b|>": 300, "<|c|>": 256},
    "behind them": {"<|a|>": 399, "<|b|>": 100_257},
}


def trained(corpus: Any, vocab_size: int, special_tokens: Any = None, **options: Any) -> BPETokenizer:
    tokenizer = BPETokenizer("gpt2", None)
    return tokenizer.train(corpus, vocab_size, special_tokens=special_tokens, verbose=False, **options)


def core(tokenizer: BPETokenizer) -> _core.Model:
    return tokenizer.model.core


def assert_same(one: BPETokenizer, other: BPETokenizer) -> None:
    assert one.vocab == other.vocab
    assert one.merges == other.merges
    assert one.special_tokens == other.special_tokens
    assert core(one).vocab_size == core(other).vocab_size
    assert one.encode(WORDS, allowed_special="all") == other.encode(WORDS, allowed_special="all")


def assert_grown(one: BPETokenizer, before: BPETokenizer, size: int) -> None:
    """Nothing that was there changed, and the new ids follow without a gap, up to `size` ids."""
    old, new = before.vocab, one.vocab
    assert {token_id: new[token_id] for token_id in old} == old
    assert one.merges[: len(before.merges)] == before.merges
    learned = one.merges[len(before.merges) :]
    assert list(new)[len(old) :] == list(range(max(old) + 1, max(old) + 1 + len(learned)))
    assert [new[token_id] for token_id in list(new)[len(old) :]] == [left + right for left, right in learned]
    assert len(one) == len(before) + len(learned) <= size
    assert one.vocab_size == len(one) or not learned
    assert one.special_tokens == before.special_tokens
    assert not set(old.values()).intersection(left + right for left, right in learned)


# -- truncate_vocab -------------------------------------------------------------------------------------


@pytest.mark.parametrize("special_tokens", SPECIALS.values(), ids=SPECIALS)
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_a_truncated_vocabulary_is_that_of_a_smaller_training(tie_break: Any, special_tokens: Any) -> None:
    whole = trained(CODE, 400, special_tokens, tie_break=tie_break)
    for n in (259, 270, 271, 300, 350, 400, 5000):
        small = copy.copy(whole).truncate_vocab(n)
        assert_same(small, trained(CODE, min(n, 400), special_tokens, tie_break=tie_break))
        assert copy.copy(small).truncate_vocab(n).vocab == small.vocab
    assert whole.vocab_size > 350  # a copy is another tokenizer


def test_what_would_break_ids_is_not_truncated() -> None:
    for n in (0, 256, -1):
        with pytest.raises(OptionError, match=r"n is .* at least 257"):
            trained("ab ab", 257).truncate_vocab(n)
    with pytest.raises(OptionError, match=r"n is 258, and the special token '<c>' .* ask for 259 or more"):
        trained(CODE, 300, ["<a>", "<b>", "<c>"]).truncate_vocab(258)
    letters = {byte + 1: bytes([byte]) for byte in range(256)} | {257: b"ab"}
    lacking = _core.Model({0: b"a"}, [], requires_all_bytes=False)
    assert BPETokenizer.from_model(Model(lacking)).truncate_vocab(300).vocab == {0: b"a"}
    shifted = letters | {400: b"\xff"}
    del shifted[256]
    with pytest.raises(OptionError, match="n is 300, and the byte 0xff has the id 400"):
        BPETokenizer.from_vocab(shifted, [(b"a", b"b")]).truncate_vocab(300)
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"abc", 257: b"ab"}
    backwards = BPETokenizer.from_vocab(vocab, [(b"a", b"b"), (b"ab", b"c")])
    with pytest.raises(ModelError, match=r"b'abc' \(id 256\) is merged from b'ab' \(id 257\)"):
        backwards.truncate_vocab(257)
    assert backwards.truncate_vocab(258).vocab == vocab
    with pytest.raises(NotTrainedError):
        BPETokenizer().truncate_vocab(300)


# -- extend ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("special_tokens", [None, ["<|a|>", "<|b|>"]])
@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_with_the_same_corpus_it_goes_on(tie_break: Any, special_tokens: Any) -> None:
    whole = trained(CODE, 400, special_tokens, tie_break=tie_break)
    for begin in (258, 300, 399):
        tokenizer = trained(CODE, begin, special_tokens, tie_break=tie_break)
        assert tokenizer.extend(CODE, 400, verbose=False, tie_break=tie_break) is tokenizer
        assert_same(tokenizer, whole)


@pytest.mark.parametrize("special_tokens", SPECIALS.values(), ids=SPECIALS)
def test_the_size_counts_ids_as_training_does(special_tokens: Any) -> None:
    for size in (290, 300, 350):
        tokenizer = trained(CODE, 290 if size > 290 else 280, special_tokens)
        before = copy.copy(tokenizer)
        tokenizer.extend(CODE, size, verbose=False)
        assert tokenizer.vocab_size == trained(CODE, size, special_tokens).vocab_size == size
        assert_grown(tokenizer, before, size)


def test_the_size_of_a_vocabulary_with_gaps_counts_ids() -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)} | {270: b"ab", 500: b"cd"}
    tokenizer = BPETokenizer.from_vocab(vocab, [(b"a", b"b"), (b"c", b"d")], {"<|end|>": 900})
    with pytest.raises(OptionError, match="259 ids are in use: ask for 260 or more"):
        tokenizer.extend("abcd " * 9, 259)
    tokenizer.extend(["abcd abcde"] * 9, 261, verbose=False)
    assert (tokenizer.vocab_size, tokenizer.n_vocab, len(tokenizer)) == (261, 903, 261)


def test_the_tokens_text_is_cut_at_as_before() -> None:
    tokenizer = trained(CODE, 300, {"<|end|>": 300})
    tokenizer.extend(["x<|end|>y" * 50, "zq<|end|>zq"], 400, verbose=False)
    assert [token for token in tokenizer.vocab.values() if b"<" in token and len(token) > 1] == [b"<|end|>"]
    composed = BPETokenizer("gpt2", "NFC").train("ab ab", 257, verbose=False)
    composed.extend(["e\u0301t\u00e9 " * 9], 300, verbose=False)
    assert "été".encode() in composed.vocab.values()


def test_nothing_to_learn_changes_nothing() -> None:
    before = trained(CODE, 300, {"<|end|>": 350})
    after = copy.copy(before).extend("xyz", 400, verbose=False)
    assert_same(after, before)


def test_the_summary_says_what_was_learned(capsys: pytest.CaptureFixture[str]) -> None:
    trained(CODE, 300).extend(["xyz"] * 5, 320)
    shown = capsys.readouterr().err
    assert "Extended with 5 documents: 5 pieces, 1 of them distinct; learned 2 further merges" in shown
    assert "Stopped 18 merges short of 320 ids" in shown


def test_a_text_that_no_pattern_cuts_is_one_piece() -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)}
    tokenizer = BPETokenizer.from_model(Model(_core.Model(vocab, [], split_patterns=[])))
    tokenizer.extend(["a b", "a b"], 300, verbose=False)
    assert tokenizer.encode("a b") == [257]


def save_hugging_face(tokenizer: BPETokenizer, directory: Path) -> BPETokenizer:
    tokenizer.save(directory)
    return BPETokenizer.from_pretrained(directory)


def save_tiktoken(tokenizer: BPETokenizer, directory: Path) -> BPETokenizer:
    tokenizer.export(directory / "ranks.tiktoken", "tiktoken")
    return BPETokenizer.from_tiktoken(
        directory / "ranks.tiktoken", special_tokens=tokenizer.special_tokens, split_pattern="gpt2"
    )


def save_base64_json(tokenizer: BPETokenizer, directory: Path) -> BPETokenizer:
    tokenizer.export(directory / "model.json", "base64-json")
    return BPETokenizer.load(directory / "model.json")


@pytest.mark.parametrize("save", [save_hugging_face, save_tiktoken, save_base64_json])
@pytest.mark.parametrize("ranks", [False, True])
@pytest.mark.parametrize("special_tokens", SPECIALS.values(), ids=SPECIALS)
def test_it_is_saved_and_extended_and_saved(
    tmp_path: Path, save: Callable[[BPETokenizer, Path], BPETokenizer], ranks: bool, special_tokens: Any
) -> None:
    before = trained(CODE, 350, special_tokens)
    if ranks:
        special = before.special_tokens
        learned = before.vocab.items() - {(token_id, text.encode()) for text, token_id in special.items()}
        before = BPETokenizer.from_vocab(dict(learned), None, special)
    before = save(before, tmp_path)
    size = len(before) + 100
    after = copy.copy(before).extend(WORDS, size, verbose=False)
    assert_grown(after, before, size)
    opened = save(after, tmp_path)
    assert opened.vocab == after.vocab
    assert opened.special_tokens == after.special_tokens
    text = WORDS + "".join(after.special_tokens)
    assert opened.encode(text, allowed_special="all") == after.encode(text, allowed_special="all")
    assert len(after.encode(WORDS)) < len(before.encode(WORDS))
    again = copy.copy(opened).truncate_vocab(350)
    assert again.merges == before.merges


def test_what_would_break_ids_is_not_extended() -> None:
    tokenizer = trained(CODE, 300, {"<|end|>": 400})
    before = tokenizer.vocab
    for size in (0, 300, 301):
        with pytest.raises(OptionError, match=r"new_vocab_size is .*301 ids are in use.*302 or more"):
            tokenizer.extend("abc", size)
    with pytest.raises(OptionError, match="new_vocab_size is"):
        tokenizer.extend("abc", 2**31)
    with pytest.raises(CorpusError, match="empty"):
        tokenizer.extend("", 500)
    with pytest.raises(OptionError, match="tie_break"):
        tokenizer.extend("abc", 500, tie_break="smallest")  # type: ignore[arg-type]
    with pytest.raises(NotTrainedError):
        BPETokenizer().extend("abc", 500)
    assert tokenizer.vocab == before


def test_models_that_do_more_to_text_are_named() -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)}
    settings: dict[str, dict[str, Any]] = {
        r"normaliser \(Lowercase\)": {"normalizers": [PlainNormalizer("Lowercase")]},
        r"normaliser \(NFC, Lowercase\)": {
            "normalizers": [PlainNormalizer("NFC"), PlainNormalizer("Lowercase")]
        },
        r"pre-tokeniser \(PrefixSpace\)": {"add_prefix_space": True},
        r"pre-tokeniser \(Split\)": {"pre_tokenizers": [Split(pattern="x", behavior="Removed")]},
    }
    for what, setting in settings.items():
        tokenizer = BPETokenizer.from_model(Model(_core.Model(vocab, [], **setting)))
        with pytest.raises(ModelError, match=what):
            tokenizer.extend("abc", 300)
    letters = {number: letter.encode() for number, letter in enumerate("abc")}
    model = _core.Model(letters, [], alphabet="characters")
    with pytest.raises(ModelError, match="only a byte-level vocabulary"):
        BPETokenizer.from_model(Model(model)).extend("abc", 300)


@pytest.mark.parametrize("keeps_gaps", [False, True])
def test_pieces_with_a_byte_that_the_vocabulary_lacks_teach_nothing(keeps_gaps: bool) -> None:
    vocab = {number: bytes([byte]) for number, byte in enumerate(b"abcd ")}
    setting: Any = {"pre_tokenizers": [Split(pattern=" ?[^ ]+")]}
    core = _core.Model(vocab, [], requires_all_bytes=False, keeps_gaps=keeps_gaps, **setting)
    tokenizer = BPETokenizer.from_model(Model(core))
    tokenizer.extend(["ab abx cd", "ab cyd cyd cyd cd"], 8, verbose=False)
    assert tokenizer.merges == [(b"c", b"d"), (b"a", b"b"), (b" ", b"cd")]
    assert tokenizer.encode("cdy ab") == [5, 4, 6]
    with pytest.raises(CorpusError, match="UTF-8"):
        tokenizer.extend([b"ab\xc0"], 30, verbose=False)


def test_a_rank_file_refuses_what_its_readers_would_merge(tmp_path: Path) -> None:
    """A token that nothing made can be made of a new one, by who merges whatever is a token together."""
    vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"abc"}
    tokenizer = BPETokenizer.from_vocab(vocab, None)
    assert tokenizer.merges == []
    tokenizer.extend(["ab", "ab", "abcd"], 300, verbose=False)
    assert tokenizer.merges == [(b"a", b"b")]
    with pytest.raises(FormatError, match="cannot hold"):
        tokenizer.export(tmp_path / "ranks.tiktoken", "tiktoken")
