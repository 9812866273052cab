"""The training mode in a real browser."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.patterns import NAMED_PATTERNS
from opened_pages import PageOpener, accessibility_violations, wait_until
from page_actions import downloaded, fragment, processor_seconds

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TEXT = "low low low low low lower lower newest newest newest newest newest newest widest widest widest"


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train("low lower", 258, verbose=False)


def open_training(
    open_page: PageOpener, tokenizer: BPETokenizer, training: object = None, **options: Any
) -> Page:
    state = {"mode": "training", "training": training}
    page = open_page({"trained": tokenizer}, fragment=fragment(state), **options)
    page.wait_for_selector(".training-result:not([hidden])")
    return page


def click(page: Page, name: str) -> None:
    page.evaluate("name => document.querySelector(`.training [aria-label='${name}']`).click()", name)


def go(page: Page, step: int) -> None:
    field = page.locator(".training .step-field")
    field.fill(str(step))
    field.press("Enter")


def train(page: Page, text: str, size: int, pattern: str = "gpt2") -> None:
    page.locator("#training-text").fill(text)
    page.locator("#training-pattern").select_option(pattern)
    page.locator("#training-size").fill(str(size))
    page.locator(".training-start").click()
    wait_until(page, "document.querySelector('.training-start').textContent === 'Train'")


def labels(page: Page) -> list[str]:
    """Return the descriptions of the learned tokens, the oldest first."""
    found = page.locator(".vocabulary-token").evaluate_all("all => all.map(each => each.ariaLabel)")
    return list(reversed(found))


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "words", "none"])
def test_the_merges_are_those_of_the_package(
    open_page: PageOpener, tokenizer: BPETokenizer, tmp_path: Path, pattern: str
) -> None:
    random_ = random.Random(19)
    text = " ".join(
        random_.choices(
            ["the", "cat's", "1234", "\u05e9\u05dc\u05d5\u05dd", "\u20ac", "HTMLParser", "\n\n", "aaa"], k=200
        )
    )
    page = open_training(open_page, tokenizer)
    train(page, text, 320, pattern)
    known = {"words": r" ?\S+|\s+(?!\S)|\s+", "none": r"[\s\S]+"}
    split = known.get(pattern) or NAMED_PATTERNS[pattern].patterns
    expected = BPETokenizer(split, None).train(text, 320, verbose=False)
    page.locator(".training [aria-label='Last step']").click()
    assert page.locator(".vocabulary-token").count() == len(expected.merges)
    ids = [int(label.rpartition(": id ")[2].split(",")[0]) for label in labels(page)]
    assert ids == list(range(256, 256 + len(expected.merges)))

    path = tmp_path / "tokenizer.json"
    path.write_bytes(downloaded(page, page.get_by_role("button", name="Download").click))
    loaded = BPETokenizer.load(path)
    assert (loaded.vocab, loaded.merges) == (expected.vocab, expected.merges)
    assert loaded.encode(text[::-1]) == expected.encode(text[::-1])


def test_each_step(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_training(open_page, tokenizer)
    train(page, TEXT, 300)
    expected = BPETokenizer("gpt2", None).train(TEXT, 300, verbose=False)
    for number, (left, right) in enumerate(expected.merges, 1):
        best = page.locator(".pair-table tbody tr").first
        assert "is-next" in str(best.get_attribute("class"))
        shown = best.locator(".pair-chips").inner_text().replace("\u00b7", " ").replace("\n", "")
        assert shown == (left + right).decode()
        counts = [int(each) for each in page.locator("td.pair-count").all_inner_texts()]
        assert counts == sorted(counts, reverse=True)
        click(page, "Next step")
        assert page.locator(".vocabulary-token").count() == number
        newest = page.locator(".vocabulary-token").first.inner_text().replace("\u00b7", " ")
        assert newest == (left + right).decode()
        marked = page.locator(".piece-list li .is-new").all_inner_texts()
        assert marked
        assert {each.replace("\u00b7", " ") for each in marked} == {newest}
        tokens = int(page.locator(".training-curve .merges-note").inner_text().split(" tokens")[0])
    assert tokens == len(expected.encode(TEXT))
    assert "no pair occurs twice" in page.locator(".training-sentence").inner_text()
    click(page, "First step")
    assert page.locator(".vocabulary-token").count() == 0
    assert page.locator(".piece-list li .is-new").count() == 0


def test_the_curve_the_choice_of_pieces_and_more_pairs(
    open_page: PageOpener, tokenizer: BPETokenizer
) -> None:
    page = open_training(open_page, tokenizer)
    letters = "".join(chr(code) for code in range(0x4E00, 0x4E80))
    train(page, f"{TEXT} {letters} {letters}", 320)
    slider = page.locator(".training .step-slider")
    curve = page.locator(".curve-svg")
    box = curve.bounding_box()
    assert box is not None
    curve.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
    step = int(slider.input_value())
    assert 20 < step < 44
    assert f"after {step} merges" in str(curve.get_attribute("aria-label"))
    rows = page.locator(".pair-table tbody tr")
    assert rows.count() == 50
    page.get_by_role("button", name="Show more of").click()
    assert rows.count() > 50
    page.locator(".segment", has_text="Changed").click()
    changed = page.locator(".piece-list > li")
    assert changed.count() == page.locator(".piece-list > li.is-changed").count() > 0
    click(page, "First step")
    assert changed.count() == 0
    assert "has not changed any piece" in page.locator(".training-pieces").inner_text()
    page.locator(".training [aria-label='Last step']").click()
    page.locator(".vocabulary-token").last.click()
    assert slider.input_value() == "1"


def test_use_the_tokenizer(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_training(open_page, tokenizer)
    train(page, TEXT, 270)
    page.get_by_role("button", name="Use tokenizer").click()
    page.wait_for_selector("#mode-text:not([hidden])")
    page.locator("#text").fill(TEXT)
    expected = len(BPETokenizer("gpt2", None).train(TEXT, 270, verbose=False).encode(TEXT))
    wait_until(page, f"document.querySelectorAll('.token-list [role=option]').length === {expected}")
    assert "trained, GPT-2" in page.locator(".header-tokenizers").inner_text()
    # A later training leaves the tokenizer as it is.
    page.locator("#tab-training").click()
    train(page, "other other words words", 260)
    page.locator("#tab-text").click()
    page.locator("#text").fill(TEXT + " ")
    wait_until(page, f"document.querySelectorAll('.token-list [role=option]').length === {expected + 1}")


def test_a_link_restores_the_training(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    training = {"text": TEXT, "pattern": "words", "size": 262, "step": 4}
    page = open_training(open_page, tokenizer, training)
    assert page.locator("#training-text").input_value() == TEXT
    assert page.locator("#training-pattern").input_value() == "words"
    assert page.locator("#training-size").input_value() == "262"
    assert page.locator(".training .step-slider").input_value() == "4"
    # A link that is opened in the same page.
    page.evaluate(
        "hash => { location.hash = hash }",
        fragment({"mode": "training", "training": {**training, "step": 2}}),
    )
    wait_until(page, "document.querySelector('.training .step-slider').value === '2'")


@pytest.mark.parametrize(
    "training",
    [
        {"text": 5, "pattern": "nope", "size": "many", "step": -7},
        {"text": "<img src=x onerror=alert(1)> <img src=x onerror=alert(1)>", "size": 10**9, "step": 10**9},
        {"pattern": "__proto__", "size": 1.5, "step": 2.5},
        [1, 2],
    ],
)
def test_a_strangers_link_does_no_harm(
    open_page: PageOpener, tokenizer: BPETokenizer, training: object
) -> None:
    page = open_training(open_page, tokenizer, training)
    assert page.locator(".training img").count() == 0
    assert page.locator("#training-pattern").input_value() == "gpt2"
    click(page, "Next step")


def test_refusals_say_what_to_do(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_training(open_page, tokenizer)
    problem = page.locator(".training-settings .problem")
    for size in ("256", "x", "", "99999", "1e3"):
        train(page, TEXT, 300)
        page.locator("#training-size").fill(size)
        page.locator(".training-start").click()
        assert "whole number from 257" in problem.inner_text()
    train(page, "", 300)
    assert "Write or paste" in problem.inner_text()
    train(page, "abc", 300)
    assert problem.inner_text() == ""
    assert "no pair occurs twice" in page.locator(".training-sentence").inner_text()


def test_only_the_keyboard(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_training(open_page, tokenizer)
    page.locator("#training-size").focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(200)
    wait_until(page, "document.querySelector('.training-start').textContent === 'Train'")
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.className")
        seen.append(name)
        if "step-play" in name:
            break
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator(".training .step-slider").input_value() == "2"
    page.keyboard.press("Space")
    wait_until(page, "Number(document.querySelector('.training .step-slider').value) > 2")
    page.keyboard.press("Space")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.vocabulary-token')"):
            break
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    assert page.locator(".training .step-slider").input_value() == "1"


@pytest.mark.chromium
def test_a_large_text_does_not_stutter(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    random_ = random.Random(19)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    weights = [1 / (number + 1) for number in range(26)]
    words = ["".join(random_.choices(letters, weights, k=random_.randint(1, 9))) for _ in range(6000)]
    text = " ".join(random_.choices(words, [1 / (number + 1) for number in range(6000)], k=20_000))[:100_000]
    page = open_training(open_page, tokenizer)
    train(page, text, 1256)
    wait_until(page, "document.querySelector('.training .step-slider').max === '1000'")
    seconds = processor_seconds(page)
    page.evaluate(
        """async () => {
            const slider = document.querySelector(".training .step-slider")
            for (const step of [...Array(40).keys(), 1000, 0, 500, 501, 502, 999, 1000, 3]) {
                slider.value = step
                slider.dispatchEvent(new Event("input"))
                await new Promise(requestAnimationFrame)
            }
        }"""
    )
    milliseconds = seconds() * 1000 / 48
    print(f"{milliseconds:.0f} ms a step")
    assert milliseconds < 150
    assert page.locator(".pair-table tbody tr").count() == 50


@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("width", [320, 768, 1280, 2560])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility_and_widths(
    open_page: PageOpener, tokenizer: BPETokenizer, width: int, scheme: str
) -> None:
    page = open_training(open_page, tokenizer, {"step": 5}, width=width, color_scheme=scheme)
    page.wait_for_timeout(500)
    wait_until(page, f"document.documentElement.scrollWidth <= {width}")
    assert accessibility_violations(page, ".training") == []


def test_large_counts_are_beside_their_bars(open_page: PageOpener) -> None:
    page = open_page({}, "")
    page.get_by_role("tab", name="Training").click()
    page.get_by_label("Text to learn from").fill("ab " * 123_456)
    page.get_by_role("button", name="Train", exact=True).click()
    wait_until(page, "document.querySelector('.pair-count > span:last-child')?.textContent === '123,456'")
    gap = page.evaluate(
        """(() => {
            const [bar, count] = document.querySelector("td.pair-count").children
            return count.getBoundingClientRect().left - bar.getBoundingClientRect().right
        })()"""
    )
    assert gap >= 0
