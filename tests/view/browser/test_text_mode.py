"""The text mode in a real browser: typing, chips, comparing, the keyboard, long and hostile texts."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from bpe_tokenizer import BPETokenizer
from hostile import hostile_texts
from html_tree import ATTACKS
from opened_pages import PageOpener, wait_until
from page_actions import CLIPBOARD, copied, paste, processor_seconds, type_over, wait_for_count

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

CORPUS = (
    "the low lower lowest newer newest wider widest tokens of a text, and of שלום עולם; "
    "def f(x):\n    return x + 1\n"
) * 4
SPECIAL = "<|end|>"


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train(CORPUS, 340, special_tokens=[SPECIAL], verbose=False)


@pytest.fixture(scope="module")
def other() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train("newest newest tokens", 264, verbose=False)


def chips(page: Page, pane: int = 0) -> list[str]:
    """The texts of the chips that are drawn."""
    found: list[str] = page.locator(".pane").nth(pane).locator("[role=option] .chip-text").all_inner_texts()
    return found


def test_typing_shows_tokens_and_counts(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "lower")
    wait_for_count(page, tokenizer.count_tokens("lower"))
    page.locator("#text").click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" newest é🙂")
    text = "lower newest é🙂"
    wait_for_count(page, tokenizer.count_tokens(text))
    assert page.locator(".text-counts").inner_text().split("\n") == ["15 characters", "19 bytes"]
    type_over(page.get_by_label("Dollars per million tokens"), "3")
    cost = tokenizer.count_tokens(text) * 3 / 1e6
    wait_until(
        page, f"document.querySelector('.pane-facts').textContent.includes('${f'{cost:f}'.rstrip('0')}')"
    )


def test_the_ids_and_spans_are_those_of_the_package(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    text = "A text: lower שלום é🙂 newest\n\n  x + 1"
    page = open_page({"mine": tokenizer}, text, script=CLIPBOARD)
    ids = tokenizer.encode(text)
    wait_for_count(page, len(ids))
    assert json.loads(copied(page, "Copy ids")) == ids
    made = json.loads(copied(page, "Copy JSON"))
    assert (made["tokenizer"], made["text"], made["ids"]) == ("mine", text, ids)
    shown = tokenizer.visualize(text)
    assert [bytes(each["bytes"]) for each in made["tokens"]] == [token.bytes for token in shown.tokens]
    assert [tuple(each["byteSpan"]) for each in made["tokens"]] == [
        token.text_bytes for token in shown.tokens
    ]
    units = [len(text[:end].encode("utf-16-le")) // 2 for end in range(len(text) + 1)]
    assert [tuple(each["span"]) for each in made["tokens"]] == [
        (units[token.characters[0]], units[token.characters[1]]) for token in shown.tokens
    ]


def test_a_part_of_a_character_says_so(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "a日b")
    wait_for_count(page, 5)
    page.locator(".pane [role=option]").nth(1).click()
    assert "“日”, made of 3 tokens" in page.locator(".details").inner_text()


@pytest.mark.parametrize("width", [390, 768])
def test_the_details_do_not_cover_the_chosen_token(
    open_page: PageOpener, tokenizer: BPETokenizer, width: int
) -> None:
    page = open_page({"mine": tokenizer}, "newest low lower " * 60, width=width, height=800)
    wait_until(page, "document.querySelectorAll('.pane [role=option]').length > 20")
    page.locator(".pane [role=option]").nth(12).click()
    page.locator(".merges-tree, .merges-stage").first.wait_for()
    page.wait_for_timeout(500)
    covered = """() => {
        const box = document.querySelector(".pane [role=option][aria-selected=true]").getBoundingClientRect()
        const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)
        return !top?.closest("[aria-selected=true]")
    }"""
    wait_until(page, f"!({covered})()")


def test_rows_of_split_characters_fit(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "בוקר טוב, מה שלומך " * 20)
    wait_until(page, "document.querySelectorAll('.token-row').length > 5")
    for width in range(1100, 1300, 9):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(150)
        fits = """[...document.querySelectorAll(".token-row")].every(row => {
            const boxes = [...row.children].map(each => each.getBoundingClientRect())
            const { left, right } = row.getBoundingClientRect()
            return left - Math.min(...boxes.map(each => each.left)) < 1
                && Math.max(...boxes.map(each => each.right)) - right < 1
        })"""
        wait_until(page, fits)


def test_switches(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    text = f"low lower\tx\u200b\n{SPECIAL}"
    page = open_page({"mine": tokenizer}, text)
    wait_for_count(page, tokenizer.count_tokens(text))
    assert "·lower" in chips(page)
    assert "→" in "".join(chips(page))
    page.locator("#mode-text").get_by_label("Invisible characters").uncheck()
    wait_until(page, "!/[·→↵]/.test(document.querySelector('#mode-text .panes').textContent)")
    page.locator("#mode-text").get_by_label("Ids").check()
    ids = [int(each) for each in page.locator("[role=option] .chip-id").all_inner_texts()]
    assert ids[: len(tokenizer.encode("low"))] == tokenizer.encode("low")
    page.locator("#mode-text").get_by_label("Special tokens").check()
    wait_for_count(page, len(tokenizer.encode(text, allowed_special="all")))
    assert page.locator("[role=option].chip-special").inner_text().startswith(SPECIAL)


def test_a_character_of_several_tokens_is_one_box_with_its_bytes(
    open_page: PageOpener, tokenizer: BPETokenizer
) -> None:
    page = open_page({"mine": tokenizer}, "a🙂b")
    wait_for_count(page, 6)
    parts = page.locator("[role=option]")
    assert [each.split("\n")[-1] for each in parts.all_inner_texts()][1:5] == ["🙂F0", "9F", "99", "82"]
    gaps = page.evaluate(
        """() => {
            const chips = [...document.querySelectorAll("[role=option]")]
            const boxes = chips.map(chip => chip.getBoundingClientRect())
            return boxes.slice(1).map((box, at) => box.left - boxes[at].right)
        }"""
    )
    assert [gap < 0.5 for gap in gaps] == [False, True, True, True, False]


def test_no_chip_breaks_and_rows_fit(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    long = "x" * 300
    made = BPETokenizer("gpt2", None).train(CORPUS, 340, special_tokens=[long], verbose=False)
    for width in (320, 768, 1600):
        page = open_page({"mine": made}, CORPUS + long + CORPUS, width=width)
        page.locator("#mode-text").get_by_label("Special tokens").check()
        wait_until(page, "document.querySelector('.chip-special') !== null")
        page.wait_for_timeout(300)
        overflow = page.evaluate(
            """() => [...document.querySelectorAll(".token-row")].map(row => {
                const ends = [...row.children].map(chip => chip.getBoundingClientRect().right)
                return Math.max(...ends) - row.getBoundingClientRect().right
            })"""
        )
        assert max(overflow) <= 1
        heights = page.evaluate(
            """() => {
                const chips = [...document.querySelectorAll(".token-row .chip")]
                return [...new Set(chips.map(chip => chip.offsetHeight))]
            }"""
        )
        assert len(heights) == 1


def test_right_to_left_paragraphs(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "low lower\nשלום low עולם\n")
    wait_until(page, "document.querySelectorAll('.token-row').length >= 2")
    directions = page.evaluate("() => [...document.querySelectorAll('.token-row')].map(row => row.dir)")
    assert directions == ["ltr", "rtl"]
    right = page.locator(".token-row").nth(1).locator("[role=option]")
    boxes = [each["x"] for each in (right.nth(at).bounding_box() for at in range(right.count())) if each]
    assert boxes == sorted(boxes, reverse=True)
    # One token is one box, whatever its direction.
    all_chips = "[...document.querySelectorAll('[role=option]')]"
    assert set(page.evaluate(f"() => {all_chips}.map(chip => chip.getClientRects().length)")) == {1}


def test_details_and_merges_of_a_token(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "low lower")
    chip = page.locator("[role=option]").last
    chip.hover()
    card = page.locator(".hover-card")
    token = tokenizer.visualize("low lower").tokens[-1]
    assert str(token.id) in card.inner_text()
    assert token.bytes.hex(" ").upper() in card.inner_text()
    chip.click()
    details = page.locator(".details")
    assert f"{token.text_bytes[0]} to {token.text_bytes[1] - 1}" in details.inner_text()
    rank = next(
        merge.rank
        for piece in tokenizer.visualize("low lower").pieces
        if piece.merging
        for merge in piece.merging.merges
        if merge.token_id == token.id
    )
    wait_until(
        page, f"[...document.querySelectorAll('.fact dd')].some(each => each.textContent === '{rank}')"
    )
    assert page.evaluate("getSelection().toString() || document.querySelector('#text').selectionEnd") == 9
    page.keyboard.press("Escape")
    assert details.is_hidden()


def test_two_tokenizers_side_by_side(
    open_page: PageOpener, tokenizer: BPETokenizer, other: BPETokenizer
) -> None:
    text = "the newest tokens"
    page = open_page({"one": tokenizer, "other": other}, text)
    one, two = tokenizer.count_tokens(text), other.count_tokens(text)
    wait_for_count(page, one)
    wait_for_count(page, two, 1)
    percent = round((two / one - 1) * 100)
    assert page.locator(".versus-line").inner_text() == f"one {one} tokens, other {two}: {percent} % more"
    spans = [{token.text_bytes for token in each.visualize(text).tokens} for each in (tokenizer, other)]
    for pane, each in enumerate((tokenizer, other)):
        marked = page.evaluate(
            """pane => [...document.querySelectorAll(".pane")[pane].querySelectorAll("[role=option]")]
                .map(chip => chip.classList.contains("is-marked"))""",
            pane,
        )
        assert marked == [token.text_bytes not in spans[1 - pane] for token in each.visualize(text).tokens]
    page.locator(".pane").nth(0).locator("[role=option]").nth(0).hover()
    linked = page.locator(".pane").nth(1).locator(".is-linked")
    first = tokenizer.visualize(text).tokens[0].text_bytes
    assert linked.count() == sum(token.text_bytes[0] < first[1] for token in other.visualize(text).tokens)
    page.get_by_role("button", name="End the comparison").click()
    assert page.locator(".pane").count() == 1


def test_the_keyboard_is_enough(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "low lower\nnewest of a text")
    focus = "document.activeElement.dataset.token"
    page.locator("#text").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(focus) is not None:
            break
    assert page.evaluate(focus) == "0"
    count = tokenizer.count_tokens("low lower\nnewest of a text")
    for key, expected in (
        ("ArrowRight", 1),
        ("ArrowLeft", 0),
        ("Control+End", count - 1),
        ("Control+Home", 0),
    ):
        page.keyboard.press(key)
        assert page.evaluate(focus) == str(expected)
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.closest('.token-row').dataset.row") == "1"
    page.keyboard.press("Enter")
    assert page.locator(".details").is_visible()
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    assert page.evaluate("document.activeElement.getAttribute('aria-setsize')") == str(count)
    page.keyboard.press("Escape")
    assert page.locator(".details").is_hidden()
    page.get_by_role("tab", name="Text").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "Compare all"
    assert page.locator("#mode-all").is_visible()


HOSTILE = (
    *ATTACKS,
    "\x00\x01\x7f\u0085\u2028\u2029",
    "\u202etxet\u202c \u2066a\u2069 \u200e\u200f",
    "\u200b\u200c\u200d\ufeff\u00ad",
    "\ud800 \udc00\ud800",
    "e\u0301\u0302\u0303" * 50,
    "🙂👩🏽‍🚀" * 5000,
    "\n" * 3000,
    "\t \t " * 500,
    "ﷺ" * 500 + "שלום" * 500,
)


def test_hostile_texts_are_shown_exactly(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "start", script=CLIPBOARD)
    for text in HOSTILE:
        paste(page, "start")
        wait_for_count(page, tokenizer.count_tokens("start"))
        paste(page, text)
        ids = tokenizer.encode(text)
        wait_for_count(page, len(ids))
        assert json.loads(copied(page, "Copy ids")) == ids, text[:100]
        assert page.locator("script").count() == 5
        assert page.evaluate("document.querySelectorAll('*').length") < 5000
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_random_texts_have_the_ids_of_the_package(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "start", script=CLIPBOARD)
    texts = random.Random(1).sample([text for text in hostile_texts() if text and "\r" not in text], 10)
    for text in texts:
        paste(page, text)
        ids = tokenizer.encode(text)
        wait_for_count(page, len(ids))
        assert json.loads(copied(page, "Copy ids")) == ids


def test_line_ends_of_a_file_stay(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    text = "low\r\nlower\r\n"
    page = open_page({"mine": tokenizer}, text, script=CLIPBOARD)
    wait_for_count(page, tokenizer.count_tokens(text))
    page.locator("#text").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("x\ny")
    wait_for_count(page, tokenizer.count_tokens(text + "x\r\ny"))
    assert json.loads(copied(page, "Copy ids")) == tokenizer.encode(text + "x\r\ny")


def test_one_megabyte(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    words = random.Random(2)
    text = " ".join(
        words.choice(["low", "lower", "newest", "tokens", "of\n", "שלום"]) for _ in range(220_000)
    )
    page = open_page({"mine": tokenizer}, "start")
    paste(page, text)
    total = tokenizer.count_tokens(text)
    wait_for_count(page, total)
    assert total > 250_000
    assert page.evaluate("document.querySelectorAll('*').length") < 4000
    # Typing at the end shows the tokens there.
    page.locator("#text").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text(" lower")
    wait_for_count(page, tokenizer.count_tokens(text + " lower"))
    wait_until(
        page,
        """[...document.querySelectorAll("[role=option]")].at(-1)?.dataset.token
            === String(document.querySelector("[role=option]").getAttribute("aria-setsize") - 1)""",
    )
    # The keyboard reaches the first and the last token.
    page.locator("[role=option]").last.focus()
    for key, position in (("Control+Home", 1), ("Control+End", tokenizer.count_tokens(text + " lower"))):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.getAttribute('aria-posinset')") == str(position)
    assert page.evaluate("document.querySelectorAll('*').length") < 4000


def test_one_line_without_spaces(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    text = "abcdefghij" * 100_000
    page = open_page({"mine": tokenizer}, "start")
    paste(page, text)
    wait_for_count(page, tokenizer.count_tokens(text))
    assert page.evaluate("document.querySelectorAll('*').length") < 4000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.chromium
def test_the_time_from_a_key_to_its_token(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    """The page aims at 100 ms on a free processor."""
    page = open_page({"mine": tokenizer}, "start")
    paste(page, CORPUS * 30)
    wait_for_count(page, tokenizer.count_tokens(CORPUS * 30))
    seconds = processor_seconds(page)
    page.keyboard.type("x")
    wait_until(page, "performance.getEntriesByName('key-to-tokens').length > 0")
    assert seconds() < 1


def test_a_page_without_tokenizers_trains_one(open_page: PageOpener) -> None:
    page = open_page({})
    wait_until(page, "document.querySelectorAll('[role=option]').length > 50")
    assert "trained on the examples" in page.locator(".picker-button").inner_text()


def test_a_file_requests_nothing(open_page: PageOpener, tokenizer: BPETokenizer, other: BPETokenizer) -> None:
    """`open_page` fails for any request; here every mode and dialog is opened."""
    page = open_page({"mine": tokenizer, "other": other}, "low lower", script=CLIPBOARD)
    for name in ("Training", "Chat", "Text"):
        page.get_by_role("tab", name=name).click()
        page.wait_for_timeout(200)
    page.locator(".picker-button").first.click()
    page.get_by_role("button", name="cl100k_base").click()
    assert "requests nothing" in page.locator(".picker-message").inner_text()
    page.keyboard.press("Escape")
    copied(page, "Copy link")


def test_examples(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, "low")
    for option in page.locator("[aria-label=Examples] option").all_inner_texts()[1:]:
        page.get_by_label("Examples").select_option(label=option)
        text = page.locator("#text").input_value()
        wait_for_count(page, tokenizer.count_tokens(text))


@pytest.mark.chromium
def test_printing_shows_the_tokens(open_page: PageOpener, tokenizer: BPETokenizer) -> None:
    page = open_page({"mine": tokenizer}, CORPUS * 3)
    wait_for_count(page, tokenizer.count_tokens(CORPUS * 3))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("[role=option]").count() == tokenizer.count_tokens(CORPUS * 3)
    assert page.locator(".editor-panel").is_hidden()


def test_marks_without_a_letter_are_drawn_on_a_circle(open_page: PageOpener) -> None:
    text = "\u0301\u0301 \u0940"
    tokenizer = BPETokenizer("gpt2", None).train([text] * 3, 264, verbose=False)
    page = open_page({"marks": tokenizer}, text)
    wait_for_count(page, tokenizer.count_tokens(text))
    shown = "".join(page.locator("[role=option] .chip-text").all_inner_texts())
    assert shown.startswith("\u25cc\u0301")
    assert "\u25cc\u0940" in shown


def test_characters_without_a_shape_have_names(open_page: PageOpener) -> None:
    text = "\u115f\u3164\u2800\uffa0"
    tokenizer = BPETokenizer("gpt2", None).train([text] * 3, 270, verbose=False)
    page = open_page({"fillers": tokenizer}, text)
    wait_for_count(page, tokenizer.count_tokens(text))
    assert page.locator("[role=option] .chip-name").all_inner_texts() == ["HCF", "HF", "BLANK", "HHF"]


def test_an_edit_keeps_the_line_ends_of_other_lines(open_page: PageOpener) -> None:
    text = "one\r\ntwo\nthree\rfour\r\n"
    tokenizer = BPETokenizer("gpt2", None).train("one two", 257, verbose=False)
    page = open_page({"bytes": tokenizer}, text)
    wait_for_count(page, tokenizer.count_tokens(text))
    assert page.locator(".text-counts .tag").inner_text() == "mixed line ends"
    field = page.locator("#text")

    def edit(start: int, end: int, keys: str) -> None:
        field.evaluate("(each, [start, end]) => each.setSelectionRange(start, end)", [start, end])
        field.focus()
        page.keyboard.press("Backspace") if keys == "" else page.keyboard.type(keys)

    edit(4, 4, "x")
    wait_for_count(page, tokenizer.count_tokens("one\r\nxtwo\nthree\rfour\r\n"))
    edit(3, 3, "\n")
    wait_for_count(page, tokenizer.count_tokens("one\r\n\r\nxtwo\nthree\rfour\r\n"))
    edit(9, 10, "")
    after = "one\r\n\r\nxtwothree\rfour\r\n"
    wait_for_count(page, tokenizer.count_tokens(after))
    page.locator("[role=option]").nth(after.index("four")).click()
    start = after.replace("\r\n", "\n").index("four")
    selected = "each => [each.selectionStart, each.selectionEnd]"
    assert field.evaluate(selected) == [start, start + 1]


@pytest.mark.parametrize("forced", ["none", "active"])
def test_the_last_chip_of_a_row_is_whole(open_page: PageOpener, forced: str) -> None:
    tokenizer = BPETokenizer("gpt2", None).train("low lower", 258, verbose=False)
    text = "low lower <|end|> " * 60
    page = open_page({"one": tokenizer}, text, forced_colors=forced)
    wait_for_count(page, tokenizer.count_tokens(text))
    clipped = page.evaluate(
        """[...document.querySelectorAll(".token-row")].filter(row =>
            row.lastElementChild.getBoundingClientRect().right
                > row.getBoundingClientRect().right + 0.6).length"""
    )
    assert clipped == 0
