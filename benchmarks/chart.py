"""Draws speeds as bars in an SVG that a phone shows: 360 units wide, large type, few bars."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from benchmarks.peers import OURS

__all__ = ["Bar", "draw", "panels"]

_WIDTH, _MARGIN, _LABEL, _VALUE, _ROW, _THICKNESS = 360, 10, 116, 46, 26, 18
# A background, so that it is readable on any page; dark where the reader's system is.
_STYLE = (
    "text{font:15px system-ui,sans-serif;fill:#1f2328}.card{fill:#fff;stroke:#d0d7de}.title{font-weight:600}"
    ".ours{fill:#c2334d}.peer{fill:#4f7ca3}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.card{fill:#0d1117;stroke:#30363d}"
    ".ours{fill:#f0647e}.peer{fill:#6f9fc8}}"
)


class Bar(NamedTuple):
    """A label, MB/s (None: other ids than ours, so no time), and whether it is ours."""

    label: str
    speed: float | None
    ours: bool


def panels(
    cases: Sequence[Mapping[str, Any]], wrong: Sequence[Mapping[str, Any]], corpora: Sequence[str]
) -> dict[str, list[Bar]]:
    """Collect the bars, warm and in one thread: every package to lists, then gigatoken's arrays next to ours.

    Args:
        cases: Results with cl100k, as they are recorded.
        wrong: Cases that were not timed, as they are recorded.
        corpora: The first one with lists is that of the first panel, and each with arrays is in the second.

    Returns:
        The bars of each panel by its title.
    """

    def speeds(mode: str, corpus: str) -> list[Bar]:
        wanted = [mode, corpus, "cl100k", "warm", "1t"]
        found = [case for case in cases if list(case["case"][1:]) == wanted and case["case"][0] != OURS]
        ours = [case["ours"] for case in found]
        bars = [Bar(case["case"][0], case["theirs"], False) for case in found]
        return [*([Bar(OURS, statistics.median(ours), True)] if ours else []), *bars]

    corpus = next((corpus for corpus in corpora if speeds("list", corpus)), "")
    lists = sorted(speeds("list", corpus), key=lambda bar: -(bar.speed or 0))
    lists += [Bar(case["case"][0], None, False) for case in wrong if [*case["case"][1:3]] == ["list", corpus]]
    arrays = [
        bar._replace(label=f"{corpus}, ours") if bar.ours else bar
        for corpus in corpora
        for bar in speeds("numpy", corpus)
        if bar.ours or bar.label == "gigatoken"
    ]
    return {"To lists (cl100k), MB/s": lists, "To NumPy arrays (cl100k), MB/s": arrays}


def draw(panels: Mapping[str, Sequence[Bar]]) -> str:
    """Draw the chart.

    Args:
        panels: Title to bars.

    Returns:
        The SVG.
    """
    longest = max((bar.speed or 0 for bars in panels.values() for bar in bars), default=0) or 1
    scale = (_WIDTH - 2 * _MARGIN - _LABEL - _VALUE) / longest
    shapes: list[str] = []
    top = _MARGIN
    for title, bars in panels.items():
        shapes.append(f'<text class="title" x="{_MARGIN}" y="{top + 18}">{escape(title)}</text>')
        top += _ROW + 4
        for bar in bars:
            shapes.extend(_bar(bar, top, scale))
            top += _ROW
        top += _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}" '
        f'height="{top}" role="img" aria-label="Encoding speed in MB per second">\n<style>{_STYLE}</style>\n'
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{top - 1}" rx="8"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _bar(bar: Bar, top: int, scale: float) -> Iterator[str]:
    left, width = _MARGIN + _LABEL, (bar.speed or 0) * scale
    baseline = top + _THICKNESS - 4
    yield f'<text x="{_MARGIN}" y="{baseline}">{escape(bar.label)}</text>'
    if bar.speed is not None:
        kind = "ours" if bar.ours else "peer"
        yield f'<rect class="{kind}" x="{left}" y="{top}" width="{width:.1f}" height="{_THICKNESS}"/>'
    value = "wrong ids" if bar.speed is None else f"{bar.speed:,.0f}"
    yield f'<text x="{left + width + 5:.1f}" y="{baseline}">{value}</text>'
