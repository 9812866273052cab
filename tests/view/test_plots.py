"""Plots: inside their frames, readable without colours, with names at the lines."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest

from bpe_tokenizer.view import plots
from bpe_tokenizer.view.plots import Axis, Bar, Plot, Series, bar_plot, dot_plot, line_plot, ranked_bars
from html_tree import luminance

SVG = "{http://www.w3.org/2000/svg}"


def drawings(plot: Plot) -> list[ElementTree.Element]:
    """Return the wide and the narrow drawing, and that of a file."""
    found = list(ElementTree.fromstring(plot.html()).iter(f"{SVG}svg"))
    assert len(found) == 2
    return [*found, ElementTree.fromstring(plot.svg())]


def texts(drawing: ElementTree.Element, anchor: str) -> list[str]:
    return [each.text or "" for each in drawing.iter(f"{SVG}text") if each.get("text-anchor") == anchor]


@pytest.mark.parametrize("high", [1, 1.04, 4, 5.2, 9.99, 10, 12, 128, 7000])
def test_axes_begin_at_zero_and_have_a_few_round_numbers(high: float) -> None:
    for drawing in drawings(line_plot("t", Axis("x"), Axis("y"), [Series("s", [(0, high)])])):
        ticks = [float(each.replace(",", "")) for each in texts(drawing, "end")]
        assert ticks[0] == 0
        assert ticks[-2] < high <= ticks[-1]
        assert 3 <= len(ticks) <= 8


def test_a_logarithmic_axis_ends_with_the_data() -> None:
    """The plot spends its width on the data, not on the next power of ten."""
    points = [(256, 1.0), (1024, 1.5), (100_256, 2.0)]
    axes = Axis("size", logarithmic=True, base=2), Axis("bytes")
    for drawing in drawings(line_plot("t", *axes, [Series("s", points)])):
        line = drawing.find(f".//{SVG}polyline")
        assert line is not None
        places = [float(place.split(",")[0]) for place in line.attrib["points"].split()]
        width = float(drawing.attrib["viewBox"].split()[2])
        assert (places[-1] - places[0]) / width > 0.7
        assert "1,024" in texts(drawing, "middle") or "4,096" in texts(drawing, "middle") or width < 400


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("points", [[(1, 1)], [(1, 5), (1000, 0.5)], [(256, 1.0), (257, 1e6)], [(3, 1e-3)]])
def test_plots_are_well_formed_and_stay_inside(points: list[tuple[float, float]], logarithmic: bool) -> None:
    series = [Series("<a&>", points), Series("b" * 60, points)]
    axes = Axis("x", logarithmic), Axis("y<", logarithmic)
    labels = [f"{x:g}" for x, _ in points]
    rows = [Bar("<b&>" * 20, [1.0, None]), Bar("語" * 30, [None, None]), Bar("c", [0.0, 1e6])]
    for plot in (
        line_plot("<t>", *axes, series),
        bar_plot("<t>", Axis("x"), Axis("y"), series[:1], labels),
        bar_plot("<t>", Axis("x"), Axis("y"), series, labels),
        dot_plot("<t>", Axis("x"), ["<i>", "b"], rows, (1.0, "<one>")),
        ranked_bars("<t>", Axis("x"), [Bar("<a&>" * 30, [5.0]), Bar("b", [0.0]), Bar("c", [None])]),
    ):
        for drawing in drawings(plot):
            assert (drawing.get("aria-label") or drawing.findtext(f"{SVG}title")) == "<t>"
            _, _, width, height = map(float, drawing.attrib["viewBox"].split())
            for each in drawing.iter(f"{SVG}text"):
                assert 0 <= float(each.attrib["x"]) <= width
                assert 0 <= float(each.attrib["y"]) <= height
                room = plots._text_width(each.text or "")
                begin = {"start": 0.0, "middle": room / 2, "end": room}[each.attrib["text-anchor"]]
                assert float(each.attrib["x"]) - begin >= -10
                assert float(each.attrib["x"]) - begin + room <= width + 30
            for line in drawing.iter(f"{SVG}polyline"):
                for place in line.attrib["points"].split():
                    x, y = map(float, place.split(","))
                    assert 0 <= x <= width
                    assert 0 <= y <= height
            for bar in drawing.iter(f"{SVG}rect"):
                assert float(bar.get("x", 0)) + float(bar.attrib["width"]) <= width
                assert float(bar.attrib["height"]) >= 0
            for mark in drawing.iter(f"{SVG}path"):
                for x in re.findall(r"translate\((\S+) ", mark.get("transform", "")):
                    assert 0 <= float(x) <= width


def test_series_differ_without_colours() -> None:
    points = [(1.0, 1.0), (2.0, 3.0)]
    plot = line_plot("t", Axis("x"), Axis("y"), [Series(str(k), points) for k in range(6)])
    drawing = drawings(plot)[0]
    dashes = {line.get("stroke-dasharray") for line in drawing.iter(f"{SVG}polyline")}
    shapes = {mark.get("d") for mark in drawing.iter(f"{SVG}path") if mark.get("transform")}
    assert len(dashes) == len(shapes) == 6


def test_lines_are_named_at_their_ends_unless_the_names_would_touch() -> None:
    near = [Series("one", [(1, 1), (2, 5)]), Series("two", [(1, 1), (2, 5.1)])]
    apart = [Series("one", [(1, 1), (2, 5)]), Series("two", [(1, 1), (2, 1)])]
    for series, is_named in ((apart, True), (near, False)):
        plot = line_plot("t", Axis("x"), Axis("y"), series)
        for drawing, at_ends in zip(drawings(plot), (is_named, False, False), strict=True):
            named = [each.get("class") for each in drawing.iter(f"{SVG}text") if each.text == "one"]
            assert named == ["bpe-name" if at_ends else None]
            # A legend has a line for each name.
            assert len(list(drawing.iter(f"{SVG}polyline"))) == (2 if at_ends else 4)


def test_the_labels_of_bars_do_not_touch() -> None:
    names = [*map(str, range(1, 17)), "17+"]
    points = [(k, 1.0) for k in range(17)]
    for drawing in drawings(bar_plot("t", Axis("bytes"), Axis("%"), [Series("s", points)], names)):
        labels = [
            each for each in drawing.iter(f"{SVG}text") if each.text in names and each.get("class") is None
        ]
        shown = [each for each in labels if each.get("text-anchor") == "middle"]
        assert shown[-1].text == "17+"
        ends = [
            (
                float(each.attrib["x"]) - plots._text_width(each.text or "") / 2,
                float(each.attrib["x"]) + plots._text_width(each.text or "") / 2,
            )
            for each in shown
        ]
        assert all(left[1] < right[0] for left, right in itertools.pairwise(ends))


@pytest.mark.parametrize("paper", ["#ffffff", "#fdfcfa", "#15171c", "#111111"])
def test_the_colours_of_series_have_contrast_on_light_and_dark_paper(paper: str) -> None:
    colours = re.findall(r"\.bpe-s\d\{color:(#\w{6})\}", plots.STYLE)
    assert len(set(colours)) == plots.COLOURS
    for colour in colours:
        dark, light = sorted((luminance(colour), luminance(paper)))
        assert (light + 0.05) / (dark + 0.05) >= 3


def test_a_plot_has_no_inline_style() -> None:
    plot = line_plot("t", Axis("x"), Axis("y"), [Series("a", [(1, 2)])])
    assert "style=" not in plot.html() + plot.svg()


def test_ranked_bars_are_in_proportion_and_a_file_describes_them() -> None:
    rows = [Bar("heading", []), Bar("a", [1, 2]), Bar("b", [4, None]), Bar("c", [0, 3])]
    plot = ranked_bars("t", Axis("unit"), rows, ["one", "two"])
    for drawing in drawings(plot):
        bars = [each for each in drawing.iter(f"{SVG}rect") if each.get("class")]
        one, two, four, nothing, three = (float(each.attrib["width"]) for each in bars)
        assert (two, three, four) == pytest.approx((2 * one, 3 * one, 4 * one), abs=0.3)
        assert nothing == 1
        assert [each.get("class") for each in bars] == [f"bpe-s{k}" for k in (0, 1, 0, 0, 1)]
    assert drawings(plot)[2].findtext(f"{SVG}desc") == "unit. a: 1, 2. b: 4, none. c: 0, 3."
