"""Reports: every statistic compared with a slow count, and self-contained pages."""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import random
import re
import unicodedata
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, Model, _core
from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.formats import registry
from bpe_tokenizer.model import AddedToken, Decoder, Prepend, Replace
from bpe_tokenizer.view.reports import report_html
from bpe_tokenizer.view.reports.comparison import Comparison, compare_tokenizers
from bpe_tokenizer.view.reports.compression import compression_curve
from bpe_tokenizer.view.reports.disagreements import find_disagreements
from bpe_tokenizer.view.reports.documents import Document, read_blocks, read_lines
from bpe_tokenizer.view.reports.languages import file_costs, find_reference, script_costs
from bpe_tokenizer.view.reports.names import file_labels, tokenizer_labels
from bpe_tokenizer.view.reports.overlap import vocabulary_overlap
from bpe_tokenizer.view.reports.reachability import reachability
from bpe_tokenizer.view.reports.report import Report, make_report
from bpe_tokenizer.view.reports.report_html import comparison_page, report_page
from bpe_tokenizer.view.reports.report_tables import comparison_tables, report_tables
from bpe_tokenizer.view.reports.scripts import SCRIPTS, SPACE, classify_characters, script_of
from bpe_tokenizer.view.reports.stats import CorpusStats, TextCounter, TokenCounter
from bpe_tokenizer.view.reports.summary import comparison_summary
from bpe_tokenizer.view.reports.tables import Table, table_text

BYTES = {byte: bytes([byte]) for byte in range(256)}
TEXTS = st.text(st.sampled_from("ab é ж語\n\t1.🙂\u0301"), max_size=40)


def document(path: Path, text: str | bytes) -> Document:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Document(path.name, path)


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


def sentencepiece_style(path: Path) -> BPETokenizer:
    """Characters with byte fallback, spaces as `▁`."""
    tokens = [
        "<unk>",
        "<s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "a",
        "b",
        "ж",
        "▁a",
        "ab",
        "ba",
    ]
    core = _core.Model(
        {token_id: token.encode() for token_id, token in enumerate(tokens)},
        [("▁".encode(), b"a"), (b"a", b"b")],
        normalizers=[Prepend(prepend="▁"), Replace(pattern=" ", content="▁")],
        alphabet="characters",
        byte_fallback=True,
        unk_id=0,
        decoder=Decoder("▁", True, "one"),
        added_tokens=[AddedToken("<s>", 1)],
    )
    registry.save(Model(core), path, "base64-json")
    return BPETokenizer.load(path)


def test_a_report_of_characters_with_byte_fallback(tmp_path: Path) -> None:
    tokenizer = sentencepiece_style(tmp_path / "saved.json")
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


# Tables, plots and pages


def test_columns_are_aligned_by_their_width_on_a_terminal() -> None:
    table = Table("T", ["a", "n"], [["語", 1], ["x", 12.5], ["y", None]])
    assert table_text(table) == "T\n  a       n\n  語      1\n  x   12.50\n  y       -"


def test_columns_of_a_group_have_its_name() -> None:
    table = Table("T", ["a", ("n", "x"), ("n", "y")], [["z", 1, 2]])
    assert table_text(table) == "T\n     n\n  a  x  y\n  z  1  2"
    wide = Table("T", ["a", ("a long name", "x"), ("m", "x"), "b"], [["z", 1, 2, 3]])
    assert table_text(wide) == "T\n     a long name  m\n  a            x  x  b\n  z            1  2  3"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.addresses: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.addresses += [value for name, value in attrs if name in ("src", "href") or name.startswith("on")]


def hostile_report(tmp_path: Path) -> Report:
    vocab = BYTES | {256: b"<script>", 257: b"\"'&</td>"}
    tokenizer = BPETokenizer.from_vocab(vocab, [])
    return make_report(
        "<b>name", tokenizer, [document(tmp_path / "<img src=x>", "<script>alert(1)</script>\n")]
    )


def parsed(page: bytes) -> _Elements:
    elements = _Elements()
    elements.feed(page.decode())
    return elements


