"""All tokenizers at once: one text, and one sentence in forty languages."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from bpe_tokenizer import BPETokenizer
from opened_pages import PageOpener, accessibility_violations, wait_until
from page_actions import downloaded, paste

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[3]
TEXT = "low lower newest <|end|>, señor"


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, BPETokenizer]:
    one = BPETokenizer("gpt2", None).train("low lower newest", 265, special_tokens=["<|end|>"], verbose=False)
    two = BPETokenizer("gpt2", None).train(
        "human beings are born free and equal in dignity", 290, verbose=False
    )
    bytes_only = BPETokenizer("gpt2", None).train("xx xx", 257, verbose=False)
    return {"one": one, "two": two, "bytes": bytes_only}


@pytest.fixture
def page(open_page: PageOpener, tokenizers: dict[str, BPETokenizer]) -> Page:
    opened = open_page(tokenizers, TEXT)
    opened.get_by_role("tab", name="Compare all").click()
    wait_until(opened, "document.querySelectorAll('.all-languages tbody tr').length === 40")
    return opened


def rows(page: Page, table: str) -> list[list[str]]:
    cells: list[list[str]] = page.evaluate(
        """table => [...document.querySelectorAll(`${table} tbody tr`)]
            .map(row => [...row.children].map(each => each.innerText.trim()))""",
        table,
    )
    return cells


def articles() -> dict[str, str]:
    lines = (ROOT / "page" / "languages.js").read_text(encoding="utf-8").split("`")[1].strip().split("\n")
    return {name: text for _, name, text in (line.split("\t") for line in lines)}


def download(page: Page, label: str) -> bytes:
    return downloaded(page, page.get_by_role("button", name=label).click)


def test_one_text_over_every_tokenizer(page: Page, tokenizers: dict[str, BPETokenizer]) -> None:
    counts = {name: each.count_tokens(TEXT) for name, each in tokenizers.items()}
    ordered = sorted(counts, key=lambda name: counts[name])
    shown = rows(page, ".all-table:not(.all-languages)")
    assert [(name, int(tokens)) for name, tokens, *_ in shown] == [(name, counts[name]) for name in ordered]
    n_bytes = len(TEXT.encode())
    assert [row[2] for row in shown] == [f"{n_bytes / counts[name]:.2f}" for name in ordered]
    assert download(page, "Download text as CSV").decode().split("\r\n")[1].startswith(f"{ordered[0]},")


def test_the_text_mode_and_its_switches_count(page: Page, tokenizers: dict[str, BPETokenizer]) -> None:
    page.get_by_role("tab", name="Text").click()
    paste(page, "low <|end|>")
    page.locator("#mode-text").get_by_label("Special tokens").check()
    page.get_by_role("tab", name="Compare all").click()
    wanted = tokenizers["one"].count_tokens("low <|end|>", allowed_special="all")
    wait_until(
        page,
        "[...document.querySelectorAll('.all-table tbody tr')].some(row => "
        f"row.innerText.replace(/\\s+/g, ' ').startsWith('one {wanted} '))",
    )


def test_one_sentence_in_forty_languages(page: Page, tokenizers: dict[str, BPETokenizer]) -> None:
    texts = articles()
    assert len(texts) == 40
    table = list(csv.reader(io.StringIO(download(page, "Download languages as CSV").decode())))
    names = table[0][1:]
    for language, *counts in table[1:]:
        assert list(map(int, counts)) == [tokenizers[name].count_tokens(texts[language]) for name in names]
    first = [int(row[1]) for row in table[1:]]
    assert first == sorted(first, reverse=True)
    shown = {row[0]: row[1:] for row in rows(page, ".all-languages")}
    assert [re.split(r"\s", cell)[0] for cell in shown["English"]] == ["1.0×"] * 3
    assert "Universal Declaration" in page.locator(".all-note").nth(1).inner_text()


def test_sentences_of_ones_own(page: Page, tokenizers: dict[str, BPETokenizer]) -> None:
    page.get_by_text("Sentences of your own").click()
    page.get_by_label("Sentences, one a line").fill("English: low\nSpanish: señor, señora\nno name")
    wait_until(page, "document.querySelectorAll('.all-languages tbody tr').length === 3")
    table = list(csv.reader(io.StringIO(download(page, "Download languages as CSV").decode())))
    counts = {row[0]: int(row[1]) for row in table[1:]}
    first = tokenizers[table[0][1]]
    wanted = {"English": "low", "Spanish": "señor, señora", "3": "no name"}
    assert counts == {name: first.count_tokens(text) for name, text in wanted.items()}


def test_the_pictures_stand_alone(page: Page) -> None:
    svg = download(page, "Download languages as SVG").decode()
    root = ElementTree.fromstring(svg)
    texts = "".join(root.itertext())
    assert "Burmese" in texts
    assert "two" in texts
    assert not re.search(r"var\(|oklch|class=|url\(", svg)
    assert len(root.findall(".//{http://www.w3.org/2000/svg}rect")) > 120
    png = download(page, "Download text as PNG")
    assert png.startswith(b"\x89PNG")


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page: PageOpener, tokenizers: dict[str, BPETokenizer], scheme: str) -> None:
    opened = open_page(tokenizers, TEXT, width=360, color_scheme=scheme, reduced_motion="reduce")
    opened.get_by_role("tab", name="Compare all").click()
    wait_until(opened, "document.querySelectorAll('.all-languages tbody tr').length === 40")
    opened.get_by_text("Sentences of your own").click()
    assert accessibility_violations(opened, "html") == []


def test_a_tokenizer_that_is_added(page: Page) -> None:
    page.get_by_role("button", name="Add a tokenizer").click()
    assert page.get_by_role("dialog", name="Add a tokenizer").is_visible()
    page.get_by_role("button", name="bytes").click()
    wait_until(page, "!document.querySelector('dialog').open")
    assert page.locator(".picker-button").first.inner_text() == "one"
