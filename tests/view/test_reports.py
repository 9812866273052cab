"""Reports: every statistic compared with a slow count."""

from __future__ import annotations

import itertools
import random
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, _core
from bpe_tokenizer.errors import CorpusError
from bpe_tokenizer.model import AddedToken
from bpe_tokenizer.view.reports.comparison import compare_tokenizers
from bpe_tokenizer.view.reports.compression import compression_curve
from bpe_tokenizer.view.reports.disagreements import find_disagreements
from bpe_tokenizer.view.reports.documents import read_blocks, read_lines
from bpe_tokenizer.view.reports.reachability import reachability
from bpe_tokenizer.view.reports.report import make_report
from bpe_tokenizer.view.reports.report_html import comparison_page, report_page
from bpe_tokenizer.view.reports.report_tables import comparison_tables, report_tables
from bpe_tokenizer.view.reports.scripts import SCRIPTS, SPACE, classify_characters, script_of
from bpe_tokenizer.view.reports.stats import TextCounter, TokenCounter
from bpe_tokenizer.view.reports.tables import table_text
from small_tokenizers import BYTES
from view.report_corpus import document, sentencepiece_style

TEXTS = st.text(st.sampled_from("ab é ж語\n\t1.🙂\u0301"), max_size=40)


def parts_of(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in itertools.pairwise(places)]


# Scripts


@pytest.mark.parametrize("script", SCRIPTS[2:])
def test_the_script_of_a_letter_is_the_one_of_the_unicode_database(script: str) -> None:
    named = regex.compile(rf"[\p{{Script={script}}}\p{{Script=Common}}\p{{Script=Inherited}}]")
    own = regex.compile(rf"(?=\p{{L}})\p{{Script={script}}}")
    for character in map(chr, range(0x3130)):
        if script_of(character) == script:
            assert named.match(character)
        elif own.match(character) and unicodedata.category(character) != "Cn":
            assert character in _NAMED_OTHERWISE


# Letters whose names do not begin with the name of their script.
_NAMED_OTHERWISE = "ᴯᴻᵎℲⅎↃ々〻"


@given(TEXTS)
def test_characters_are_found_in_bytes(text: str) -> None:
    found = classify_characters(text.encode())
    assert found.starts.tolist() == [len(text[:k].encode()) for k in range(len(text))]
    for character, each in zip(text, found.classes.tolist(), strict=True):
        assert (each == SPACE) == character.isspace()
        assert (SCRIPTS[each] if each > SPACE else "") == script_of(character)


@given(st.binary(max_size=30))
def test_bytes_that_are_no_utf8_are_survived(data: bytes) -> None:
    found = classify_characters(data)
    assert len(found.starts) == len(found.classes) == sum(byte & 0xC0 != 0x80 for byte in data)


# Counting


def words_of(text: str) -> list[str]:
    """The segments of UAX 29 with a letter or a digit, by `regex`."""
    return [each for each in regex.split(r"(?V1w)\b", text) if regex.search(r"[\p{Alphabetic}\p{N}]", each)]


WORDS = TEXTS | st.text(st.sampled_from("ab1_.,:'’ \n\u0301\u200dʼ·ሰላም፡א\"カ語ไ🙂"), max_size=30)


@given(WORDS, st.lists(st.integers(0, 99), max_size=4))
def test_words_are_counted_however_the_text_is_cut(text: str, cuts: list[int]) -> None:
    counter = TextCounter()
    for part in parts_of(text, cuts):
        counter.add(part)
    counter.finish()
    scripts = [next(filter(None, map(script_of, word)), "other") for word in words_of(text)]
    assert {SCRIPTS[k]: n for k, n in enumerate(counter.words.tolist()) if n} == Counter(scripts)
    assert counter.bytes == len(text.encode())
    assert counter.characters.sum() == len(text)
    assert counter.lines == len(text.split("\n")) - (text.endswith("\n") or not text)


