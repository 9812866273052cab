"""Plots as SVG: labelled axes, lines that are named at their ends, and no colour that is needed.

Series differ in colour, dash and mark. The colours follow Okabe and Ito (2008, "Color Universal Design"),
some of them darker: each has a contrast of at least 3 with light and with dark paper, so one plot serves
both. `STYLE` has them. Without it a plot is drawn in the colour of the text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from importlib import resources
from typing import NamedTuple

__all__ = ["STYLE", "Axis", "Bar", "Plot", "Series", "bar_plot", "dot_plot", "line_plot", "ranked_bars"]

# The style sheet of the plots: of the drawings, then of their places in a page.
STYLE = resources.files(__package__).joinpath("plots.css").read_text(encoding="utf-8")
_DRAWING_STYLE = STYLE.partition(".bpe-plot{")[0].strip()

COLOURS = 6
_TEXT = 12
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2 1 2")
_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "M-3.5-3.5h7v7h-7z",
    "M0-4.8L4.4 3.4H-4.4z",
    "M0-5L5 0L0 5L-5 0z",
    "M0 4.8L-4.4-3.4H4.4z",
    "M-4.5-1.5h3v-3h3v3h3v3h-3v3h-3v-3h-3z",
)
_Point = tuple[float, float]


class Series(NamedTuple):
    """The data of one line, or of one set of bars.

    Args:
        name: The name in the legend.
        points: Pairs of x and y.
    """

    name: str
    points: Sequence[_Point]


class Axis(NamedTuple):
    """An axis of a plot.

    Args:
        label: The quantity and its unit.
        logarithmic: Whether the scale is logarithmic.
        base: The base of the ticks of a logarithmic scale: 10 or 2.
    """

    label: str
    logarithmic: bool = False
    base: int = 10


class Bar(NamedTuple):
    """A row of a plot with a value for each series.

    Args:
        name: The label of the row.
        values: The values; None for a missing one. In ranked bars, a row without any is a heading.
        colour: The number of the colour of all values; None for those of the series.
    """

    name: str
    values: Sequence[float | None]
    colour: int | None = None


class _Size(NamedTuple):
    """The size of a plot, in units of its text, and the space around it. A narrow one is for telephones."""

    width: float
    height: float
    is_narrow: bool
    margin: float = 0


_WIDE, _NARROW = _Size(620, 340, False), _Size(340, 290, True)
_FILE, _PAPER = _Size(316, 270, True, 12), _Size(620, 340, False, 12)


class Plot(NamedTuple):
    """A plot, which can be drawn in several sizes.

    Args:
        title: The text for screen readers.
        described: The data as text.
        names: The name of each series, for the legend.
        has_wide_legend: Whether a wide drawing has a legend, as narrow ones have.
        draw: Returns the height of a drawing and its elements.
    """

    title: str
    described: str
    names: Sequence[str]
    has_wide_legend: bool
    draw: Callable[[_Size], tuple[float, list[str]]]

    def html(self) -> str:
        """Return a wide and a narrow `<svg>` element, of which `STYLE` shows one."""
        elements = [
            f'<svg class="bpe-drawing" role="img" aria-label="{escape(self.title)}" '
            f'viewBox="0 0 {width:g} {height:g}" xmlns="http://www.w3.org/2000/svg">{body}</svg>'
            for width, height, body in map(self._drawn, (_WIDE, _NARROW))
        ]
        wide, narrow = elements
        return (
            f'<div class="bpe-plot"><div class="bpe-wide">{wide}</div>'
            f'<div class="bpe-narrow">{narrow}</div></div>'
        )

    def svg(self, is_wide: bool = False) -> str:
        """Return an SVG file on white paper, 340 or 644 pixels wide, with a description."""
        width, height, body = self._drawn(_PAPER if is_wide else _FILE)
        box = f'width="{width:g}" height="{height:g}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" {box} '
            f'class="bpe-drawing" color="#1f2328" role="img">\n<title>{escape(self.title, False)}</title>\n'
            f"<desc>{escape(self.described, False)}.</desc>\n<style>{_DRAWING_STYLE}</style>\n"
            f'<rect {box} rx="6" fill="#ffffff"/>\n{body}\n</svg>\n'
        )

    def _drawn(self, size: _Size) -> tuple[float, float, str]:
        """Return the width, the height and the elements of a drawing with its legend."""
        height, parts = self.draw(size)
        legend: list[str] = []
        top = size.margin
        if len(self.names) > 1 and (size.is_narrow or self.has_wide_legend):
            used, legend = _legend(self.names, size)
            top += used
        body = f'<g transform="translate({size.margin:g} {top:g})">{"".join(parts)}</g>'
        return size.width + 2 * size.margin, math.ceil(top + height + size.margin), "".join(legend) + body


def line_plot(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> Plot:
    """Draw lines with a mark at each point, and their names at their ends.

    Args:
        title: The text for screen readers.
        x: The horizontal axis.
        y: The vertical axis. A linear one begins at 0.
        series: The lines, with at least one point in all; values on a logarithmic axis are positive.
    """
    series = [each for each in series if each.points]
    points = [point for each in series for point in each.points]
    heights = sorted(map(_Frame(_WIDE).up(_column(points, 1), y), (each.points[-1][1] for each in series)))
    # Names at ends that are close to each other would hide the lines: then a legend names them.
    is_crowded = any(high - low < _TEXT + 2 for low, high in itertools.pairwise(heights))
    labels = [_clipped(each.name, 18) for each in series] if len(series) > 1 else []

    def draw(size: _Size) -> tuple[float, list[str]]:
        names = [] if is_crowded or size.is_narrow else labels
        frame = _Frame(size, max(map(_text_width, names), default=-6))
        across, up = frame.across(_column(points, 0), x), frame.up(_column(points, 1), y)
        parts = [*frame.axes(x, y, across, up)]
        for k, each in enumerate(series):
            places = [(across(px), up(py)) for px, py in each.points]
            titles = [f"{each.name}: {_number(px)}, {_number(py)}" for px, py in each.points]
            parts += _marked_line(k, places, titles)
            if names:
                parts.append(_text(places[-1][0] + 9, places[-1][1] + 4, names[k], "start", "bpe-name"))
        return size.height, parts

    described = [
        f"{each.name}: {'; '.join(f'{px:,.10g}: {py:,.10g}' for px, py in each.points)}" for each in series
    ]
    return Plot(title, ". ".join(described), [each.name for each in series], is_crowded, draw)


def bar_plot(title: str, x: Axis, y: Axis, series: Sequence[Series], labels: Sequence[str]) -> Plot:
    """Draw the bars of a histogram; with several series, a line with marks for each.

    Args:
        title: The text for screen readers.
        x: The horizontal axis.
        y: The vertical axis, from 0.
        series: The sets of bars: points with the same x, in order, and the height.
        labels: The label of each bar.
    """
    series = [each for each in series if each.points]
    rows = [Bar(label, [each.points[k][1] for each in series]) for k, label in enumerate(labels)]

    def draw(size: _Size) -> tuple[float, list[str]]:
        frame = _Frame(size, -6)
        slot = (frame.right - frame.left) / len(labels)
        center = [round(frame.left + slot * (k + 0.5), 1) for k in range(len(labels))]
        up = frame.up([0, *(point[1] for each in series for point in each.points)], y)
        parts = [*frame.y_axis(y, up), frame.x_label(x)]
        # Labels that would touch their neighbours are left out, but not the last one.
        every = max(1, math.ceil((max(map(_text_width, labels), default=0) + 5) / slot))
        last = len(labels) - 1
        shown = {last, *(k for k in range(0, last, every) if k + every <= last)}
        parts += [_text(center[k], frame.bottom + 17, labels[k], "middle") for k in sorted(shown)]
        for s, each in enumerate(series):
            places = [(center[k], up(value)) for k, (_, value) in enumerate(each.points)]
            values = [
                f"{label}: {_number(point[1])}" for label, point in zip(labels, each.points, strict=True)
            ]
            if len(series) > 1:
                parts += _marked_line(s, places, [f"{each.name}, {value}" for value in values])
                continue
            parts += [
                _rect(0, middle - slot * 0.39, top, slot * 0.78, max(frame.bottom - top, 0), value)
                for (middle, top), value in zip(places, values, strict=True)
            ]
        return size.height, parts

    return Plot(title, _described(rows), [each.name for each in series], True, draw)


def dot_plot(
    title: str, x: Axis, names: Sequence[str], bars: Sequence[Bar], reference: tuple[float, str]
) -> Plot:
    """Draw a row for each bar, with the mark of each series at its value.

    Args:
        title: The text for screen readers.
        x: The axis of the values, from 0.
        names: The name of each series.
        bars: The rows, from top to bottom.
        reference: A value with its label, as a line across all rows.
    """
    known = [[value for value in each.values if value is not None] for each in bars]

    def draw(size: _Size) -> tuple[float, list[str]]:
        row, top = 20.0, 22.0
        labels = [_clipped(each.name, 14 if size.is_narrow else 24) for each in bars]
        left = max(map(_text_width, labels), default=0) + 12
        bottom = top + row * len(bars)
        right = size.width - 10 - max((_text_width(_ratio(max(each))) for each in known if each), default=0)
        values = [0, *itertools.chain.from_iterable(known)]
        scale = _Scale(values, x, left, right, 4 if size.is_narrow else 8)
        parts = []
        for tick in scale.ticks:
            parts.append(f'<path class="bpe-grid" d="M{scale(tick)} {top}V{bottom}"/>')
            parts.append(_text(scale(tick), bottom + 17, _number(tick), "middle"))
        parts.append(_text((left + right) / 2, bottom + 37, x.label, "middle", "bpe-axis"))
        at = scale(reference[0])
        parts.append(f'<path class="bpe-reference" d="M{at} {top - 4}V{bottom}"/>')
        parts.append(_text(at, top - 9, _clipped(reference[1], 20), "middle", "bpe-axis"))
        for number, each in enumerate(bars):
            y = top + row * (number + 0.5)
            parts.append(_text(left - 10, y + 4, labels[number], "end"))
            if not known[number]:
                continue
            least, most = min(known[number]), max(known[number])
            parts.append(f'<path class="bpe-range" d="M{scale(least)} {y}H{scale(most)}"/>')
            # The first series is on top.
            for k, value in reversed(list(enumerate(each.values))):
                if value is not None:
                    parts.append(_mark(k, scale(value), y, f"{each.name}, {names[k]}: {_number(value)}"))
            parts.append(_text(scale(most) + 9, y + 4, _ratio(most), "start", "bpe-value"))
        return bottom + 44, parts

    return Plot(title, _described(bars), names, True, draw)


def ranked_bars(title: str, x: Axis, bars: Sequence[Bar], names: Sequence[str] = ()) -> Plot:
    """Draw a horizontal bar for each value of each row, with the value at its end.

    Args:
        title: The text for screen readers.
        x: The axis of the values, from 0.
        bars: The rows. A row without values is a heading.
        names: The name of each value of a row, for the legend.
    """
    highest = max((value or 0 for each in bars for value in each.values), default=1) or 1
    shown = {value: f"{value:,.10g}" for each in bars for value in each.values if value is not None}

    def draw(size: _Size) -> tuple[float, list[str]]:
        right = size.width - max(map(_text_width, shown.values()), default=0) - 10
        y, parts = 4.0, []
        for each in bars:
            kind = "bpe-strong" if each.values else "bpe-heading"
            parts.append(_text(1, y + 11, _clipped(each.name, 40), "start", kind))
            y += 17
            for k, value in enumerate(each.values):
                if value is not None:
                    length = max((right - 1) * value / highest, 1)
                    parts.append(_rect(k if each.colour is None else each.colour, 1, y, length, 14))
                    parts.append(_text(length + 8, y + 11.5, shown[value], "start", "bpe-value"))
                y += 16
            y += 7
        parts.append(_text(1, y + 11, x.label, "start", "bpe-axis"))
        return y + 16, parts

    return Plot(title, f"{x.label}. {_described(bars)}", names, True, draw)


# Parts of plots


class _Scale:
    """Maps values to coordinates, and has the ticks. A linear scale includes 0."""

    def __init__(self, values: Sequence[float], axis: Axis, start: float, end: float, ticks: int) -> None:
        self._transform: Callable[[float], float] = math.log10 if axis.logarithmic else float
        low, high = min(values), max(values)
        if axis.logarithmic:
            high = high if high > low else low * axis.base
            self.ticks = _powers(low, high, axis.base, ticks)
            bottom, top = self._transform(low), self._transform(high)
        else:
            self.ticks = _round_numbers(min(low, 0.0), high, ticks)
            bottom, top = self.ticks[0], max(self.ticks[-1], high)
        self._bottom, self._factor, self._start = bottom, (end - start) / ((top - bottom) or 1), start

    def __call__(self, value: float) -> float:
        return round(self._start + (self._transform(value) - self._bottom) * self._factor, 1)


class _Frame:
    """The area of a plot between its axes, which leaves room for names on the right."""

    def __init__(self, size: _Size, room: float = 0) -> None:
        self.size = size
        self.left, self.right, self.top, self.bottom = 54.0, size.width - 14 - room, 26.0, size.height - 46

    def across(self, values: Sequence[float], axis: Axis) -> _Scale:
        return _Scale(values, axis, self.left, self.right, 4 if self.size.is_narrow else 7)

    def up(self, values: Sequence[float], axis: Axis) -> _Scale:
        return _Scale(values, axis, self.bottom, self.top, 5)

    def axes(self, x: Axis, y: Axis, across: _Scale, up: _Scale) -> Iterator[str]:
        yield from self.y_axis(y, up)
        for tick in across.ticks:
            at = across(tick)
            yield f'<path class="bpe-grid" d="M{at} {self.top}V{self.bottom}"/>'
            # Powers of two are known by all their digits.
            shown = f"{tick:,.0f}" if x.logarithmic and x.base == 2 else _number(tick)
            yield _text(at, self.bottom + 17, shown, "middle")
        yield self.x_label(x)

    def y_axis(self, y: Axis, up: _Scale) -> Iterator[str]:
        for tick in up.ticks:
            at = up(tick)
            yield f'<path class="bpe-grid" d="M{self.left} {at}H{self.right}"/>'
            yield _text(self.left - 7, at + 4, _number(tick), "end")
        yield _text(2, 12, y.label, "start", "bpe-axis")

    def x_label(self, x: Axis) -> str:
        return _text((self.left + self.right) / 2, self.size.height - 7, x.label, "middle", "bpe-axis")


def _legend(names: Sequence[str], size: _Size) -> tuple[float, list[str]]:
    """Return the height of a legend and its elements."""
    x, y, parts = size.margin, size.margin + 9, []
    for k, name in enumerate(names):
        shown = _clipped(name, 40)
        room = 34 + _text_width(shown)
        if x > size.margin and x + room > size.width:
            x, y = size.margin, y + 20
        parts += [_line(k, [(x, y), (x + 28, y)]), _mark(k, x + 14, y), _text(x + 34, y + 4, shown, "start")]
        x += room + 14
    return y + 15 - size.margin, parts


def _marked_line(k: int, places: Sequence[_Point], titles: Sequence[str]) -> list[str]:
    return [_line(k, places), *(_mark(k, x, y, title) for (x, y), title in zip(places, titles, strict=True))]


def _line(k: int, places: Sequence[_Point]) -> str:
    points = " ".join(f"{px:g},{py:g}" for px, py in places)
    dash = f' stroke-dasharray="{_DASHES[k % len(_DASHES)]}"' if _DASHES[k % len(_DASHES)] else ""
    return (
        f'<polyline class="bpe-s{k % COLOURS}" points="{points}" fill="none" stroke="currentColor" '
        f'stroke-width="2" stroke-linejoin="round"{dash}/>'
    )


def _mark(k: int, x: float, y: float, title: str = "") -> str:
    place = f'transform="translate({x:g} {y:g})" d="{_SHAPES[k % len(_SHAPES)]}"'
    return _titled("path", f'class="bpe-mark bpe-s{k % COLOURS}" {place} fill="currentColor"', title)


def _rect(k: int, x: float, y: float, width: float, height: float, title: str = "") -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return _titled("rect", f'class="bpe-s{k % COLOURS}" {box} rx="1.5" fill="currentColor"', title)


def _titled(tag: str, attributes: str, title: str) -> str:
    return f"<{tag} {attributes}" + (f"><title>{escape(title)}</title></{tag}>" if title else "/>")


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"{style}>'
        f"{escape(text, False)}</text>"
    )


def _described(bars: Sequence[Bar]) -> str:
    return ". ".join(
        f"{each.name}: {', '.join('none' if value is None else f'{value:,.10g}' for value in each.values)}"
        for each in bars
        if each.values
    )


def _column(points: Sequence[_Point], number: int) -> list[float]:
    return [point[number] for point in points]


def _text_width(text: str) -> float:
    """Return the room of a text in a proportional font, at most."""
    return _TEXT * sum(1.0 if ord(c) > 0x2E80 else 0.58 for c in text)


def _clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _powers(low: float, high: float, base: int, count: int) -> list[float]:
    """Return at most `count` powers of a base between two values, or the ends if there are fewer than two."""
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    powers = [float(base) ** power for power in range(first, last + 1)]
    ticks = powers[:: max(1, math.ceil(len(powers) / count))]
    return ticks if len(ticks) > 1 else [low, high]


def _round_numbers(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round numbers, from at most `low` to at least `high`."""
    if high <= low:
        high = low + 1
    power = 10.0 ** math.floor(math.log10((high - low) / count))
    step = next(
        power * part for part in (1, 2, 2.5, 5, 10) if (high - low) / (power * part) <= count or part == 10
    )
    first, last = math.floor(low / step), math.ceil(round(high / step, 9))
    return [round(step * k, 10) for k in range(first, last + 1)]


def _ratio(value: float) -> str:
    return f"{value:.1f}" if value < 100 else _number(value)


def _number(value: float) -> str:
    """Return a number for people: 2.5, 1,000, 20k, 3.5M.

    >>> [_number(value) for value in (0.25, 3.0, 12.34, 1000, 131072, 2_500_000)]
    ['0.25', '3', '12.3', '1,000', '131k', '2.5M']
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e3 if unit == "k" else size)
            return f"{scaled:,.0f}{unit}" if abs(scaled) >= 100 else f"{scaled:.3g}{unit}"
    if value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.2f}".rstrip("0") if abs(value) < 10 else f"{value:,.1f}"
