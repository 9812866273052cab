"""Plots as inline SVG: labelled axes, lines that are named at their ends, and no colour that is needed.

Series differ in colour, dash and mark. The colours follow Okabe and Ito (2008, "Color Universal Design"),
some of them darker: each has a contrast of at least 3 with light and with dark paper, so one plot serves
both. `STYLE` has them. Without it a plot is drawn in the colour of the text.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from importlib import resources
from typing import NamedTuple

__all__ = ["STYLE", "Axis", "Bar", "Series", "bar_plot", "dot_plot", "line_plot", "ranked_bars"]

# The style sheet of the plots.
STYLE = resources.files(__package__).joinpath("plots.css").read_text(encoding="utf-8")

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


class Series(NamedTuple):
    """The data of one line, or of one set of bars.

    Args:
        name: The name in the legend.
        points: Pairs of x and y.
    """

    name: str
    points: Sequence[tuple[float, float]]


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
        values: The values; None for a missing one.
    """

    name: str
    values: Sequence[float | None]


class _Size(NamedTuple):
    """The size of a plot, in units of its text. A narrow one is for telephones."""

    width: float
    height: float
    is_narrow: bool


_WIDE, _NARROW = _Size(620, 340, False), _Size(340, 290, True)


class _Scale:
    """Maps values to coordinates, and has the ticks."""

    def __init__(
        self, low: float, high: float, axis: Axis, start: float, end: float, ticks: int, from_zero: bool
    ) -> None:
        self._transform: Callable[[float], float] = math.log10 if axis.logarithmic else float
        if axis.logarithmic:
            high = high if high > low else low * axis.base
            self.ticks = _powers(low, high, axis.base, ticks)
            bottom, top = self._transform(low), self._transform(high)
        else:
            self.ticks = _round_numbers(min(low, 0.0) if from_zero else low, high, ticks)
            bottom, top = self.ticks[0], max(self.ticks[-1], high)
        self._bottom, self._factor, self._start = bottom, (end - start) / ((top - bottom) or 1), start

    def __call__(self, value: float) -> float:
        return round(self._start + (self._transform(value) - self._bottom) * self._factor, 1)


