"""The page for everyone: axe-core, widths, schemes, the colour scheme switch, reduced motion."""

from __future__ import annotations

import pytest

from bpe_tokenizer import BPETokenizer
from opened_pages import PageOpener, accessibility_violations, wait_until
from page_actions import wait_for_count

pytestmark = pytest.mark.browser

TEXT = "low lower\nשלום newest 🙂\t<|end|>"
WIDTHS = (320, 768, 1280, 2560)
# Elements that reach beyond the window, other than those inside something that scrolls.
OVERFLOW = """() => {
  const isScroller = element => ["auto", "scroll", "hidden"].includes(getComputedStyle(element).overflowX)
  const scrolls = element => element && element !== document.body
    && (isScroller(element) || scrolls(element.parentElement))
  return [...document.querySelectorAll("body *")].filter(element => {
    const box = element.getBoundingClientRect()
    return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1)
      && !element.closest(".metrics-probe, .skip-link, .visually-hidden") && !scrolls(element.parentElement)
  }).map(element => `${element.tagName}.${element.className}`)
}"""


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, BPETokenizer]:
    one = BPETokenizer("gpt2", None).train("low lower newest", 265, special_tokens=["<|end|>"], verbose=False)
    other = BPETokenizer("gpt2", None).train("newest", 258, verbose=False)
    return {"one": one, "a-tokenizer-with-a-very-long-name-" * 3: other}


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(
    open_page: PageOpener, tokenizers: dict[str, BPETokenizer], width: int, scheme: str
) -> None:
    page = open_page(tokenizers, TEXT, width=width, color_scheme=scheme)
    page.locator("#mode-text").get_by_label("Special tokens").check()
    page.locator("#mode-text").get_by_label("Ids").check()
    for name in ("Text", "Compare all", "Training", "Chat"):
        page.get_by_role("tab", name=name).click()
        page.wait_for_timeout(250)
        wait_until(page, f"document.documentElement.scrollWidth <= {width}")
        wait_until(page, f"({OVERFLOW})().length === 0")
    page.get_by_role("tab", name="Text").click()
    page.locator("[role=option]").first.click()
    page.wait_for_timeout(250)
    wait_until(page, f"document.documentElement.scrollWidth <= {width}")


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_axe_finds_nothing(
    open_page: PageOpener, tokenizers: dict[str, BPETokenizer], width: int, scheme: str
) -> None:
    page = open_page(tokenizers, TEXT, width=width, color_scheme=scheme, reduced_motion="reduce")
    page.locator("#mode-text").get_by_label("Special tokens").check()
    page.locator("#mode-text").get_by_label("Ids").check()
    wait_until(page, "document.querySelector('.chip-special') !== null")
    assert accessibility_violations(page, "html") == []
    page.locator("[role=option]").first.click()
    page.locator("[role=option]").nth(1).focus()
    page.wait_for_timeout(250)
    assert accessibility_violations(page, "html") == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Share").click()
    assert accessibility_violations(page, "html") == []
    page.keyboard.press("Escape")
    page.locator(".picker-button").first.click()
    page.get_by_role("button", name="cl100k_base").click()
    assert accessibility_violations(page, "html") == []


def test_the_share_menu_with_the_keyboard(open_page: PageOpener, tokenizers: dict[str, BPETokenizer]) -> None:
    page = open_page(tokenizers, TEXT)
    page.get_by_role("button", name="Share").focus()
    page.keyboard.press("Enter")
    focus = "document.activeElement.querySelector('.menu-label')?.textContent"
    wait_until(page, f"{focus} === 'Copy link'")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focus) == "Save this view"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Share"


@pytest.mark.chromium
def test_the_colour_scheme(open_page: PageOpener, tokenizers: dict[str, BPETokenizer]) -> None:
    page = open_page(tokenizers, TEXT, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Colour scheme: auto").click()
    light = page.evaluate(background)
    assert light != dark
    page.get_by_role("button", name="Colour scheme: light").click()
    assert page.evaluate(background) == dark


@pytest.mark.chromium
def test_reduced_motion_and_forced_colours(
    open_page: PageOpener, tokenizers: dict[str, BPETokenizer]
) -> None:
    page = open_page(tokenizers, TEXT, reduced_motion="reduce", forced_colors="active")
    assert page.evaluate("getComputedStyle(document.querySelector('.button')).transitionDuration") == "0s"
    chip = "document.querySelector('.token-row .chip')"
    assert page.evaluate(f"getComputedStyle({chip}).borderTopWidth") == "1px"
    page.locator("[role=option]").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "2px"


def test_screen_readers_hear_the_count(open_page: PageOpener, tokenizers: dict[str, BPETokenizer]) -> None:
    one = tokenizers["one"]
    page = open_page({"one": one}, TEXT)
    page.locator("#text").fill("low lower")
    wait_for_count(page, one.count_tokens("low lower"))
    wait_until(
        page, f"document.querySelector('#announcer').textContent === '{one.count_tokens('low lower')} tokens'"
    )