@given(TEXTS, st.lists(st.integers(0, 99), max_size=4), st.randoms())
def test_tokens_are_counted_by_script(text: str, cuts: list[int], dice: random.Random) -> None:
    """Tokens of any bytes, also parts of characters: a text is cut into tokens at random."""
    data = text.encode()
    ends = sorted({*dice.sample(range(len(data) + 1), len(data) // 2), len(data)} - {0})
    tokens = [data[a:b] for a, b in itertools.pairwise([0, *ends])]
    vocab = BYTES | {256 + k: token for k, token in enumerate(sorted(set(tokens))) if len(token) > 1}
    ids_of = {token: each for each, token in vocab.items()}
    counter = TokenCounter(BPETokenizer.from_vocab(vocab, []))
    ids = [ids_of[token] for token in tokens]
    places = sorted({0, len(ids), *(cut % (len(ids) + 1) for cut in cuts)})
    for a, b in itertools.pairwise(places):
        counter.add(ids[a:b])
    counter.finish()

    expected: Counter[str] = Counter()
    begins = [len(text[:k].encode()) for k in range(len(text) + 1)]
    at = 0
    for token in tokens:
        covered = [c for k, c in enumerate(text) if begins[k] < at + len(token) and begins[k + 1] > at]
        expected[next(filter(None, map(script_of, covered)), "other")] += 1
        at += len(token)
    assert {SCRIPTS[k]: n for k, n in enumerate(counter.scripts.tolist()) if n} == expected
    assert {k: n for k, n in enumerate(counter.counts.tolist()) if n} == Counter(ids)


def test_a_report_counts_what_encoding_gives(
    tokenizer: BPETokenizer, mixed_text: str, tmp_path: Path
) -> None:
    texts = {"one.txt": mixed_text * 3, "empty.txt": "", "two.txt": "def f(x):\n    return x <|eos|>\n"}
    corpus = [document(tmp_path / name, text) for name, text in texts.items()]
    report = make_report("it", tokenizer, corpus, under_used_below=3)
    ids = [each for text in texts.values() for each in tokenizer.encode(text)]
    counts = Counter(ids)
    for (name, figures), text in zip(report.files, texts.values(), strict=True):
        assert name in texts
        assert figures.tokens == len(tokenizer.encode(text))
        assert (figures.bytes, figures.characters) == (len(text.encode()), len(text))
        assert figures.words == len(words_of(text))
    assert {k: n for k, n in enumerate(report.counts.tolist()) if n} == counts

    facts = report.to_dict()
    special = set(tokenizer.special_tokens.values())
    assert facts["corpus"]["tokens"] == len(ids)
    assert facts["corpus"]["fertility"] == round(len(ids) / facts["corpus"]["words"], 4)
    assert facts["unused"]["ids"] == sorted(set(tokenizer.vocab) - special - set(ids))
    assert facts["under_used"]["ids"] == sorted(each for each, n in counts.items() if n < 3)
    lengths = Counter(len(tokenizer.vocab[each]) for each in ids)
    assert {each["bytes"]: each["corpus"] for each in facts["token_lengths"] if each["corpus"]} == lengths
    assert sum(each["vocabulary"] for each in facts["token_lengths"]) == len(tokenizer) - len(special)
    ranked = sorted(counts.values(), reverse=True)
    assert [each["count"] for each in facts["rank_frequency"]] == [
        ranked[each["rank"] - 1] for each in facts["rank_frequency"]
    ]
    for each in facts["coverage"]:
        assert sum(ranked[: each["tokens"]]) * 100 >= each["percent"] * len(ids)
        assert sum(ranked[: each["tokens"] - 1]) * 100 < each["percent"] * len(ids)
    longest = max(len(tokenizer.vocab[each]) for each in set(tokenizer.vocab) - special)
    assert facts["longest_tokens"][0]["bytes"] == longest


def test_an_empty_corpus_has_no_ratios(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    report = make_report("it", tokenizer, [document(tmp_path / "empty", "")])
    facts = report.to_dict()
    assert facts["corpus"]["bytes_per_token"] is facts["corpus"]["fertility"] is None
    assert facts["scripts"] == facts["rank_frequency"] == facts["coverage"] == facts["compression"] == []
    assert all(table_text(table) for table in report_tables([report]))
    assert "empty" in facts["summary"][0]
    assert b"<h1>it</h1>" in report_page(report)
    both = compare_tokenizers([("it", tokenizer), ("it", tokenizer)], [document(tmp_path / "empty", "")])
    assert "empty" in both.to_dict()["summary"][0]
    assert all(table_text(table) for table in comparison_tables(both))
    assert b"it and it (2) compared" in comparison_page(both)


# Reachability


def test_unreachable_tokens_are_found_and_no_others() -> None:
    vocab = BYTES | {256: b"bc", 257: b"ab", 258: b"abc", 259: b"a b", 260: b"\xd0\xb6", 261: b"\xb6\xd0"}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c"), (b"\xb6", b"\xd0"), (b"\xd0", b"\xb6")]
    tokenizer = BPETokenizer.from_vocab(vocab, merges, split_pattern="gpt2")
    found = reachability(tokenizer, vocab)
    assert {each for each in found.unreachable if each > 255} == {258, 259}
    assert {each for each in found.unreachable if each < 256} == {0xC0, 0xC1, *range(0xF5, 0x100)}
    assert found.unreachable[258] == "merging its bytes gives 97 256"
    # 261 cuts two characters; within a piece, merging makes it first.
    assert found.undecided == []


def test_a_token_that_no_piece_holds_is_undecided() -> None:
    vocab = BYTES | {256: b" b", 257: b"a b"}
    tokenizer = BPETokenizer.from_vocab(vocab, [(b" ", b"b"), (b"a", b" b")], split_pattern="gpt2")
    found = reachability(tokenizer, [256, 257])
    assert (found.unreachable, found.undecided) == ({}, [257])


def test_what_a_corpus_gives_is_never_called_unreachable(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, mixed_text: str, stdlib_texts: list[str]
) -> None:
    for each in (tokenizer, plain_tokenizer):
        used = {token_id for text in [*stdlib_texts, mixed_text] for token_id in each.encode(text)}
        found = reachability(each, used)
        assert found.unreachable == {}


def test_a_report_of_characters_with_byte_fallback(tmp_path: Path) -> None:
    tokenizer = sentencepiece_style()
    text = "ab a\nж 語 <s>"
    report = make_report("it", tokenizer, [document(tmp_path / "f", text)])
    facts = report.to_dict()
    assert facts["corpus"]["tokens"] == len(tokenizer.encode(text))
    counted = {each["script"]: (each["letters"], each["words"], each["tokens"]) for each in facts["scripts"]}
    # "▁a" "b" "▁a"; "s" and "語" have no token, so they are one and three bytes.
    assert counted == {"Latin": (4, 3, 4), "Cyrillic": (1, 1, 1), "Han": (1, None, 3)}
    # "ba" has no merge; byte tokens of characters that have a token are undecided.
    assert [(each["token"], each["reason"]) for each in facts["unreachable"]] == [
        ("ba", "merging its bytes gives 260 259")
    ]
    assert tokenizer.convert_tokens_to_ids("<0x61>") in facts["reachability_undecided"]
    whole = facts["compression"]
    assert [each["tokens"] for each in whole][-1] == facts["corpus"]["tokens"]
    assert whole[0]["tokens"] == len(text) + 1 + 2  # the space before the text; the bytes of 語


# Compression


def first_merges(tokenizer: BPETokenizer, count: int) -> BPETokenizer:
    merges = tokenizer.merges[:count]
    vocab = BYTES | {256 + k: left + right for k, (left, right) in enumerate(merges)}
    return BPETokenizer.from_vocab(vocab, merges, split_pattern="gpt2", normalization=None)


def test_the_curve_is_what_smaller_vocabularies_give(
    plain_tokenizer: BPETokenizer, mixed_text: str, stdlib_texts: list[str]
) -> None:
    text = stdlib_texts[0] + mixed_text
    counts = np.bincount(plain_tokenizer.encode(text), minlength=len(plain_tokenizer))
    curve = compression_curve(plain_tokenizer.model.core, counts)
    assert not isinstance(curve, str)
    assert [each.vocab_size for each in curve] == [256, 512, 600]
    for size, tokens in curve:
        assert tokens == first_merges(plain_tokenizer, size - 256).count_tokens(text)


def test_the_curve_of_a_model_that_merges_an_added_token() -> None:
    added = AddedToken("<", ord("<"), special=True)
    core = _core.Model(BYTES | {256: b"<s"}, [(b"<", b"s")], added_tokens=[added])
    ids = _core.Encoder(core).encode("<s<")
    assert ids == [256, ord("<")]
    assert compression_curve(core, np.bincount(ids, minlength=257)) == [(256, 3), (257, 2)]


@pytest.mark.parametrize(("special", "left_out"), [(True, False), (False, True)])
def test_the_curve_of_a_model_that_merges_to_an_added_token(special: bool, left_out: bool) -> None:
    """The tokens of a special token's text, which is plain text here, may be merged to its id."""
    vocab, merges = BYTES | {256: b"<s", 257: b"<s>"}, [(b"<", b"s"), (b"<s", b">")]
    added = AddedToken("<s>", 257, special=special)
    core = _core.Model(vocab, merges, split_patterns=["(?s:.+)"], added_tokens=[added])
    ids = _core.Encoder(core).encode("<s>.<s")
    assert ids == [257, ord("."), 256]
    curve = compression_curve(core, np.bincount(ids, minlength=258))
    if left_out:
        assert isinstance(curve, str)
        assert "both" in curve
    else:
        assert curve == [(256, 6), (258, 3)]


@pytest.mark.parametrize(
    ("vocab", "merges", "reason"),
    [
        ({}, [], "no merges"),
        (
            {256: b"ab", 257: b"bc", 258: b"abc"},
            [(b"a", b"b"), (b"b", b"c"), (b"a", b"bc"), (b"ab", b"c")],
            "more than one merge",
        ),
        ({256: b"abc", 257: b"ab"}, [(b"ab", b"c"), (b"a", b"b")], "only a later merge makes"),
    ],
)
def test_the_curve_is_left_out_where_it_would_be_wrong(
    vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], reason: str
) -> None:
    model = _core.Model(BYTES | vocab, merges, split_patterns=["(?s:.+)"])
    curve = compression_curve(model, np.ones(256 + len(vocab), dtype=np.int64))
    assert isinstance(curve, str)
    assert reason in curve


def test_the_curve_is_left_out_for_whole_pieces_that_merging_does_not_give() -> None:
    vocab = BYTES | {256: b"bc", 257: b"ab", 258: b"abc"}
    merges = [(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")]
    core = _core.Model(vocab, merges, split_patterns=["(?s:.+)"], ignore_merges=True)
    ids = _core.Encoder(core).encode("abc")
    assert ids == [258]
    curve = compression_curve(core, np.bincount(ids, minlength=259))
    assert isinstance(curve, str)
    assert "1 tokens of the corpus are whole pieces" in curve


# Reading


@pytest.mark.parametrize("text", ["", "a", "a\n", "é\n\n語", "x" * 200_000 + "\ny", "🙂" * 300_000])
def test_files_are_read_as_they_stand(text: str, tmp_path: Path) -> None:
    file = document(tmp_path / "file", text)
    read: list[int] = []
    assert "".join(read_blocks(file, read.append)) == text
    assert sum(read) == len(text.encode())
    lines = [each for block in read_lines(file) for each in block]
    assert "".join(part for _, part in lines) == text
    assert all(len(part) <= 1 << 16 for _, part in lines)
    whole: dict[int, str] = {}
    for number, part in lines:
        whole[number] = whole.get(number, "") + part
    assert list(whole.values()) == text.splitlines(keepends=True)


@pytest.mark.parametrize("before", [0, 5, (1 << 20) - 1, 1 << 20])
@pytest.mark.parametrize("bad", [b"\xff", b"\xe8\xaa", b"\xe8a"])
def test_what_is_not_utf8_is_named_with_its_place(before: int, bad: bytes, tmp_path: Path) -> None:
    file = document(tmp_path / "file", b"x" * before + bad)
    with pytest.raises(CorpusError, match=rf"file is not UTF-8: byte 0x{bad[0]:02x} at offset {before:,};"):
        list(read_blocks(file))


# Disagreements


def test_disagreements_are_found(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    """Against a slow comparison: the boundaries of each line as sets."""
    lines = ["def f(x):\n", "\n", "naïve café 1234567\n", "    return x\n", "日本語 👩‍👩‍👧"]
    found = find_disagreements([tokenizer, plain_tokenizer], [document(tmp_path / "f", "".join(lines))])
    pair = (tokenizer, plain_tokenizer)
    counts = [tuple(each.count_tokens(line) for each in pair) for line in lines]
    assert found.lines == 5
    assert found.same_count == sum(a == b for a, b in counts)
    differing = [(abs(a - b), -k) for k, (a, b) in enumerate(counts) if a != b]
    assert [each.number for each in found.largest] == [1 - k for _, k in sorted(differing, reverse=True)]
    assert all(each.text == lines[each.number - 1] for each in found.largest)
    assert all(each.tokens == counts[each.number - 1] for each in found.largest)
    for cuts in found.cuts:
        whole, by = pair[cuts.whole], pair[cuts.by]
        expected: Counter[int] = Counter()
        for line in lines:
            boundaries = {begin for begin, _ in by.encode_with_offsets(line, unit="byte")[1]}
            for token_id, (begin, end) in zip(*whole.encode_with_offsets(line, unit="byte"), strict=True):
                expected[token_id] += any(begin < each < end for each in boundaries)
        assert {k: n for k, n in enumerate(cuts.times.tolist()) if n} == {
            k: n for k, n in expected.items() if n
        }
        for token_id, into in cuts.into.items():
            together = b"".join(by.vocab[each] for each in into)
            assert len(into) > 1
            assert whole.vocab[token_id] in together


def test_a_tokenizer_agrees_with_itself(tokenizer: BPETokenizer, mixed_text: str, tmp_path: Path) -> None:
    found = find_disagreements([tokenizer] * 3, [document(tmp_path / "f", mixed_text)])
    assert (found.lines, found.same_count, found.largest) == (4, 4, [])
    assert [int(each.times.sum()) for each in found.cuts] == [0, 0, 0, 0]