def line_plot(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Draw lines with a mark at each point, and their names at their ends.

    Args:
        title: The text for screen readers.
        x: The horizontal axis.
        y: The vertical axis. A linear one begins at 0.
        series: The lines, with at least one point in all; values on a logarithmic axis are positive.

    Returns:
        A wide and a narrow `<svg>` element, of which `STYLE` shows one, and a legend for the narrow one.
    """
    series = [each for each in series if each.points]
    ends = [each.points[-1][1] for each in series]
    frame = _Frame(_WIDE, _WIDE.width)
    up = frame.up(*_extent([point[1] for each in series for point in each.points]), y)
    heights = sorted(map(up, ends))
    # Names at ends that are close to each other would hide the lines: then a legend names them.
    is_crowded = any(high - low < _TEXT + 2 for low, high in itertools.pairwise(heights))
    drawings = [_lines(title, x, y, series, size, names=not is_crowded) for size in (_WIDE, _NARROW)]
    return _plot(drawings, _legend([each.name for each in series]), wide_legend=is_crowded)


def bar_plot(title: str, x: Axis, y: Axis, series: Sequence[Series], names: Sequence[str] = ()) -> str:
    """Draw the bars of a histogram; with several series, a line with marks for each.

    Args:
        title: The text for screen readers.
        x: The horizontal axis.
        y: The vertical axis, from 0.
        series: The sets of bars: points with the same x, in order, and the height.
        names: The label of each bar; by default its x.

    Returns:
        As `line_plot`.
    """
    series = [each for each in series if each.points]
    drawings = [_bars(title, x, y, series, names, size) for size in (_WIDE, _NARROW)]
    return _plot(drawings, _legend([each.name for each in series]), wide_legend=True)


def dot_plot(
    title: str, x: Axis, names: Sequence[str], bars: Sequence[Bar], reference: tuple[float, str] | None = None
) -> str:
    """Draw a row for each bar, with the mark of each series at its value.

    Args:
        title: The text for screen readers.
        x: The axis of the values, from 0.
        names: The name of each series.
        bars: The rows, from top to bottom.
        reference: A value with its label, as a line across all rows.

    Returns:
        As `line_plot`.
    """
    drawings = [_dots(title, x, names, bars, reference, size) for size in (_WIDE, _NARROW)]
    return _plot(drawings, _legend(names), wide_legend=True)


def ranked_bars(title: str, x: Axis, bars: Sequence[Bar]) -> str:
    """Draw a horizontal bar for each row, with its value at the end. Row k has the colour of series k.

    Args:
        title: The text for screen readers.
        x: The axis of the values, from 0.
        bars: The rows, each with one value.

    Returns:
        As `line_plot`.
    """
    drawings = [_ranked(title, x, bars, size) for size in (_WIDE, _NARROW)]
    return _plot(drawings, "", wide_legend=False)


def _plot(drawings: Sequence[str], legend: str, *, wide_legend: bool) -> str:
    wide, narrow = drawings
    shown = f'<div class="bpe-legend{"" if wide_legend else " bpe-narrow"}">{legend}</div>' if legend else ""
    return (
        f'<div class="bpe-plot">{shown}<div class="bpe-wide">{wide}</div>'
        f'<div class="bpe-narrow">{narrow}</div></div>'
    )


# Kinds of plots


def _lines(title: str, x: Axis, y: Axis, series: Sequence[Series], size: _Size, *, names: bool) -> str:
    points = [point for each in series for point in each.points]
    has_names = names and not size.is_narrow and len(series) > 1
    labels = [_clipped(each.name, 18) for each in series] if has_names else []
    right = size.width - 14 - max(map(_text_width, labels), default=-6)
    frame = _Frame(size, right)
    across = frame.across(*_extent([point[0] for point in points]), x)
    up = frame.up(*_extent([point[1] for point in points]), y)
    parts = [*frame.axes(x, y, across, up)]
    for k, each in enumerate(series):
        places = [(across(px), up(py)) for px, py in each.points]
        parts.append(_line(k, places))
        for (px, py), (vx, vy) in zip(places, each.points, strict=True):
            parts.append(_mark(k, px, py, f"{each.name}: {_number(vx)}, {_number(vy)}"))
        if has_names:
            parts.append(_text(places[-1][0] + 9, places[-1][1] + 4, labels[k], "start", "bpe-name"))
    return _svg(title, size.width, size.height, parts)


def _bars(title: str, x: Axis, y: Axis, series: Sequence[Series], names: Sequence[str], size: _Size) -> str:
    frame = _Frame(size, size.width - 8)
    values = [each[0] for each in series[0].points]
    labels = list(names) or [_number(value) for value in values]
    slot = (frame.right - frame.left) / len(values)
    center = [round(frame.left + slot * (k + 0.5), 1) for k in range(len(values))]
    up = frame.up(0, max((point[1] for each in series for point in each.points), default=1), y)
    parts = [*frame.y_axis(y, up), *frame.x_label(x)]
    # Labels that would touch their neighbours are left out, but not the last one.
    widest = max(map(_text_width, labels), default=0) + 5
    every = max(1, math.ceil(widest / slot))
    shown = {k for k in range(0, len(labels), every) if k == len(labels) - 1 or k + every <= len(labels) - 1}
    shown.add(len(labels) - 1)
    parts += [_text(center[k], frame.bottom + 17, labels[k], "middle") for k in sorted(shown)]
    if len(series) == 1:
        width = round(slot * 0.78, 1)
        for k, (_, value) in enumerate(series[0].points):
            top = up(value)
            parts.append(
                f'<rect class="bpe-s0" x="{center[k] - width / 2:.1f}" y="{top}" width="{width}" '
                f'height="{max(frame.bottom - top, 0):.1f}" rx="1.5" fill="currentColor">'
                f"<title>{escape(labels[k])}: {_number(value)}</title></rect>"
            )
    else:
        for s, each in enumerate(series):
            places = [(center[k], up(value)) for k, (_, value) in enumerate(each.points)]
            parts.append(_line(s, places))
            parts += [
                _mark(s, px, py, f"{each.name}, {label}: {_number(point[1])}")
                for (px, py), point, label in zip(places, each.points, labels, strict=True)
            ]
    return _svg(title, size.width, size.height, parts)


def _dots(
    title: str,
    x: Axis,
    names: Sequence[str],
    bars: Sequence[Bar],
    reference: tuple[float, str] | None,
    size: _Size,
) -> str:
    row = 20.0
    labels = [_clipped(each.name, 14 if size.is_narrow else 24) for each in bars]
    left = max(map(_text_width, labels), default=0) + 12
    top = 22.0 if reference else 8.0
    bottom = top + row * len(bars)
    known = [[value for value in each.values if value is not None] for each in bars]
    highest = max(itertools.chain.from_iterable(known), default=1)
    right = size.width - 10 - max((_text_width(_ratio(max(each))) for each in known if each), default=0)
    scale = _Scale(0, highest, x, left, right, 4 if size.is_narrow else 8, from_zero=True)
    parts = []
    for tick in scale.ticks:
        parts.append(f'<path class="bpe-grid" d="M{scale(tick)} {top}V{bottom}"/>')
        parts.append(_text(scale(tick), bottom + 17, _number(tick), "middle"))
    parts.append(_text((left + right) / 2, bottom + 37, x.label, "middle", "bpe-axis"))
    if reference:
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
    return _svg(title, size.width, bottom + 44, parts)


def _ranked(title: str, x: Axis, bars: Sequence[Bar], size: _Size) -> str:
    row, thick = 40.0, 14.0
    shown = [f"{each.values[0] or 0:,.10g}" for each in bars]
    right = size.width - max(map(_text_width, shown), default=0) - 10
    highest = max((value or 0 for each in bars for value in each.values), default=1)
    factor = (right - 1) / (highest or 1)
    parts = []
    for k, each in enumerate(bars):
        value = each.values[0] or 0
        y = 4 + row * k
        length = max(value * factor, 1)
        parts.append(_text(1, y + 11, _clipped(each.name, 40), "start", "bpe-strong"))
        parts.append(
            f'<rect class="bpe-s{k % COLOURS}" x="1" y="{y + 17}" width="{length:.1f}" height="{thick}" '
            'rx="2" fill="currentColor"/>'
        )
        parts.append(_text(length + 8, y + 17 + thick - 2.5, shown[k], "start", "bpe-value"))
    height = 4 + row * len(bars) + 16
    parts.append(_text(1, height - 5, x.label, "start", "bpe-axis"))
    return _svg(title, size.width, height, parts)


# Parts of plots


class _Frame:
    """The area of a plot between its axes."""

    def __init__(self, size: _Size, right: float) -> None:
        self.size = size
        self.left, self.right, self.top, self.bottom = 54.0, right, 26.0, size.height - 46

    def across(self, low: float, high: float, axis: Axis) -> _Scale:
        return _Scale(low, high, axis, self.left, self.right, 4 if self.size.is_narrow else 7, True)

    def up(self, low: float, high: float, axis: Axis) -> _Scale:
        return _Scale(low, high, axis, self.bottom, self.top, 5, True)

    def axes(self, x: Axis, y: Axis, across: _Scale, up: _Scale) -> Iterator[str]:
        yield from self.y_axis(y, up)
        for tick in across.ticks:
            at = across(tick)
            yield f'<path class="bpe-grid" d="M{at} {self.top}V{self.bottom}"/>'
            # Powers of two are known by all their digits.
            shown = f"{tick:,.0f}" if x.logarithmic and x.base == 2 else _number(tick)
            yield _text(at, self.bottom + 17, shown, "middle")
        yield from self.x_label(x)

    def y_axis(self, y: Axis, up: _Scale) -> Iterator[str]:
        for tick in up.ticks:
            at = up(tick)
            yield f'<path class="bpe-grid" d="M{self.left} {at}H{self.right}"/>'
            yield _text(self.left - 7, at + 4, _number(tick), "end")
        yield _text(2, 12, y.label, "start", "bpe-axis")

    def x_label(self, x: Axis) -> Iterator[str]:
        yield _text((self.left + self.right) / 2, self.size.height - 7, x.label, "middle", "bpe-axis")


def _svg(title: str, width: float, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg role="img" aria-label="{escape(title)}" viewBox="0 0 {width:g} {height:g}" '
        f'xmlns="http://www.w3.org/2000/svg" font-size="{_TEXT}">{"".join(parts)}</svg>'
    )


def _legend(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    entries = (
        f'<li><svg aria-hidden="true" viewBox="0 0 28 12" width="28" height="12">'
        f"{_line(k, [(0, 6), (28, 6)])}{_mark(k, 14, 6)}</svg> {escape(name)}</li>"
        for k, name in enumerate(names)
    )
    return f"<ul>{''.join(entries)}</ul>"


def _line(k: int, places: Sequence[tuple[float, float]]) -> str:
    points = " ".join(f"{px:g},{py:g}" for px, py in places)
    dash = f' stroke-dasharray="{_DASHES[k % len(_DASHES)]}"' if _DASHES[k % len(_DASHES)] else ""
    return (
        f'<polyline class="bpe-s{k % COLOURS}" points="{points}" fill="none" stroke="currentColor" '
        f'stroke-width="2" stroke-linejoin="round"{dash}/>'
    )


def _mark(k: int, x: float, y: float, title: str = "") -> str:
    shape = (
        f'<path class="bpe-mark bpe-s{k % COLOURS}" transform="translate({x:g} {y:g})" '
        f'd="{_SHAPES[k % len(_SHAPES)]}" fill="currentColor"'
    )
    return f"{shape}><title>{escape(title)}</title></path>" if title else f"{shape}/>"


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor"{style}>'
        f"{escape(text, False)}</text>"
    )


def _extent(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


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