def test_a_page_needs_nothing_else_and_nothing_breaks_out(tmp_path: Path) -> None:
    report = hostile_report(tmp_path)
    both = compare_tokenizers(
        [
            ("<b>name", report.tokenizer),
            ("<i>name", BPETokenizer("a|b", None).train("ab", 257, verbose=False)),
        ],
        [Document("<img src=x>", tmp_path / "<img src=x>")],
    )
    for page in (report_page(report), comparison_page(both)):
        elements = parsed(page)
        assert {"script", "img", "i", "link", "iframe"}.isdisjoint(elements.tags)
        assert elements.addresses == []
        text = page.decode()
        assert "url(" not in text
        assert "@import" not in text
        assert " style=" not in text
        assert elements.tags["svg"] >= 2
        assert "&lt;script&gt;" in text
        assert "&lt;b&gt;name" in text
    assert "&lt;img src=x&gt;" in comparison_page(both).decode()


def test_the_policy_of_a_page_allows_its_own_style_only(tmp_path: Path) -> None:
    text = report_page(hostile_report(tmp_path)).decode()
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src &#x27;sha256-{digest}&#x27;" in text
    assert "default-src &#x27;none&#x27;" in text


def test_reports_are_deterministic(tokenizer: BPETokenizer, mixed_text: str, tmp_path: Path) -> None:
    corpus = [document(tmp_path / "f", mixed_text)]
    pages = {report_page(make_report("it", tokenizer, corpus)) for _ in range(2)}
    assert len(pages) == 1
    assert len(pages.pop()) > 5000


# Names


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["/a/gpt2-vocab.json", "b/cl100k_base.tiktoken"], ["gpt2-vocab", "cl100k_base"]),
        (["gpt-4o", "hf:owner/Model-1.5"], ["gpt-4o", "Model-1.5"]),
        (["llama/tokenizer.json", "qwen/tokenizer.json"], ["llama", "qwen"]),
        (["x/a.json", "y/a.json", "z/b.json"], ["x/a", "y/a", "b"]),
        (["a", "a", "x/a"], ["a", "a (2)", "x/a"]),
        (["tokenizer.json", "."], ["tokenizer", "."]),
        (["a\x1b[31m.json"], ["a\\x1b[31m"]),
        (["x" * 100], ["…" + "x" * 39]),
    ],
)
def test_tokenizers_have_short_names_that_differ(names: list[str], labels: list[str]) -> None:
    assert tokenizer_labels(names) == labels


@given(st.lists(st.sampled_from(["a", "b", "x/a", "x/b", "y/x/a", "y/a.json", "/a", "a (2)"]), max_size=6))
def test_short_names_end(names: list[str]) -> None:
    assert len(tokenizer_labels(names)) == len(file_labels(names)) == len(names)


def test_many_files_of_one_name_are_told_apart() -> None:
    names = [f"data/{k}/train.txt" for k in range(5000)]
    assert file_labels(names) == [f"{k}/train" for k in range(5000)]


def test_files_lose_what_all_share() -> None:
    assert file_labels(["d/de.txt", "d/en.txt"]) == ["de", "en"]
    assert file_labels(["de/news.txt", "en/news.txt"]) == ["de/news", "en/news"]
    assert file_labels(["a.txt", "b.md"]) == ["a.txt", "b.md"]


# Languages


def stats(tokens: int, characters: int = 100, lines: int = 5) -> CorpusStats:
    return CorpusStats(characters, characters, 10, tokens, lines, {"Latin": 80})


def test_translations_are_compared_as_the_same_text() -> None:
    files = [("en.txt", stats(20)), ("de.txt", stats(50, 200)), ("zh.txt", stats(40, 25))]
    costs = file_costs(files, 0)
    assert (costs.by, costs.reference) == ("translations", "en")
    assert [each.cost for each in costs.rows] == [1, 2.5, 2]
    assert [each.per_character for each in costs.rows] == [1, 1.25, 8]


@pytest.mark.parametrize(("lines", "other"), [(5, 6), (2, 2)])
def test_different_texts_are_compared_by_character(lines: int, other: int) -> None:
    costs = file_costs([("en", stats(20, lines=lines)), ("de", stats(50, 200, other))], 0)
    assert costs.by == "files"
    assert [each.cost for each in costs.rows] == [1, 1.25]
    assert costs.rows[1].same_text is None


