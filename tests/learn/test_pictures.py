"""The pictures: what the code draws, readable on a telephone, and described for those who do not see them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from course import pictures
from course.pictures import TokenRow, token_rows

from course_pages import COURSE, load_program

DRAW = load_program(COURSE / "draw.py", "learn_draw")
PICTURES = COURSE / "pictures"
IMAGE = re.compile(r"!\[([^\]]*)\]\(pictures/([\w-]+)\.svg\)")
SVG = "{http://www.w3.org/2000/svg}"

every_picture = pytest.mark.parametrize("name", DRAW.DRAWN)


@every_picture
def test_the_committed_picture_is_that_of_the_code(name: str) -> None:
    if not DRAW.can_draw(name):
        pytest.skip("this Python has other help texts")
    committed = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    assert committed == DRAW.DRAWN[name](), "draw it again: python docs/learn/draw.py"


def test_the_pages_show_every_picture_with_a_description() -> None:
    shown = [
        found for path in sorted(COURSE.glob("*.md")) for found in IMAGE.findall(path.read_text("utf-8"))
    ]
    assert sorted(name for _, name in shown) == sorted(DRAW.DRAWN)
    assert sorted(path.stem for path in PICTURES.iterdir()) == sorted(DRAW.DRAWN)
    assert [name for description, name in shown if len(description) < 20] == []


@every_picture
def test_a_picture_is_readable_everywhere(name: str) -> None:
    root = ElementTree.parse(PICTURES / f"{name}.svg").getroot()
    assert root.get("role") == "img"
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    assert width <= 344  # a telephone of 360 pixels, with margins
    title, description = root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
    assert title
    assert description
    assert len(description) > 20
    background = root.find(f"{SVG}rect")
    assert background is not None
    assert (background.get("width"), background.get("fill")) == (root.get("width"), "#ffffff")
    sizes = re.findall(r"(\d+)px", root.findtext(f"{SVG}style") or "")
    assert sizes
    assert min(map(int, sizes)) >= 12
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= width
        assert 10 <= float(text.attrib["y"]) <= height
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x", 0)) + float(box.attrib["width"]) <= width
        assert float(box.get("y", 0)) + float(box.attrib["height"]) <= height


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_of_text_and_of_lines() -> None:
    paper, ink, quiet = pictures._PAPER, pictures._INK, pictures._QUIET
    for fill in (paper, pictures._PLAIN, pictures._LEARNED, *pictures._COLOURS):
        assert contrast(ink, fill) >= 4.5
    assert contrast(quiet, paper) >= 4.5
    for fill in (pictures._PLAIN, pictures._LEARNED):  # the ids in a tree
        assert contrast(quiet, fill) >= 4.5
    assert contrast(paper, pictures._STRONG) >= 4.5
    assert contrast(pictures._EDGE, paper) >= 3


def test_text_of_every_kind_is_escaped() -> None:
    svg = token_rows(
        [TokenRow("<a> & b", ["<|im|>", b"\xff", "\n", "\x1b", "中"], ["<1>", "", "", "", "5"])], "<&>"
    )
    root = ElementTree.fromstring(svg)
    assert root.findtext(f"{SVG}title") == "<&>"
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts == ["<a> & b", "<|im|>", "<1>", "\\xff", "\\n", "\\x1b", "中", "5"]


def test_many_tokens_take_several_lines() -> None:
    root = ElementTree.fromstring(token_rows([TokenRow("", ["token"] * 40)], "Tokens"))
    boxes = list(root.iter(f"{SVG}rect"))[1:]
    assert len({box.get("y") for box in boxes}) > 4
    assert all(float(box.attrib["x"]) + float(box.attrib["width"]) <= 328 for box in boxes)
