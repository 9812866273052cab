"""What notebooks show: cards, chips and labels, self-contained, scoped, escaped and bounded."""

from __future__ import annotations

import re

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.display.chips import STYLE, chip, direction
from bpe_tokenizer.results import _HTML_TOKENS as MAX_TOKENS
from bpe_tokenizer.view.visualization import visualization_html
from hostile import hostile_texts
from html_tree import ATTACKS, Tree, luminance

CORPUS = "low low low lower lowest newer newer newest wider widest </script> \"'&<b>é🙂" * 3
ALLOWED = {
    *("b", "br", "code", "dd", "details", "div", "dl", "dt", "h4", "i", "li", "ol"),
    *("p", "section", "span", "style", "summary"),
}


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    made = BPETokenizer(normalization=None)
    return made.train(CORPUS, vocab_size=300, special_tokens=["<|end|>", "<|pad|>"], verbose=False)


def selectors(style: str) -> list[str]:
    flat = re.sub(r"@(?:media|container)[^{]*\{", "", style)
    groups = re.findall(r"([^{}]+)\{", flat)
    return [each.strip() for group in groups for each in group.split(",") if each.strip()]


def checked(shown: str) -> Tree:
    """Check that nothing breaks out, nothing is loaded, and no rule applies to the rest of the notebook."""
    tree = Tree(shown)
    assert {tag for tag, _ in tree.elements} <= ALLOWED
    for _, attributes in tree.elements:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "href")]
    (style,) = [text for tag, text in tree.texts if tag == "style"]
    assert "url(" not in style
    assert "@import" not in style
    assert [each for each in selectors(style) if not each.startswith(".bpe")] == []
    return tree


def test_a_tokenizer_shows_its_main_facts(tokenizer: BPETokenizer) -> None:
    tree = checked(tokenizer._repr_html_())
    shown = tree.text("dd")
    assert "298 ids, 42 merges; 300 ids with gaps" in shown or f"{tokenizer.vocab_size:,} ids" in shown
    assert "cl100k" in shown
    spans = tree.text("span")
    assert "<|end|>" in spans
    assert "<|pad|>" in spans
    for token_id in tokenizer.encode("Hello")[:1]:
        assert str(token_id) in spans


def test_an_untrained_tokenizer_and_one_of_hostile_names() -> None:
    assert "untrained" in checked(BPETokenizer()._repr_html_()).text("span")
    special = [*ATTACKS, *(f"<|{k}|>" for k in range(500))]
    made = BPETokenizer("<b>|[^<]+|<", None).train(
        "ab ab", 257 + len(special), special_tokens=special, verbose=False
    )
    shown = made._repr_html_()
    assert "and 495 more" in checked(shown).text("dd")
    assert "&lt;b&gt;|[^&lt;]+|&lt;" in shown
    assert len(shown) < 20_000


def test_a_result_shows_tokens_ids_and_padding(tokenizer: BPETokenizer) -> None:
    tokenizer = tokenizer.with_normalization(None)
    tokenizer.pad_token = "<|pad|>"
    short, _ = tokenizer.encode_batch(["low é", "low lower newest wider"], padding=True)
    tree = checked(short._repr_html_())
    assert f"{len(tokenizer.encode('low é'))} tokens" in tree.text("span")
    assert "of padding" in tree.text("span")
    classes = [attributes.get("class") or "" for attributes in tree.all("span")]
    padded = sum("bpe-padding" in each for each in classes)
    assert padded == short.attention_mask.count(0) > 0
    assert sum("bpe-chip" in each for each in classes) == len(short)


def test_a_result_has_its_offsets_and_is_bounded(tokenizer: BPETokenizer) -> None:
    shown = tokenizer("<b>" * 3000, return_offsets_mapping=True)
    text = shown._repr_html_()
    tree = checked(text)
    titles = [attributes["title"] for attributes in tree.all("span") if "title" in attributes]
    assert len(titles) == MAX_TOKENS
    start, end = shown.offsets[1]
    assert titles[1] == f"token 1, characters {start} to {end}"
    assert f"and {len(shown) - MAX_TOKENS:,} more" in tree.text("p")
    assert len(text) < 100_000


@pytest.mark.parametrize("text", [*ATTACKS, *hostile_texts(0)[::40]])
def test_whatever_the_text_nothing_breaks_out(tokenizer: BPETokenizer, text: str) -> None:
    checked(tokenizer.visualize(text[:2000])._repr_html_())
    checked(tokenizer(text[:2000], return_offsets_mapping=True)._repr_html_())


def test_a_visualization_is_bounded(tokenizer: BPETokenizer) -> None:
    text = " ".join(f"low{k}" for k in range(3000))
    shown = tokenizer.visualize(text)
    made = shown._repr_html_()
    tree = checked(made)
    chips = [each for each in tree.all("span") if "bpe-chip" in (each.get("class") or "")]
    assert len(chips) == 1000
    assert f"and {len(shown.tokens) - 1000:,} more tokens" in tree.text("p")
    assert len(made) < 1_500_000
    long = tokenizer.visualize("x" * 100_000)._repr_html_()
    assert len(long) < 500_000


def test_every_chip_is_one_box_with_its_own_direction() -> None:
    rule = re.search(r"\.bpe-chip\{([^}]*)\}", STYLE)
    assert rule is not None
    assert "display:inline-block" in rule[1]  # not broken, and isolated from its neighbours
    assert "unicode-bidi:plaintext" in rule[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("abc שלום", "ltr"), ("123 שלום abc", "rtl"), ("مرحبا", "rtl"), ("", "ltr"), ("1!", "ltr")],
)
def test_chips_follow_each_other_in_the_direction_of_the_text(
    tokenizer: BPETokenizer, text: str, expected: str
) -> None:
    assert direction(text) == expected
    assert f'dir="{expected}"' in visualization_html(tokenizer.visualize(text))


def test_every_token_has_a_label_for_pointer_keyboard_and_screen_reader(tokenizer: BPETokenizer) -> None:
    tree = checked(tokenizer.visualize("low <|end|>")._repr_html_())
    chips = [each for each in tree.all("span") if "bpe-chip" in (each.get("class") or "")]
    assert all(each["tabindex"] == "0" and each["role"] == "img" for each in chips)
    assert (chips[0]["aria-label"] or "").startswith("Token 1 of ")
    assert "id 2" in (chips[0]["aria-label"] or "")


def test_bytes_of_a_character_are_hexadecimal_next_to_whole_characters() -> None:
    assert chip("語".encode()[:2]) == '<span class="bpe-chip bpe-bytes">E8 AA</span>'
    assert chip("a語".encode()[:3]) == '<span class="bpe-chip">a\u200aE8 AA</span>'
    assert chip(b"\n\x1b") == '<span class="bpe-chip">\\n\\x1b</span>'
    assert chip(b"") == '<span class="bpe-chip">&nbsp;</span>'
    assert len(chip(b"=" * 5000)) < 300
    assert len(chip(b"\xff" * 5000)) < 300


def test_chips_have_their_own_ink() -> None:
    """A notebook may be light or dark, and does not tell."""
    ink = re.search(r"\.bpe-chip\{[^}]*color:(#\w{6})", STYLE)
    backgrounds = re.findall(r"background:(#\w{6})", STYLE)
    assert ink is not None
    assert len(backgrounds) == 7
    for background in backgrounds:
        assert (luminance(background) + 0.05) / (luminance(ink[1]) + 0.05) >= 7
