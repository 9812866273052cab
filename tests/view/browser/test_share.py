"""Shared links, and what the page keeps from visit to visit."""

from __future__ import annotations

import base64
import random
import zlib

import pytest

from bpe_tokenizer import BPETokenizer
from opened_pages import PageOpener, wait_until
from page_actions import CLIPBOARD, copied, fragment, paste, read_fragment, wait_for_count

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
    page.get_by_label("Dollars per million tokens").fill("2.5")
    wait_for_count(page, tokenizer.count_tokens(TEXT))
    link = copied(page, "Copy link")
    state = read_fragment(link)
    for mode in ("training", "chat"):
        state.pop(mode, None)
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


def test_a_text_that_is_too_long_for_a_link(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"one": tokenizer}, "start", script=CLIPBOARD)
    noise = random.Random(3)
    paste(page, "".join(chr(noise.randrange(0x4E00, 0x9FFF)) for _ in range(30_000)))
    page.get_by_role("button", name="Share").click()
    page.get_by_role("menuitem", name="Copy link").click()
    wait_until(page, "document.querySelector('.notice-problem')?.textContent.includes('Shorten the text')")
    assert "#" not in page.url


HOSTILE: list[object] = [
    {"text": 1, "tokenizers": "one", "mode": "x", "price": -1, "scheme": [], "training": 3, "chat": "x"},
    {"text": None, "tokenizers": [1, 2, 3], "price": "1", "showsIds": "yes", "__proto__": {"mode": "chat"}},
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
