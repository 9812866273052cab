"""Reports as people see them: tables, self-contained pages, names, languages, examples and summaries."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import OptionError
from bpe_tokenizer.view.reports.comparison import Comparison, compare_tokenizers
from bpe_tokenizer.view.reports.disagreements import find_disagreements
from bpe_tokenizer.view.reports.documents import Document
from bpe_tokenizer.view.reports.languages import file_costs, find_reference, script_costs
from bpe_tokenizer.view.reports.names import file_labels, tokenizer_labels
from bpe_tokenizer.view.reports.overlap import vocabulary_overlap
from bpe_tokenizer.view.reports.report import Report, make_report
from bpe_tokenizer.view.reports.report_html import comparison_page, report_page
from bpe_tokenizer.view.reports.report_tables import comparison_tables, report_tables
from bpe_tokenizer.view.reports.stats import CorpusStats
from bpe_tokenizer.view.reports.summary import comparison_summary
from bpe_tokenizer.view.reports.tables import Table, table_text
from html_tree import Tree
from small_tokenizers import BYTES
from view.report_corpus import document, sentencepiece_style
from view.test_notebook import selectors

# Tables, plots and pages


def test_columns_are_aligned_by_their_width_on_a_terminal() -> None:
    table = Table("T", ["a", "n"], [["語", 1], ["x", 12.5], ["y", None]])
    assert table_text(table) == "T\n  a       n\n  語      1\n  x   12.50\n  y       -"


def test_columns_of_a_group_have_its_name() -> None:
    table = Table("T", ["a", ("n", "x"), ("n", "y")], [["z", 1, 2]])
    assert table_text(table) == "T\n     n\n  a  x  y\n  z  1  2"
    wide = Table("T", ["a", ("a long name", "x"), ("m", "x"), "b"], [["z", 1, 2, 3]])
    assert table_text(wide) == "T\n     a long name  m\n  a            x  x  b\n  z            1  2  3"


def hostile_report(tmp_path: Path) -> Report:
    vocab = BYTES | {256: b"<script>", 257: b"\"'&</td>"}
    tokenizer = BPETokenizer.from_vocab(vocab, [])
    return make_report(
        "<b>name", tokenizer, [document(tmp_path / "<img src=x>", "<script>alert(1)</script>\n")]
    )


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
        text = page.decode()
        elements = Tree(text).elements
        tags = [tag for tag, _ in elements]
        assert {"script", "img", "i", "link", "iframe"}.isdisjoint(tags)
        names = {name for _, attributes in elements for name in attributes}
        assert not [name for name in names if name in ("src", "href", "style") or name.startswith("on")]
        assert "url(" not in text
        assert "@import" not in text
        assert tags.count("svg") >= 2
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


@pytest.mark.parametrize(("script", "text"), [("Javanese", "ꦧꦱꦗꦮ"), ("Balinese", "ᬅᬓ᭄ᬱᬭ"), ("Yi", "ꆈꌠꉙ")])
def test_rare_scripts_without_spaces_have_none_either(
    plain_tokenizer: BPETokenizer, tmp_path: Path, script: str, text: str
) -> None:
    (found,) = make_report("it", plain_tokenizer, [document(tmp_path / "a", text * 20)]).to_dict()["files"]
    assert (found["script"], found["words"], found["fertility"]) == (script, None, None)


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


def test_shared_tokens_are_compared_by_their_text() -> None:
    first = BPETokenizer.from_vocab(BYTES | {256: b" a", 257: b"ab"}, [])
    second = sentencepiece_style()
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
        "token_ratios": [{"first": "new", "second": "old", "interval": (0.75, 0.85)}],
        "disagreements": {"lines": 8, "lines_of_same_count": 2},
    }
    assert comparison_summary(facts) == [
        "new needs 20 % fewer tokens than old on this corpus (95 % interval: 15 % to 25 %); "
        "the gap is largest for arabic: 50 %, and english needs 9 % fewer with old.",
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


def test_notebooks_show_reports_that_are_bounded_and_scoped(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    corpus = [document(tmp_path / f"{k}.txt", "low lower\n" * 5) for k in range(150)]
    corpus.append(document(tmp_path / "en.txt", "low lower\n" * 5))
    report = make_report("it", tokenizer, corpus)
    both = compare_tokenizers([("it", tokenizer), ("other", plain_tokenizer)], corpus)
    for shown in (report._repr_html_(), both._repr_html_()):
        assert len(shown) < 200_000
        tags = {tag for tag, _ in Tree(shown).elements}
        assert {"script", "html", "body", "link", "img"}.isdisjoint(tags)
        style = shown.partition("<style>")[2].partition("</style>")[0]
        assert [each for each in selectors(style) if not each.startswith(".bpe")] == []
    assert repr(both) == "Comparison(it, other)"
