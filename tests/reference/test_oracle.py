"""The oracle that the fast core is compared with."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer.reference import learn_merges, merge_pair
from bpe_tokenizer.reference.characters import BYTE_CHARACTERS
from lesson import repetitive_pieces
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
