"""Draws speeds as bars in an SVG: a panel for each mode, a group for each corpus, a bar for each package."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.peers import OURS, PEERS

__all__ = ["Speeds", "draw", "speeds"]

# Corpus to package to MB/s.
Speeds = Mapping[str, Mapping[str, float]]

_COLOURS = {
    OURS: "#d1495b",
    "gigatoken": "#30638e",
    "fastokens": "#00798c",
    "quicktok": "#edae49",
    "tiktoken": "#8d8d8d",
    "tokenizers": "#c4c4c4",
}
_WIDTH, _LABEL, _BAR, _GAP, _HEAD = 760, 80, 14, 12, 34


def speeds(cases: Sequence[Mapping[str, Any]], mode: str, vocabulary: str) -> dict[str, dict[str, float]]:
    """Collect the speeds of a mode, warm, in one thread.

    Args:
        cases: Results as they are recorded.
        mode: One of `MODES`.
        vocabulary: One of `VOCABULARIES`.

    Returns:
        MB/s of each package by corpus; ours is the median of what it had beside each of the others.
    """
    found: dict[str, dict[str, float]] = {}
    mine: dict[str, list[float]] = {}
    for case in cases:
        peer, its_mode, corpus, its_vocabulary, state, threads = case["case"]
        if (its_mode, its_vocabulary, state, threads) == (mode, vocabulary, "warm", "1t"):
            found.setdefault(corpus, {})[peer] = case["theirs"]
            mine.setdefault(corpus, []).append(case["ours"])
    return {corpus: {OURS: statistics.median(mine[corpus]), **rows} for corpus, rows in found.items()}


def draw(panels: Mapping[str, Speeds]) -> str:
    """Draw the chart.

    Args:
        panels: Title to speeds.

    Returns:
        The SVG.
    """
    longest = max(
        (value for panel in panels.values() for rows in panel.values() for value in rows.values()), default=1
    )
    shapes: list[str] = [*_legend()]
    top = _HEAD + _GAP
    for title, panel in panels.items():
        shapes.append(f'<text x="0" y="{top + 16}" font-weight="bold">{escape(title)}</text>')
        top += _HEAD
        for corpus, rows in panel.items():
            shapes.extend(_group(corpus, rows, top, (_WIDTH - _LABEL - 60) / longest))
            top += len(rows) * _BAR + _GAP
    style = "font: 12px sans-serif; background: #fff"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" '
        f'height="{top}" style="{style}" role="img" aria-label="Encoding speed in MB a second">\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _legend() -> Iterator[str]:
    for number, package in enumerate((OURS, *reversed(PEERS))):
        x = number * 115
        yield f'<rect x="{x}" y="8" width="12" height="12" fill="{_COLOURS[package]}"/>'
        yield f'<text x="{x + 17}" y="18">{package}</text>'


def _group(corpus: str, rows: Mapping[str, float], top: int, scale: float) -> Iterator[str]:
    yield f'<text x="0" y="{top + 11}">{escape(corpus)}</text>'
    ordered = sorted(rows.items(), key=lambda row: -row[1])
    for number, (package, value) in enumerate(ordered):
        y, width = top + number * _BAR, value * scale
        colour = _COLOURS.get(package, "#555")
        yield f'<rect x="{_LABEL}" y="{y}" width="{width:.1f}" height="{_BAR - 2}" fill="{colour}"/>'
        yield f'<text x="{_LABEL + width + 5:.1f}" y="{y + 10}" font-size="10">{value:,.0f}</text>'
