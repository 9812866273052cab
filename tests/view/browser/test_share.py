"""Shared links, and what the page keeps from visit to visit."""

from __future__ import annotations

import base64
import random
import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bpe_tokenizer import BPETokenizer
from opened_pages import PageOpener, wait_until
from page_actions import (
    CLIPBOARD,
    copied,
    downloaded,
    drop,
    fragment,
    paste,
    read_fragment,
    share,
    type_over,
    wait_for_count,
)

pytestmark = pytest.mark.browser

TEXT = "low lower\n\tשלום 🙂 <script>"


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train(
        "low lower newest", 265, special_tokens=["<|end|>"], verbose=False
    )


def test_a_link_restores_the_state(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    both = {"one": tokenizer, "other": tokenizer}
    page = open_page(both, "start", script=CLIPBOARD)
    paste(page, TEXT)
    page.locator("#mode-text").get_by_label("Ids").check()
    page.locator("#mode-text").get_by_label("Special tokens").check()
    type_over(page.get_by_label("Dollars per million tokens"), "2.5")
    wait_for_count(page, tokenizer.count_tokens(TEXT))
    link = copied(page, "Copy link")
    state = read_fragment(link)
    for mode in ("training", "chat"):
        state.pop(mode, None)
    sources = state.pop("sources")
    assert sources.keys() == {"one", "other"}
    assert sources["one"] == sources["other"]
    assert re.fullmatch(r"[0-9a-f]{16}", sources["one"]["hash"])
    assert state == {
        "mode": "text",
        "text": TEXT,
        "tokenizers": ["one", "other"],
        "showsInvisible": True,
        "showsIds": True,
        "readsSpecial": True,
        "price": 2.5,
    }
    opened = open_page(both, "other text", fragment="#" + link.partition("#")[2])
    wait_for_count(opened, tokenizer.count_tokens(TEXT))
    assert opened.locator("#text").input_value() == TEXT
    assert opened.locator("#mode-text").get_by_label("Ids").is_checked()
    assert opened.get_by_label("Dollars per million tokens").input_value() == "2.5"
    assert opened.locator(".pane").count() == 2


def test_a_link_in_an_open_page(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"one": tokenizer}, "start")
    page.evaluate(
        "hash => { location.hash = hash }", fragment({"text": "lower lower", "tokenizers": ["one"]})
    )
    wait_for_count(page, tokenizer.count_tokens("lower lower"))


def test_a_link_with_a_tokenizer_that_is_missing(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    link = fragment({"text": "low", "tokenizers": ["cl100k_base", "one"]})
    page = open_page({"one": tokenizer}, "start", fragment=link)
    wait_for_count(page, tokenizer.count_tokens("low"))
    assert "Drop cl100k_base.tiktoken here" in page.locator(".notice-problem").inner_text()


def test_a_link_with_another_tokenizer_of_the_name(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"one": tokenizer}, TEXT, script=CLIPBOARD)
    link = copied(page, "Copy link")
    same = open_page({"one": tokenizer}, "start", fragment="#" + link.partition("#")[2])
    wait_for_count(same, tokenizer.count_tokens(TEXT))
    assert same.locator(".notice-problem").count() == 0
    other = BPETokenizer("gpt2", None).train("newest lower", 265, verbose=False)
    opened = open_page({"one": other}, "start", fragment="#" + link.partition("#")[2])
    wait_for_count(opened, other.count_tokens(TEXT))
    assert "another tokenizer of the name one" in opened.locator(".notice-problem").inner_text()


def test_a_link_carries_a_tokenizer_that_the_page_trained(
    open_page: PageOpener, tokenizer: BPETokenizer
) -> None:
    page = open_page({"one": tokenizer}, "start", script=CLIPBOARD)
    page.get_by_role("tab", name="Training").click()
    page.get_by_label("Text to learn from").fill("abc abc abcd abcd abcd")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_role("button", name="Use tokenizer").click()
    paste(page, "abcd abc")
    trained = BPETokenizer("gpt2", None).train(["abc abc abcd abcd abcd"], 512, verbose=False)
    wait_for_count(page, trained.count_tokens("abcd abc"))
    name = page.locator(".picker-button").first.inner_text()
    link = copied(page, "Copy link")
    opened = open_page({"one": tokenizer}, "start", fragment="#" + link.partition("#")[2])
    wait_for_count(opened, trained.count_tokens("abcd abc"))
    assert opened.locator(".picker-button").first.inner_text() == name
    assert opened.locator(".notice-problem").count() == 0


