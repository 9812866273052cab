"""The lesson: worked examples, training, round trips and traces."""

import html
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer.reference import (
    GPT2_SPLIT_PATTERN,
    GPT4_SPLIT_PATTERN,
    BasicBPE,
    CharBPETokenizer,
    NaiveBPETokenizer,
    RegexBPE,
    RegexBPETokenizer,
    count_pairs,
    merge_pair,
    words,
)
from bpe_tokenizer.reference.characters import BYTE_CHARACTERS
from bpe_tokenizer.reference.text import replace_surrogates
from lesson import (
    CLASSES,
    TABLE,
    WORDS,
    AnyTokenizer,
    any_text,
    every_class,
    merges_of,
    pairs,
    repetitive_text,
    trained_on,
)
from oracle import split, train_merges

# The worked examples, counted by hand


def test_characters_are_merged_as_bytes_are() -> None:
    # lo 5, low 5, lowe 3. Then, each twice: over the whole text "low " is seen first; over pieces, in which
    # the space leads the word, " lowe" is.
    by_characters = trained_on(CharBPETokenizer, WORDS, 261)
    assert merges_of(by_characters) == [("l", "o"), ("lo", "w"), ("low", "e"), ("low", "Ġ")]
    assert by_characters.encode("slow lowest") == [ord("s"), 260, 259, ord("s"), ord("t")]
    of_pieces = CharBPETokenizer(GPT2_SPLIT_PATTERN).train(WORDS, 261, allowed_special=[])
    assert merges_of(of_pieces) == [("l", "o"), ("lo", "w"), ("low", "e"), ("Ġ", "lowe")]
    assert of_pieces.encode("slower lowest") == [ord("s"), 259, ord("r"), 260, ord("s"), ord("t")]


# Training


@every_class
def test_training_stops_when_no_pair_is_left(kind: type[AnyTokenizer]) -> None:
    tokenizer = trained_on(kind, "abc", 300)
    assert len(tokenizer.merges) == 2
    assert tokenizer.encode("abc") == [len(tokenizer.vocab) - 1]
    assert trained_on(kind, "abc", 257 if kind is CharBPETokenizer else 256).merges == {}


def test_nothing_is_learned_across_pieces_or_special_tokens() -> None:
    assert RegexBPETokenizer(r"[ab]").train("abababab", 300).merges == {}
    for kind in (NaiveBPETokenizer, RegexBPETokenizer):
        assert trained_on(kind, "a<s>b<s>a<s>b", 300, {"<s>": 256}).merges == {}
    characters = CharBPETokenizer().train("a<s>b<s>a<s>b", 300, allowed_special=["<s>"])
    assert (characters.merges, characters.special_tokens) == ({}, {"<s>": 257})


@pytest.mark.parametrize("kind", [NaiveBPETokenizer, RegexBPETokenizer])
def test_ids_of_special_tokens_are_skipped(kind: type[NaiveBPETokenizer]) -> None:
    text = WORDS * 3 + " and many other words to learn from"
    tokenizer = trained_on(kind, text, 276, {"<a>": 260, "<b>": 300})
    assert sorted(tokenizer.vocab) == [i for i in range(276) if i != 260]
    assert tokenizer.decode([300, 260]) == "<b><a>"
    assert tokenizer.inverse_special_tokens == {260: "<a>", 300: "<b>"}


def test_special_tokens_of_characters_follow_the_characters() -> None:
    tokenizer = CharBPETokenizer().train(WORDS + "中", 263, allowed_special={"<b>", "<a>"})
    assert tokenizer.special_tokens == {"<a>": 258, "<b>": 259}
    assert (tokenizer.vocab[258], len(tokenizer.vocab)) == ("<a>", 263)
    assert tokenizer.encode("low<a>", {"<a>"}) == [261, 258]


def test_special_tokens_of_the_regex_tokenizer_by_default() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 257)
    assert tokenizer.special_tokens == {"<|endoftext|>": 100257}
    tokenizer.register_special_tokens({"<|end|>": 300})
    assert tokenizer.encode("low<|end|>", "all") == [256, ord("w"), 300]
    assert tokenizer.train(WORDS, 301).special_tokens == {"<|end|>": 300}, "kept by the next training"


def test_new_ids_of_characters_come_after_the_characters() -> None:
    tokenizer = trained_on(CharBPETokenizer, "中文中文 Ġ", 300)
    assert tokenizer.vocab[ord("a")] == "a"
    # "Ġ" and the space have changed places. Then come the other characters of the text in their order.
    assert tokenizer.decode([256, ord(" ")]) == " Ġ"
    assert [tokenizer.vocab[i] for i in (256, 257, 258)] == ["Ġ", "中", "文"]
    assert tokenizer.vocab[259] == "中文"
    assert tokenizer.decode(tokenizer.encode("文 Ġ中文")) == "文 Ġ中文"


