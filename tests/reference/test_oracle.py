"""The oracle that the fast core is compared with."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer.reference import GPT2_SPLIT_PATTERN, GPT4_SPLIT_PATTERN, learn_merges, merge_pair
from bpe_tokenizer.reference.characters import BYTE_CHARACTERS
from lesson import TABLE, any_text, pairs, repetitive_pieces
from oracle import encode_piece, split, train_merges


def test_split_keeps_what_the_pattern_leaves() -> None:
    assert split("ab, cd!!", r"\w+") == ["ab", ", ", "cd", "!!"]
    assert split("--a-b", r"\w") == ["--", "a", "-", "b"]
    assert split("abc", r"x*") == ["abc"], "empty matches are no pieces"
    assert split("abc", r"(?=b)") == ["abc"]
    assert split("axxb", r"x*") == ["a", "xx", "b"]
    assert split("", r"\w+") == []
    with pytest.raises(ValueError, match=r"'\[' is not a regular expression"):
        split("abc", "[")


@given(
    any_text,
    st.sampled_from([GPT2_SPLIT_PATTERN, GPT4_SPLIT_PATTERN, r"\w+", r"a|b?", r"\s*", r"(?i)[a-z]{2}"]),
)
def test_split_loses_nothing(text: str, pattern: str) -> None:
    pieces = split(text, pattern)
    assert "".join(pieces) == text
    assert all(pieces)


def test_ties() -> None:
    # ("e","s") and ("s","t") both occur 9 times.
    assert train_merges(TABLE, 1) == [(b"e", b"s")]
    assert train_merges(TABLE, 1, tie_break="huggingface") == [(b"e", b"s")]
    assert train_merges(TABLE, 1, tie_break="largest") == [(b"s", b"t")]
    assert train_merges(TABLE, 12, tie_break="largest") == pairs(
        "s+t e+st"  # 9 times each
        " o+w l+ow"  # 7: ("o","w") is greater than ("l","o")
        " w+est n+e ne+west"  # 6: then ("n","e") is greater than ("e","west")
        " w+i wi+d wid+est"  # 3
        " low+e lowe+r"  # 2: ("low","e") is greater than ("e","r")
    )
    assert train_merges(TABLE, 12, tie_break="huggingface") == pairs(
        "e+s es+t"
        " l+o lo+w"
        " e+w n+ew new+est"  # ("e","w") comes before ("n","e") and ("w","est")
        " d+est i+dest w+idest"
        " e+r low+er"  # a byte comes before a learned token
    )


def test_ties_by_printable_characters() -> None:
    # The space is the byte 0x20, less than "a", but its printable character "Ġ" comes after "a", and so do
    # the bytes of "é" (0xC3 0xA9, "Ã" and "©").
    pieces = {b" a": 1, b"b ": 1, b"ab": 1, "é".encode(): 1}
    assert train_merges(pieces, 1, tie_break="largest") == [(b"\xc3", b"\xa9")]
    assert train_merges(pieces, 9, tie_break="huggingface") == [
        (b"a", b"b"),
        (b"b", b" "),
        (b"\xc3", b"\xa9"),
        (b" ", b"a"),
    ]
    # Learned tokens are ordered by age: of the two before an "x", the one learned first.
    assert train_merges({b"bc": 5, b"aa": 4, b"aax": 1, b"bcx": 1}, 3, "huggingface") == pairs("b+c a+a bc+x")
    assert train_merges({b"bc": 4, b"aa": 5, b"aax": 1, b"bcx": 1}, 3, "huggingface") == pairs("a+a b+c aa+x")
    assert train_merges({b"bc": 4, b"aa": 5, b"aax": 1, b"bcx": 1}, 3, "largest") == pairs("a+a b+c bc+x")


def test_overlapping_pairs_count() -> None:
    # (a,a) twice in "aaa", against (b,c) once in each "bc".
    assert train_merges({b"aaa": 2, b"bc": 3}, 1) == [(b"a", b"a")]
    assert train_merges({b"aaaaa": 1}, 3) == [(b"a", b"a"), (b"aa", b"aa"), (b"aaaa", b"a")]


def test_min_frequency() -> None:
    assert train_merges(TABLE, 12, min_frequency=7) == train_merges(TABLE, 4)
    assert train_merges(TABLE, 12, min_frequency=10) == []
    assert train_merges({b"ab": 0}, 5) == [], "what does not occur is not merged"
    assert train_merges({b"ab": 1}, 5) == [(b"a", b"b")]


def test_max_token_length() -> None:
    assert train_merges(TABLE, 12, max_token_length=1) == []
    short = train_merges(TABLE, 100, max_token_length=3)
    assert short[:4] == [(b"e", b"s"), (b"es", b"t"), (b"l", b"o"), (b"lo", b"w")]
    assert max(len(left + right) for left, right in short) == 3


@pytest.mark.parametrize("arguments", [(TABLE, 3, "smallest"), (TABLE, -1), ({b"ab": -1}, 3)])
def test_bad_arguments_of_train_merges(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"tie_break='smallest' is not|must not be negative"):
        train_merges(*arguments)


@given(repetitive_pieces, st.sampled_from(["first", "largest", "huggingface"]), st.integers(0, 12))
def test_encoding_repeats_training(pieces: dict[bytes, int], tie_break: Any, num_new_tokens: int) -> None:
    merges = train_merges(pieces, num_new_tokens, tie_break)
    assert len(merges) <= num_new_tokens
    for piece in pieces:
        # The result of training for the piece: all merges in sequence.
        trained_tokens = [bytes([byte]) for byte in piece]
        for pair in merges:
            trained_tokens = merge_pair(trained_tokens, pair, pair[0] + pair[1])
        assert encode_piece(piece, merges) == trained_tokens
    if tie_break == "first":
        lesson = list(learn_merges(list(pieces.items()), range(256, 256 + num_new_tokens)))
        tokens = {byte: bytes([byte]) for byte in range(256)}
        for merge in lesson:
            tokens[merge.new_id] = tokens[merge.pair[0]] + tokens[merge.pair[1]]
        assert [(tokens[merge.pair[0]], tokens[merge.pair[1]]) for merge in lesson] == merges


def test_encode_piece_merges_one_pair_at_a_time() -> None:
    # The first "ab" takes the "a" of the second first, because that merge has the lower rank.
    assert encode_piece(b"abab", [(b"ab", b"a"), (b"a", b"b")]) == [b"aba", b"b"]
    assert encode_piece(b"aaa", [(b"a", b"a")]) == [b"aa", b"a"]
    assert encode_piece(b"", []) == []


@pytest.mark.peer
@settings(max_examples=60)
@given(
    st.dictionaries(st.text("abé ", min_size=1, max_size=10), st.integers(1, 6), min_size=1, max_size=5),
    st.integers(0, 3),
)
def test_ties_are_those_of_hugging_face(pieces: dict[str, int], min_frequency: int) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + 12,
        min_frequency=min_frequency,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((piece for piece, times in pieces.items() for _ in range(times)), trainer)
    byte = {character: bytes([i]) for i, character in enumerate(BYTE_CHARACTERS)}
    merges = [
        tuple(b"".join(byte[character] for character in part) for part in pair)
        for pair in json.loads(tokenizer.to_str())["model"]["merges"]
    ]
    counts = {piece.encode(): times for piece, times in pieces.items()}
    assert merges == train_merges(counts, 12, "huggingface", min_frequency)
