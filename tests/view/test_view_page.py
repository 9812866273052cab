"""Visualizations as HTML and as pages."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import OptionError, SpecialTokenError
from bpe_tokenizer.view.html import MAX_STEP_SYMBOLS, visualization_html
from bpe_tokenizer.view.page import MAX_TEXT, columns_html, content_security_policy, page
from html_tree import ATTACKS, Tree, check, token_elements

CORPUS = "low low low lower lowest newer newer newest wider widest </script> \"'&<b>é🙂" * 3


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    made = BPETokenizer(normalization=None)
    return made.train(CORPUS, vocab_size=300, special_tokens=["<|end|>", "<|other|>"], verbose=False)


@pytest.mark.parametrize("text", [*ATTACKS, "\n\nleading lines", "", "\x00\u2028\u202e\ud800"])
def test_no_text_breaks_out_of_the_page(tokenizer: BPETokenizer, text: str) -> None:
    for is_live in (False, True):
        tree = check(page({text or "a": tokenizer}, text, "all", is_live=is_live))
        # The HTML of a textarea begins with a line feed that does not count.
        assert tree.text("textarea") == "\n" + text
        assert len(token_elements(tree)) == len(tokenizer.encode(text))
        assert tree.all("section")[0]["aria-label"] == (text or "a")


@settings(max_examples=100, deadline=None)
@given(text=st.text(st.sampled_from("<>&\"'/=!-scriptab \n`")))
def test_no_random_text_breaks_out_either(tokenizer: BPETokenizer, text: str) -> None:
    check(page({"a": tokenizer}, text))


@pytest.mark.parametrize("attack", [*ATTACKS, "'\"><script>x()</script>"])
def test_a_token_may_be_an_attack(attack: str) -> None:
    tokenizer = BPETokenizer().train("low", 257, special_tokens=[attack], verbose=False)
    tree = check(page({"a": tokenizer}, f"a{attack}", "all"))
    assert f"Token 2 of 2: “{attack}”\n" in (token_elements(tree)[1]["aria-label"] or "")
    assert attack in tree.text("span")


def test_each_token_has_a_label(tokenizer: BPETokenizer) -> None:
    tree = check(page({"a": tokenizer}, "a low<|end|>", "all"))
    labels = [each["aria-label"] or "" for each in token_elements(tree)]
    ids = tokenizer.encode("a low<|end|>", allowed_special="all")
    assert [int(re.findall(r"\nid (\d+)\n", label)[0]) for label in labels] == ids
    assert labels[0] == f"Token 1 of {len(ids)}: “a”\nid 97\nbytes 61\ncharacter 0, byte 0 of the text"
    assert "added token" in labels[-1]
    assert all(each["tabindex"] == "0" for each in token_elements(tree))
    colours = [(each["class"] or "").split()[0] for each in token_elements(tree)]
    assert all(one != other for one, other in itertools.pairwise(colours))


def test_the_merges_of_every_piece_are_listed(tokenizer: BPETokenizer) -> None:
    html = visualization_html(tokenizer.visualize("low lower low"))
    assert html.count("<h4>Piece “low”</h4>") == html.count("<h4>Piece “ low”</h4>") == 1
    rank = tokenizer.merges.index((b"l", b"o"))
    assert f"rank {rank}: <i>l</i> + <i>o</i> → <b>lo</b>, id {tokenizer.convert_tokens_to_ids('lo')}" in html
    assert {each["data-piece"] for each in token_elements(Tree(html))} == {"0", "1", "2"}


def test_a_long_piece_is_not_stepped_through_but_has_its_tokens(tokenizer: BPETokenizer) -> None:
    text = "x" * (MAX_STEP_SYMBOLS + 1)
    shown = tokenizer.visualize(text)
    assert shown.ids == tokenizer.encode(text)
    assert "too long to be stepped through: 65 symbols" in visualization_html(shown)
    assert "too long" not in visualization_html(tokenizer.visualize("x" * MAX_STEP_SYMBOLS))


def test_a_notebook_shows_it_without_a_script(tokenizer: BPETokenizer) -> None:
    html = tokenizer.visualize("low </style><script>")._repr_html_()
    tree = Tree(html)
    assert html.startswith("<style>.bpe-tokens ")
    assert not tree.all("script")
    assert len(tree.all("style")) == 1
    assert token_elements(tree)


def test_the_policy_lets_the_page_run_its_own_script_and_nothing_else(tokenizer: BPETokenizer) -> None:
    for is_live in (False, True):
        tree = check(page({"a": tokenizer}, "low", is_live=is_live))
        (rules,) = (each["content"] or "" for each in tree.all("meta") if each.get("http-equiv"))
        assert rules == content_security_policy(is_live=is_live)
        assert rules.startswith("default-src 'none'; ")
        assert "unsafe" not in rules
        for tag in ("script", "style"):
            digest = base64.b64encode(hashlib.sha256(tree.text(tag).encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in rules
        assert ("connect-src" in rules) == is_live
        assert ("readonly" in tree.all("textarea")[0]) == (not is_live)


def test_two_tokenizers_stand_side_by_side(tokenizer: BPETokenizer) -> None:
    other = BPETokenizer(normalization=None).train("new new", vocab_size=258, verbose=False)
    tree = check(page({"one": tokenizer, "other": other}, "new<|end|>", {"<|end|>"}))
    names = [each["aria-label"] for each in tree.all("section") if each.get("class") == "column"]
    assert names == ["one", "other"]
    both = len(tokenizer.encode("new<|end|>", allowed_special="all")) + len(other.encode("new<|end|>"))
    assert len(token_elements(tree)) == both
    with pytest.raises(SpecialTokenError):
        page({"one": tokenizer, "other": other}, "new", {"<|nobody|>"})


def test_a_text_that_a_browser_could_not_lay_out_is_refused(tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match="50,001 characters"):
        columns_html({"a": tokenizer}, "x" * (MAX_TEXT + 1))