@given(repetitive_text)
def test_lesson_and_oracle_learn_the_same_merges(text: str) -> None:
    naive = NaiveBPETokenizer().train(text, 290)
    assert merges_of(naive) == train_merges({text.encode(): 1}, 290 - 256)
    by_pieces = RegexBPETokenizer().train(text, 290)
    counts = Counter(piece.encode() for piece in split(text, GPT4_SPLIT_PATTERN))
    assert merges_of(by_pieces) == train_merges(counts, 290 - 256)
    made = [left + right for left, right in merges_of(by_pieces)]
    assert len(set(made)) == len(made), "every merge makes a new token"


# Round trips


@given(training=repetitive_text | any_text.filter(bool), text=any_text)
def test_byte_tokenizers_encode_any_text(training: str, text: str) -> None:
    tokenizers = (
        NaiveBPETokenizer().train(training, 280),
        RegexBPETokenizer().train(training, 280),
        CharBPETokenizer(byte_level=True).train(training, 280),
    )
    for tokenizer in tokenizers:
        for example in (text, training, training + text):
            assert tokenizer.decode(tokenizer.encode(example)) == replace_surrogates(example)


@given(any_text.filter(bool), st.data())
def test_character_tokenizer_encodes_text_of_known_characters(training: str, data: st.DataObject) -> None:
    tokenizer = CharBPETokenizer().train(training, 400)
    known = replace_surrogates(training)
    text = data.draw(st.text(st.sampled_from(sorted({*known, *" aé"}))))
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(training)) == known


def test_bytes_that_are_no_text() -> None:
    tokenizer = NaiveBPETokenizer().train(WORDS, 258)
    assert tokenizer.decode([0xC3, 0xA9, 0xC3]) == "é\ufffd"
    assert tokenizer.decode_bytes([0xC3, 257]) == b"\xc3low"


# Traces


def test_trace_of_an_encoding() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 260)
    trace = tokenizer.trace("slow<|endoftext|> lower", allowed_special="all")
    assert (
        str(trace)
        == """\
text: 'slow<|endoftext|> lower'

piece 1 of 3: 'slow'
  's' 'l' 'o' 'w'
    rank 0: 'l' + 'o' -> 'lo' (id 256)
  's' 'lo' 'w'
    rank 1: 'lo' + 'w' -> 'low' (id 257)
  's' 'low'
    no pair is a merge
  ids: [115, 257]

piece 2 of 3: '<|endoftext|>'
  special token -> id 100257

piece 3 of 3: ' lower'
  ' ' 'l' 'o' 'w' 'e' 'r'
    rank 0: 'l' + 'o' -> 'lo' (id 256)
  ' ' 'lo' 'w' 'e' 'r'
    rank 1: 'lo' + 'w' -> 'low' (id 257)
  ' ' 'low' 'e' 'r'
    rank 2: 'low' + 'e' -> 'lowe' (id 258)
  ' ' 'lowe' 'r'
    rank 3: ' ' + 'lowe' -> ' lowe' (id 259)
  ' lowe' 'r'
    no pair is a merge
  ids: [259, 114]

ids: [115, 257, 100257, 259, 114]"""
    )


def test_trace_shows_every_candidate() -> None:
    table = " ".join(word.decode() for word, times in TABLE.items() for _ in range(times))
    tokenizer = CharBPETokenizer(GPT2_SPLIT_PATTERN).train(table, 257 + 3, allowed_special=[])
    trace = tokenizer.trace("lowest")
    (piece,) = trace.pieces
    assert piece.steps[0].candidates == {("e", "s"): 0, ("l", "o"): 2}
    assert piece.steps[0].pair == ("e", "s")
    assert [step.token_id for step in piece.steps] == [257, 258, 259]
    assert [step.result for step in piece.steps][-1] == ("lo", "w", "est")
    assert (
        "  'l' 'o' 'w' 'e' 's' 't'\n    rank 0: 'e' + 's' -> 'es' (id 257)\n    rank 2: 'l' + 'o'\n"
        in str(trace)
    )


def test_a_notebook_shows_a_trace_as_print_does() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 258)
    trace = tokenizer.trace("<low>")
    for shown in (trace, trace.pieces[0].steps[0], tokenizer.merge_tree(257)):
        written = shown._repr_html_().removeprefix("<pre>").removesuffix("</pre>")
        assert "<" not in written
        assert html.unescape(written) == str(shown)