def test_the_reference_is_the_file_in_english_or_the_wanted_one() -> None:
    names = ["x/de_DE.txt", "x/en_US.txt", "x/token.txt"]
    assert find_reference(names) == 1
    assert find_reference(names, "x/token.txt") == find_reference(names, "token") == 2
    assert find_reference(["x/token.txt", "x/men.txt"]) is None
    with pytest.raises(OptionError, match="not a file of the corpus; did you mean 'de_DE'"):
        find_reference(names, "de_D")


def test_scripts_are_compared_with_latin_letters() -> None:
    rows = [
        {"script": "Latin", "letters": 100, "tokens": 25, "tokens_per_letter": 0.25},
        {"script": "Han", "letters": 50, "tokens": 50, "tokens_per_letter": 1.0},
        {"script": "Greek", "letters": 3, "tokens": 3, "tokens_per_letter": 1.0},
    ]
    costs = script_costs(rows)
    assert costs is not None
    assert [(each.name, each.cost) for each in costs.rows] == [("Latin", 1), ("Han", 4)]
    assert script_costs(rows[:1]) is None
    assert script_costs(rows[1:]) is None


LANGUAGES = {
    "en.txt": "the low house\nthe new tower\nthe wide street\n",
    "ja.txt": "低い家\n新しい塔\n広い通り\n",
    "ru.txt": "низкий дом\nновая башня\nширокая улица\n",
}


@pytest.fixture
def languages(tmp_path: Path) -> list[Document]:
    return [document(tmp_path / name, text) for name, text in LANGUAGES.items()]


def test_scripts_without_spaces_have_no_fertility(
    plain_tokenizer: BPETokenizer, languages: list[Document]
) -> None:
    english, japanese, russian = make_report("it", plain_tokenizer, languages).to_dict()["files"]
    assert (japanese["words"], japanese["fertility"]) == (None, None)
    assert japanese["script"] in ("Han", "Hiragana")
    assert (english["words"], russian["words"]) == (9, 6)
    assert english["fertility"] == round(english["tokens"] / 9, 4)
    # A few letters of such a script do not hide the fertility of a text.
    assert CorpusStats(0, 0, 5, 10, 1, {"Latin": 90, "Han": 10}).fertility == 2
    assert CorpusStats(0, 0, 5, 10, 1, {"Latin": 89, "Thai": 11}).fertility is None
    assert CorpusStats(0, 0, 5, 10, 1, {}).fertility == 2


def test_files_without_words_leave_the_fertility_of_the_others(
    plain_tokenizer: BPETokenizer, languages: list[Document], tmp_path: Path
) -> None:
    amharic = "ሰላም፡ለዓለም፡ሁሉ።\n" * 9  # words between the Ethiopic word space, without white space
    report = make_report("it", plain_tokenizer, [*languages, document(tmp_path / "am.txt", amharic)])
    facts = report.to_dict()
    english, _, russian, ethiopic = facts["files"]
    assert (ethiopic["words"], ethiopic["fertility"]) == (27, round(ethiopic["tokens"] / 27, 4))
    counted = english, russian, ethiopic
    assert facts["corpus"]["words"] == sum(each["words"] for each in counted)
    tokens = sum(each["tokens"] for each in counted)
    assert facts["corpus"]["fertility"] == round(tokens / facts["corpus"]["words"], 4)
    assert facts["corpus"]["files_without_words"] == ["ja"]
    assert "Left out of both: ja." in next(report_tables([report])).note