def test_a_saved_view_is_a_page_of_its_own(
    open_page: PageOpener, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    page = open_page({"one": tokenizer}, "start")
    tokenizer.export(tmp_path / "mine.tiktoken", "tiktoken")
    drop(page, {"mine.tiktoken": (tmp_path / "mine.tiktoken").read_bytes()})
    wait_until(page, "document.querySelector('.picker-message').textContent.includes('no split pattern')")
    page.get_by_label("Its split pattern").select_option("gpt2")
    page.get_by_role("button", name="Load", exact=True).click()
    wait_until(page, "!document.querySelector('dialog').open")
    paste(page, TEXT)
    page.locator("#mode-text").get_by_label("Ids").check()
    saved = tmp_path / "saved.html"
    saved.write_bytes(downloaded(page, lambda: share(page, "Save this view")))
    page.goto(saved.as_uri())  # the opener watches for errors and requests
    wait_for_count(page, tokenizer.count_tokens(TEXT))
    assert page.locator(".picker-button").first.inner_text() == "mine"
    assert page.locator("#text").input_value() == TEXT
    assert page.locator("#mode-text").get_by_label("Ids").is_checked()
    page.locator(".picker-button").first.click()
    page.get_by_role("button", name="one").click()
    wait_for_count(page, tokenizer.count_tokens(TEXT))


def test_pictures_of_tokens_of_a_comparison_and_of_a_merge_tree(
    open_page: PageOpener, tokenizer: BPETokenizer
) -> None:
    other = BPETokenizer("gpt2", None).train("newest", 258, verbose=False)
    text = "lower newest " * 90  # more than is in view
    page = open_page({"one": tokenizer, "two": other}, text, height=500)
    wait_for_count(page, other.count_tokens(text), 1)

    def texts(picture: bytes) -> str:
        svg = picture.decode()
        assert not re.search(r"var\(|oklch|class=|url\(", svg)
        return "".join(ElementTree.fromstring(svg).itertext())

    shown = texts(downloaded(page, lambda: share(page, "Tokens as SVG")))
    assert "two" in shown
    assert len(re.findall("lo", shown)) >= 2 * 90
    assert downloaded(page, lambda: share(page, "Tokens as PNG")).startswith(b"\x89PNG")
    page.locator("[role=option]").first.click()
    tree = downloaded(page, page.get_by_role("button", name="Download merge tree as SVG").click)
    assert "merge 2, rank 1: lo" in texts(tree)


def test_a_text_that_is_too_long_for_a_link(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"one": tokenizer}, "start", script=CLIPBOARD)
    noise = random.Random(3)
    paste(page, "".join(chr(noise.randrange(0x4E00, 0x9FFF)) for _ in range(30_000)))
    share(page, "Copy link")
    wait_until(page, "document.querySelector('.notice-problem')?.textContent.includes('Shorten the text')")
    assert "#" not in page.url


HOSTILE: list[object] = [
    {"text": 1, "tokenizers": "one", "mode": "x", "price": -1, "scheme": [], "training": 3, "chat": "x"},
    {"text": None, "tokenizers": [1, 2, 3], "price": "1", "showsIds": "yes", "__proto__": {"mode": "chat"}},
    {"sources": {"one": {"hash": 1, "training": ["x"]}, "__proto__": 1}, "tokenizers": ["one"]},
    {"constructor": 1, "tokenizers": ["<img src=x onerror=alert(1)>"], "mode": "chat "},
    [],
    "text",
    None,
]


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize("state", HOSTILE)
def test_a_hostile_link(open_page: PageOpener, tokenizer: BPETokenizer, state: object) -> None:
    page = open_page({"one": tokenizer}, "start", fragment=fragment(state))
    wait_for_count(page, tokenizer.count_tokens("start"))
    assert page.locator("#mode-text").is_visible()
    assert page.evaluate("document.querySelectorAll('img').length") == 0


@pytest.mark.sampled(0.34)
@pytest.mark.parametrize(
    "broken",
    [
        "#s=",
        "#s=%%%",
        "#s=AAAA",
        fragment({"text": "low"})[:-9],
        "#s=" + base64.urlsafe_b64encode(zlib.compress(b"\xff{")).decode(),
    ],
)
def test_a_broken_link(open_page: PageOpener, tokenizer: BPETokenizer, broken: str) -> None:
    page = open_page({"one": tokenizer}, "start", fragment=broken)
    wait_for_count(page, tokenizer.count_tokens("start"))
    assert "incomplete or damaged" in page.locator(".notice-problem").inner_text()


def test_a_link_of_200_megabytes(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    spaces = zlib.compress(b'"' + b" " * 200_000_000)
    page = open_page({"one": tokenizer}, "start", fragment="#s=" + base64.urlsafe_b64encode(spaces).decode())
    wait_for_count(page, tokenizer.count_tokens("start"))
    assert "incomplete or damaged" in page.locator(".notice-problem").inner_text()


def test_another_fragment_is_not_a_link(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"one": tokenizer}, "start", fragment="#main")
    wait_for_count(page, tokenizer.count_tokens("start"))
    assert page.locator(".notice-problem").count() == 0


def test_preferences_stay_and_texts_do_not(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"one": tokenizer}, "start")
    paste(page, "a secret")
    page.locator("#mode-text").get_by_label("Ids").check()
    kept = page.evaluate("JSON.stringify(localStorage)")
    assert "showsIds" in kept
    assert "secret" not in kept
    page.reload()
    wait_for_count(page, tokenizer.count_tokens("start"))
    assert page.locator("#mode-text").get_by_label("Ids").is_checked()
