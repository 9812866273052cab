"""The panel of merges in a real browser."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer
from opened_pages import PageOpener, accessibility_violations, wait_until
from page_actions import type_over

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

X_POSITIONS = "all => all.map(each => each.getBoundingClientRect().x)"
SHALOM = "\u05e9\u05dc\u05d5\u05dd"
# The counts of the text may be announced at any moment, so what was announced is kept.
ANNOUNCEMENTS = """() => {
  window.announcements = [];
  const announcer = document.querySelector("#announcer");
  const keep = () => window.announcements.push(announcer.textContent);
  new MutationObserver(keep).observe(announcer, { childList: true });
}"""
CORPUS = f"low low lower lowest newest widest {SHALOM} {SHALOM} <script> <script> ab" * 4


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train(CORPUS, 300, verbose=False)


def open_merges(open_page: PageOpener, tokenizer: BPETokenizer, text: str, **options: Any) -> Page:
    """Open a page and select its first token."""
    page = open_page({"trained": tokenizer}, text, **options)
    page.locator(".token-list [role=option]").first.click()
    page.wait_for_selector(".merges:not([hidden]) .merges-symbol")
    return page


def step(page: Page) -> int:
    return int(page.locator(".merges .step-slider").input_value())


def click(page: Page, name: str) -> None:
    # Not the pointer: the panel scrolls.
    page.evaluate("name => document.querySelector(`.merges [aria-label='${name}']`).click()", name)


def ranks_by_hand(tokenizer: BPETokenizer, piece: str) -> list[tuple[int, list[int]]]:
    """Return for each state of a piece the number of symbols and the ranks of the possible merges."""
    ranks = {pair: rank for rank, pair in enumerate(tokenizer.merges)}
    symbols = [bytes([byte]) for byte in piece.encode()]
    states = []
    while True:
        possible = sorted({ranks[pair] for pair in pairwise(symbols) if pair in ranks})
        states.append((len(symbols), possible))
        if not possible:
            return states
        at = next(index for index, pair in enumerate(pairwise(symbols)) if ranks.get(pair) == possible[0])
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]


@pytest.mark.parametrize("piece", ["lowest", SHALOM, "widestlower", "zzz"])
def test_each_step_shows_the_symbols_and_the_ranks(
    open_page: PageOpener, tokenizer: BPETokenizer, piece: str
) -> None:
    page = open_merges(open_page, tokenizer, piece)
    states = ranks_by_hand(tokenizer, piece)
    for number, (symbols, ranks) in enumerate(states):
        assert step(page) == number
        assert page.locator(".merges-symbols > [data-place]").count() == symbols
        wait_until(page, "!document.querySelector('.merges-possible').textContent.includes('Looking')")
        shown = page.locator(".merges-rank").all_inner_texts()
        assert [int(rank) for rank in shown] == ranks[:12]
        done = page.locator(".tree-node:not(.is-later, .is-next)").count()
        assert done == states[0][0] + number
        assert page.locator(".tree-node.is-current").count() == symbols
        assert f"after {number} of {len(states) - 1} merges" in str(
            page.locator(".tree-svg").get_attribute("aria-label")
        )
        click(page, "Next step")
    assert ("No pair is left" if states[0][1] else "No two") in page.locator(".merges-sentence").inner_text()


def test_keys_slider_field_list_and_tree(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_merges(open_page, tokenizer, "lowest")
    last = len(ranks_by_hand(tokenizer, "lowest")) - 1
    page.locator(".merges-stage").focus()
    for key, expected in (
        ("ArrowRight", 1),
        ("End", last),
        ("ArrowLeft", last - 1),
        ("Home", 0),
        ("ArrowLeft", 0),
    ):
        page.keyboard.press(key)
        assert step(page) == expected
    assert "No merge yet" in page.locator("#announcer").inner_text() or step(page) == 0
    page.locator(".merges .step-slider").focus()
    page.evaluate(ANNOUNCEMENTS)
    page.keyboard.press("ArrowRight")
    assert step(page) == 1
    wait_until(page, "window.announcements.some(text => text.includes('Merge 1: '))")
    field = page.locator(".merges .step-field")
    type_over(field, "3")
    field.press("Enter")
    assert step(page) == 3
    type_over(field, "many")
    field.press("Enter")
    assert (step(page), field.input_value()) == (3, "3")
    page.locator(".merges-listing summary").click()
    page.wait_for_selector(".merges-jump")
    assert page.locator(".merges-jump").count() == last
    page.locator(".merges-jump").nth(1).click()
    assert step(page) == 2
    assert page.locator("[aria-current=step]").count() == 1
    page.locator(".tree-node", has=page.locator(".tree-rank")).last.dispatch_event("click")
    assert step(page) == last
    page.locator(".merges .step-speed").select_option("20")
    page.locator(".merges-stage").focus()
    page.keyboard.press(" ")
    wait_until(page, f"document.querySelector('.merges .step-slider').value === '{last}'")
    page.wait_for_selector(".merges [aria-label=Play]")


def test_only_the_keyboard(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"trained": tokenizer}, "lowest")
    page.wait_for_selector(".token-list [role=option]")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.token-list [role=option], .token-list')"):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector(".merges:not([hidden]) .merges-symbol")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.merges-enlarge')"):
            break
    page.keyboard.press("Enter")
    assert page.locator("dialog.merges-dialog[open]").count() == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert step(page) == 2
    page.keyboard.press("Escape")
    wait_until(page, "document.activeElement.matches('.merges-enlarge')")
    assert page.locator("dialog.merges-dialog[open]").count() == 0
    assert step(page) == 2


def test_a_long_piece_is_cut_and_drawn_in_parts(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_merges(open_page, tokenizer, "lowestnewest" * 900)
    notice = page.locator(".merges-notice").inner_text()
    assert "10,800 bytes" in notice
    assert "4,096" in notice
    assert page.locator(".merges-symbols > [data-place]").count() == 300
    assert page.locator(".tree-node").count() < 400
    for number in range(1, 4):
        click(page, "Next step")
        assert step(page) == number
    click(page, "Last step")
    assert page.locator(".merges-symbols > [data-place]").count() <= 300
    # The new symbol is in the part that is seen.
    box, seen = (
        page.locator(".merges-symbols .is-new").bounding_box(),
        page.locator(".merges-symbols").bounding_box(),
    )
    assert box is not None
    assert seen is not None
    assert seen["y"] <= box["y"] <= seen["y"] + seen["height"] - box["height"]
    wait_until(page, "!document.querySelector('.merges-possible').textContent.includes('Looking')")


def test_hostile_bytes_are_text(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_merges(
        open_page, tokenizer, "<script>alert(1)</script><img src=x onerror=alert(1)>\0\u202e\u200b"
    )
    assert page.locator(".merges script, .merges img").count() == 0
    click(page, "Last step")
    assert "<" in page.locator(".merges-symbols").inner_text()


def test_right_to_left_pieces_run_from_the_right(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_merges(open_page, tokenizer, SHALOM)
    xs = page.locator(".merges-symbols > [data-place]").evaluate_all(X_POSITIONS)
    assert xs == sorted(xs, reverse=True)
    xs = page.locator(".tree-node rect").evaluate_all(X_POSITIONS)
    assert xs[:8] == sorted(xs[:8], reverse=True)
    page = open_merges(open_page, tokenizer, "low")
    xs = page.locator(".merges-symbols > [data-place]").evaluate_all(X_POSITIONS)
    assert xs == sorted(xs)


@pytest.mark.chromium
def test_motion_follows_the_readers_choice(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    for choice in ("no-preference", "reduce"):
        page = open_merges(open_page, tokenizer, "lowest", reduced_motion=choice)
        moving = page.evaluate(
            """() => {
                const panel = document.querySelector(".merges")
                panel.querySelector("[aria-label='Next step']").click()
                const animations = panel.getAnimations({ subtree: true })
                return animations.filter((each) => each.effect.getTiming().duration > 0).length
            }"""
        )
        assert (moving > 0) == (choice == "no-preference")


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("width", [320, 768, 1280, 2560])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_and_widths(
    open_page: PageOpener, tokenizer: BPETokenizer, width: int, scheme: str
) -> None:
    page = open_merges(open_page, tokenizer, "lowestnewest", width=width, color_scheme=scheme)
    click(page, "Next step")
    page.locator(".merges-listing summary").click()
    page.wait_for_timeout(500)
    wait_until(page, f"document.documentElement.scrollWidth <= {width}")
    assert accessibility_violations(page, ".merges") == []
    page.locator(".merges-enlarge").click()
    assert accessibility_violations(page, ".merges") == []
    box = page.locator("dialog.merges-dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