@pytest.mark.parametrize(("times", "is_enough"), [(20, False), (200, True)])
def test_headlines_rest_on_a_thousand_letters(
    times: int, is_enough: bool, plain_tokenizer: BPETokenizer, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    text = "the low house, the new tower, the wide street\n" * 40 + "низкий" * times
    corpus = [document(tmp_path / "a.txt", text)]
    found = [make_report("it", each, corpus) for each in (plain_tokenizer, tokenizer)]
    assert [row["name"] for row in found[0].facts["languages"]["rows"]] == ["Latin", "Cyrillic"]
    assert ("in Cyrillic." in found[0].facts["summary"][1]) == is_enough
    both = compare_tokenizers({"plain": plain_tokenizer, "other": tokenizer}, corpus)
    summary = " ".join(both.to_dict()["summary"])
    assert ("Cyrillic" in summary) == is_enough


def test_a_line_is_shown_once_and_files_without_directories(
    plain_tokenizer: BPETokenizer, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    line = "def f(x): return naïve café 1234567\n"
    corpus = [document(tmp_path / name, line * 50 + "import x\n") for name in ("a.txt", "b.txt")]
    corpus = [each._replace(name=str(each.location)) for each in corpus]
    pairs = [(f"{tmp_path}/one", plain_tokenizer), (f"{tmp_path}/two", tokenizer)]
    comparison = compare_tokenizers(pairs, corpus)
    facts = comparison.to_dict()
    found = facts["disagreements"]["largest_differences"]
    assert [(each["file"], each["text"]) for each in found if each["text"] == line] == [("a.txt", line)]
    assert [each["name"] for each in facts["tokenizers"][0]["files"]] == ["a.txt", "b.txt"]
    assert str(tmp_path) not in json.dumps(facts)
    assert str(tmp_path) not in comparison_page(comparison).decode()


def test_a_report_has_the_cost_of_languages(plain_tokenizer: BPETokenizer, tmp_path: Path) -> None:
    texts = {name: text * 100 for name, text in LANGUAGES.items()}
    languages = [document(tmp_path / name, text) for name, text in texts.items()]
    facts = make_report("it", plain_tokenizer, languages).to_dict()
    counts = {name: plain_tokenizer.count_tokens(text) for name, text in texts.items()}
    found = {row["name"]: row["cost"] for row in facts["languages"]["rows"]}
    assert facts["languages"]["by"] == "translations"
    assert found == {name[:2]: round(count / counts["en.txt"], 4) for name, count in counts.items()}
    highest = max(found, key=found.__getitem__)
    assert facts["summary"][1].startswith(f"Against en, the same text needs {found[highest]:.1f} times")
    other = make_report("it", plain_tokenizer, languages, reference="ru").to_dict()
    assert other["languages"]["reference"] == "ru"


# Overlap, examples and summaries


def test_shared_tokens_are_compared_by_their_text(tmp_path: Path) -> None:
    first = BPETokenizer.from_vocab(BYTES | {256: b" a", 257: b"ab"}, [])
    second = sentencepiece_style(tmp_path / "saved.json")
    (found,) = vocabulary_overlap([first, second])
    texts = [{bytes([k]) for k in range(256)} | {b" a", b"ab"}]
    texts.append({bytes([k]) for k in range(256)} | {b" a", b"ab", b"ba", "ж".encode()})
    assert found.shared == len(texts[0] & texts[1])
    assert found.jaccard == round(len(texts[0] & texts[1]) / len(texts[0] | texts[1]), 4)
    assert found.sizes == (len(texts[0]), len(texts[1]))


def test_examples_are_of_different_scripts_and_their_tokens_are_marked(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    lines = ["x" * 30, "ж" * 30, "ж" * 31, "語" * 30, "def f(x):\n" * 3, "short"]
    corpus = [document(tmp_path / "f", "\n".join(lines) + "\n" + "low и " * 40)]
    found = find_disagreements([tokenizer, plain_tokenizer], corpus)
    texts = [each.text for each in found.examples]
    assert len(texts) == len(set(texts)) > 2
    for each in found.examples:
        first, second = (set(one.spans) for one in each.tokens)
        assert len(each.text) <= 72
        for one, made in zip(each.tokens, (tokenizer, plain_tokenizer), strict=True):
            assert one.ids == made.encode(each.text)
            assert one.differs == [span not in first & second for span in one.spans]
            assert any(one.differs)
    # The last line is longer than an example.
    assert [each.is_part for each in found.examples if each.text.startswith("low")] in ([True], [])


def test_a_text_is_an_example_once(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    line = "def f(x): return naïve café 1234567\n"
    found = find_disagreements([tokenizer, plain_tokenizer], [document(tmp_path / "f", line * 5)])
    assert found.same_count == 0
    assert [(each.line, each.is_part) for each in found.examples] == [(1, False)]


def test_equal_tokenizers_have_no_examples(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    assert find_disagreements([tokenizer] * 2, [document(tmp_path / "f", "low " * 50)]).examples == []


def figures(name: str, **tokens: int) -> dict[str, object]:
    files = [{"label": label, "tokens": count, "characters": 1000} for label, count in tokens.items()]
    return {"name": name, "corpus": {"tokens": sum(tokens.values())}, "files": files, "languages": None}


def test_the_summary_says_who_needs_fewer_tokens_and_where() -> None:
    facts = {
        "tokenizers": [figures("old", english=500, arabic=500), figures("new", english=550, arabic=250)],
        "overlap": [{"shared": 10, "share_of_each": [0.5, 0.25]}],
        "disagreements": {"lines": 8, "lines_of_same_count": 2},
    }
    assert comparison_summary(facts) == [
        "new needs 20 % fewer tokens than old on this corpus; the gap is largest for arabic: 50 %, and "
        "english needs 9 % fewer with old.",
        "They share 10 tokens: 50 % of the vocabulary of old and 25 % of the vocabulary of new.",
        "25 % of the lines have the same number of tokens with both.",
    ]


def test_every_figure_of_a_page_is_in_its_json(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, languages: list[Document]
) -> None:
    """Every number in a table of a comparison is a value of `to_dict`."""
    both = compare_tokenizers([("a/one", tokenizer), ("b/two", plain_tokenizer)], languages)
    known: set[float] = {100.0, 1.0}

    def collect(value: object) -> None:
        if isinstance(value, dict):
            for each in value.values():
                collect(each)
        elif isinstance(value, list):
            known.add(float(len(value)))
            for each in value:
                collect(each)
        elif isinstance(value, int | float):
            known.add(float(value))

    facts = both.to_dict()
    collect(facts)
    for table in comparison_tables(both):
        if table.title == "Token lengths":  # The last row has the sum of the longer tokens.
            continue
        for row in table.rows:
            for cell in row:
                if isinstance(cell, int | float):
                    assert float(cell) in known, (table.title, row)
    assert json.loads(json.dumps(facts)) == facts
    page = comparison_page(both).decode()
    assert all(f"<li>{html.escape(sentence)}</li>" in page for sentence in facts["summary"])
    assert "one and two compared" in page


def test_names_are_in_every_heading(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, languages: list[Document]
) -> None:
    both = compare_tokenizers({"one": tokenizer, "two": plain_tokenizer}, languages)
    assert isinstance(both, Comparison)
    page = comparison_page(both).decode()
    assert not re.search(r">[AB]<|, [AB]<", page)
    assert page.count(">one<") >= 8
    assert "Tokens of one that two cuts" in page


def test_numbers_are_never_broken() -> None:
    style = (Path(report_html.__file__).parent / "reports.css").read_text(encoding="utf-8")
    cells = re.search(r"table\.bpe-table td\{([^}]*)\}", style)
    assert cells is not None
    assert "white-space:nowrap" in cells[1]
    assert "tabular-nums" in style
    for rule in re.findall(r"([^{}]*)\{[^{}]*overflow-wrap:anywhere", style):
        assert not re.search(r"\btd$|\btable\.bpe-table$", rule.strip())


def test_notebooks_show_reports_that_are_bounded_and_scoped(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    corpus = [document(tmp_path / f"{k}.txt", "low lower\n" * 5) for k in range(150)]
    corpus.append(document(tmp_path / "en.txt", "low lower\n" * 5))
    report = make_report("it", tokenizer, corpus)
    both = compare_tokenizers([("it", tokenizer), ("other", plain_tokenizer)], corpus)
    for shown in (report._repr_html_(), both._repr_html_()):
        assert len(shown) < 200_000
        elements = parsed(shown.encode())
        assert {"script", "html", "body", "link", "img"}.isdisjoint(elements.tags)
        style = shown.partition("<style>")[2].partition("</style>")[0]
        for selector in selectors(style):
            assert selector.startswith(".bpe"), selector
    assert repr(both) == "Comparison(it, other)"


def selectors(style: str) -> list[str]:
    """Return the selectors of a style sheet without nested rules but those of @media and @container."""
    flat = re.sub(r"@(?:media|container)[^{]*\{", "", style)
    found = re.findall(r"([^{}]+)\{", flat)
    return [each.strip() for group in found for each in group.split(",") if each.strip()]