@given(training=repetitive_text, text=repetitive_text | any_text, ids=st.lists(st.integers(0, 259)))
def test_traces_agree_with_encode_and_decode(training: str, text: str, ids: list[int]) -> None:
    for kind in (NaiveBPETokenizer, RegexBPETokenizer):
        tokenizer = kind().train(training * 2, 260)
        trace = tokenizer.trace(text)
        assert trace.ids == tokenizer.encode(text)
        assert "".join(piece.piece for piece in trace.pieces) == replace_surrogates(text)
        for piece in trace.pieces:
            results = [piece.tokens, *(step.result for step in piece.steps)]
            for step, (before, after) in zip(piece.steps, pairwise(results), strict=True):
                assert step.tokens == before
                assert after == tuple(merge_pair(before, step.pair, step.pair[0] + step.pair[1]))  # type: ignore[operator]
                assert step.rank == min(step.candidates.values())
            assert [
                tokenizer.inverse_vocab[token] for token in results[-1] if isinstance(token, bytes)
            ] == list(piece.ids)
        known = [token_id for token_id in ids if token_id in tokenizer.vocab]
        assert tokenizer.trace_decode(known).text == tokenizer.decode(known)


def test_trace_of_a_training() -> None:
    tokenizer = RegexBPETokenizer(r"\S+|\s")
    trace = tokenizer.trace_training("low low lower newest", 258)
    assert merges_of(tokenizer) == pairs("l+o lo+w")
    assert trace.words[0] == ((b"l", b"o", b"w"), 2)
    first = trace.steps[0]
    assert str(first) == (
        "pairs: 'l' + 'o' 3, 'o' + 'w' 3, 'w' + 'e' 2, 'e' + 'r' 1, 'n' + 'e' 1, 'e' + 'w' 1, 'e' + 's' 1, "
        "'s' + 't' 1\n"
        "merge 1: 'l' + 'o' -> 'lo' (id 256), seen 3 times\n"
        "2 times  'lo' 'w'\n3 times  ' '\n1 times  'lo' 'w' 'e' 'r'\n1 times  'n' 'e' 'w' 'e' 's' 't'"
    )
    many = NaiveBPETokenizer().trace_training("abcdefghijkl", 257)
    assert "'h' + 'i' 1, and 3 more\n" in str(many)


@given(training=repetitive_text)
def test_a_traced_training_is_a_training(training: str) -> None:
    for kind in CLASSES:
        traced, plain = kind(), trained_on(kind, training, 270)
        trace = traced.trace_training(training, 270)
        assert merges_of(traced)[: len(plain.merges)] == merges_of(plain)
        words = dict(trace.words)
        for step in trace.steps:
            counts: dict[object, int] = {}
            for tokens, times in words.items():
                count_pairs(tokens, counts, times)  # type: ignore[arg-type]
            assert dict(step.table) == counts
            assert step.count == max(counts.values()) == counts[step.pair]
            words = dict(step.words)


# The smallest forms, and BPE on words


# `RegexBPETokenizer` cuts texts at its special token, which `RegexBPE` does not have.
@given((repetitive_text | any_text.map(replace_surrogates)).filter(lambda text: "<|endoftext|>" not in text))
def test_the_smallest_forms_agree_with_the_classes(text: str) -> None:
    smallest = BasicBPE(280).train(text)
    pieces = RegexBPE(280).train(text)
    if text:
        assert smallest.merges == NaiveBPETokenizer().train(text, 280).merges
        assert pieces.merges == RegexBPETokenizer().train(text, 280).merges
    other = text[::-1] + text
    for tokenizer in (smallest, pieces):
        assert tokenizer.decode(tokenizer.encode(other)) == other
    if text:
        assert smallest.encode(other) == NaiveBPETokenizer().train(text, 280).encode(other)
        assert pieces.encode(other) == RegexBPETokenizer().train(text, 280).encode(other)


@given(repetitive_text, repetitive_text | any_text.map(replace_surrogates))
def test_words_train_and_encode(training: str, text: str) -> None:
    token_to_id, merges = words.train_bpe([training], 280, min_frequency=1)
    byte_to_char = words.build_byte_vocab()
    char_to_byte = {character: byte for byte, character in byte_to_char.items()}
    assert list(token_to_id) == [*BYTE_CHARACTERS, *("".join(pair) for pair in merges)]
    special = {"<|end|>": 900}
    ids = words.encode(text + "<|end|>", token_to_id, merges, special, words.SPLIT_PATTERN, byte_to_char)
    tokens = {token_id: token for token, token_id in {**token_to_id, **special}.items()}
    assert words.decode(ids, tokens, char_to_byte, {900}) == text + "<|end|>"
    characters = CharBPETokenizer(words.SPLIT_PATTERN, byte_level=True)
    characters.become(
        dict(enumerate(token_to_id)),
        {(token_to_id[a], token_to_id[b]): token_to_id[a + b] for a, b in merges},
    )
    assert ids == [*characters.encode(text), 900]
    encoder = words.make_cached_encoder(byte_to_char, {pair: rank for rank, pair in enumerate(merges)})
    pieces = [encoder(piece.encode()) for piece in words.pre_tokenize(text)]
    assert [token_to_id[token] for piece in pieces for token in piece] == ids[:-1]
