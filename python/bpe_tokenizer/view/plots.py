"""Plots as inline SVG, drawn in the page's text colour and readable without colours."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

__all__ = ["Axis", "Series", "bar_plot", "line_plot"]

_WIDTH, _HEIGHT = 640, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 16, 48
# Dashes and marks distinguish the lines.
_DASHES = ("", "8 4", "2 4", "10 3 2 3")
_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0",
    "M-4-4h8v8h-8z",
    "M0-5L5 4H-5z",
    "M0-5L5 0L0 5L-5 0z",
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
    """

    label: str
    logarithmic: bool = False


class _Scale:
    """Maps values to coordinates."""

    def __init__(self, values: Sequence[float], axis: Axis, start: float, end: float) -> None:
        self._transform: Callable[[float], float] = math.log10 if axis.logarithmic else float
        if axis.logarithmic:
            self.ticks = _powers(min(values), max(values))
        else:
            self.ticks = _round_numbers(max(values))
        low, high = self._transform(self.ticks[0]), self._transform(self.ticks[-1])
        self._low, self._factor, self._start = low, (end - start) / ((high - low) or 1), start

    def __call__(self, value: float) -> float:
        return round(self._start + (self._transform(value) - self._low) * self._factor, 2)


def line_plot(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Draw lines with a mark at each point.

    Args:
        title: The text for screen readers.
        x: The horizontal axis.
        y: The vertical axis.
        series: The lines, with at least one point in all; values on a logarithmic axis are positive.

    Returns:
        An `<svg>` element.
    """
    points = [point for each in series for point in each.points]
    across = _Scale([point[0] for point in points], x, _LEFT, _WIDTH - _RIGHT)
    up = _Scale([point[1] for point in points], y, _HEIGHT - _BOTTOM, _TOP)
    parts = [*_axes(x, y, across, up)]
    for k, each in enumerate(series):
        marks = [(across(px), up(py)) for px, py in each.points]
        line = " ".join(f"{px},{py}" for px, py in marks)
        parts.append(
            f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5" '
            f'stroke-dasharray="{_DASHES[k % len(_DASHES)]}"/>'
        )
        for (px, py), (vx, vy) in zip(marks, each.points, strict=True):
            parts.append(_mark(k, px, py, f"{each.name}: {_number(vx)}, {_number(vy)}"))
    return _svg(title, parts) + _legend(series, lambda k: _mark(k, 12, 8) + _dash(k))


def bar_plot(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """Draw bars; several series appear side by side in different shades.

    Args:
        title: The text for screen readers.
        x: The horizontal axis, with integer values.
        y: The vertical axis, from 0.
        series: The sets of bars, with at least one point in all.

    Returns:
        An `<svg>` element.
    """
    points = [point for each in series for point in each.points]
    last = max(point[0] for point in points) + 1
    across = _Scale([last], Axis(x.label), _LEFT, _WIDTH - _RIGHT)
    up = _Scale([point[1] for point in points], y, _HEIGHT - _BOTTOM, _TOP)
    width = (across(1) - across(0)) * 0.8 / len(series)
    parts = [*_axes(x, y, across, up)]
    for k, each in enumerate(series):
        for px, py in each.points:
            left, top = across(px) + (k - len(series) / 2) * width, up(py)
            parts.append(
                f'<rect x="{left:.2f}" y="{top}" width="{width:.2f}" height="{_HEIGHT - _BOTTOM - top:.2f}" '
                f"{_shade(k, len(series))}><title>{html.escape(each.name)}: {_number(px)}, {_number(py)}"
                "</title></rect>"
            )
    square = '<rect x="4" y="2" width="16" height="12" {}/>'
    return _svg(title, parts) + _legend(series, lambda k: square.format(_shade(k, len(series))))


def _axes(x: Axis, y: Axis, across: _Scale, up: _Scale) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for tick in across.ticks:
        at = across(tick)
        yield f'<path class="grid" d="M{at} {_TOP}V{bottom}"/>'
        yield f'<text x="{at}" y="{bottom + 16}" text-anchor="middle">{_number(tick)}</text>'
    for tick in up.ticks:
        at = up(tick)
        yield f'<path class="grid" d="M{_LEFT} {at}H{right}"/>'
        yield f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{_number(tick)}</text>'
    middle = (_TOP + bottom) / 2
    center = (_LEFT + right) / 2
    yield f'<text x="{center}" y="{_HEIGHT - 8}" text-anchor="middle">{html.escape(x.label)}</text>'
    yield (
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(y.label)}</text>"
    )


def _svg(title: str, parts: Iterable[str]) -> str:
    return (
        f'<svg role="img" aria-label="{html.escape(title)}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _legend(series: Sequence[Series], sample: Callable[[int], str]) -> str:
    if len(series) < 2:
        return ""
    entries = (
        f'<li><svg aria-hidden="true" viewBox="0 0 24 16" width="24" height="16">{sample(k)}</svg> '
        f"{html.escape(each.name)}</li>"
        for k, each in enumerate(series)
    )
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _mark(k: int, x: float, y: float, title: str = "") -> str:
    shape = f'<path transform="translate({x} {y})" d="{_SHAPES[k % len(_SHAPES)]}" fill="currentColor"'
    return f"{shape}><title>{html.escape(title)}</title></path>" if title else f"{shape}/>"


def _dash(k: int) -> str:
    return f'<path d="M0 8H24" stroke="currentColor" stroke-dasharray="{_DASHES[k % len(_DASHES)]}"/>'


def _shade(k: int, count: int) -> str:
    return f'fill="currentColor" stroke="currentColor" fill-opacity="{1 - k / count:.2f}"'


def _powers(low: float, high: float) -> list[float]:
    """Return the powers of ten that enclose all values."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def _round_numbers(high: float) -> list[float]:
    """Return at most eleven round numbers, from 0 to the largest value or beyond."""
    if high <= 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(high))
    step = next(power * part for part in (1, 0.5, 0.2) if high / power / part >= 4 or part == 0.2)
    return [step * k for k in range(math.ceil(high / step) + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
