"""Pictures of the course, as SVG text: traces, trees and tokens. `view/plots.py` draws curves and bars.

A picture is 340 pixels wide, so a telephone shows it at its natural size. It has its own background, so it is
readable on a dark page too. No text is smaller than 12 pixels.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from bpe_tokenizer.display.text import printable

if TYPE_CHECKING:
    from bpe_tokenizer.reference import EncodeTrace, MergeTree, TrainingTrace
    from bpe_tokenizer.reference.tracing import MergeStep

__all__ = [
    "Span",
    "SpanRow",
    "TokenRow",
    "encoding_steps",
    "merge_tree",
    "span_rows",
    "token_rows",
    "training_steps",
]

_WIDTH = 340
_MARGIN = 12
_RIGHT = _WIDTH - _MARGIN
# The advance of a character in monospaced fonts is at most 0.61 of their size.
_SIZE, _CELL = 13, 8.0
_SMALL = 12
_BOX_HEIGHT, _BOX_PADDING, _GAP = 24, 5, 3

_PAPER, _INK, _QUIET, _EDGE = "#ffffff", "#1f2328", "#57606a", "#8c959f"
_STRONG, _PLAIN, _LEARNED = "#0a52a0", "#f3f4f6", "#cfe4ff"
_COLOURS = ("#cfe4ff", "#ffe3c2", "#d3f0cd", "#ffd9e4", "#e5dcff")
_STYLE = (
    f"text{{font:{_SIZE}px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{_INK}}}"
    f".s{{font:{_SMALL}px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:{_QUIET}}}"
    f".h{{font:600 {_SIZE}px system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}}"
    f".w{{fill:{_PAPER}}}"
)


class TokenRow(NamedTuple):
    """A row of tokens with a label.

    Args:
        label: The text above the row.
        tokens: The tokens: texts, or bytes.
        below: A text below each token, such as its id; none if it is empty.
        strong: Whether each token is dark; if it is empty, the tokens have different colours.
    """

    label: str
    tokens: Sequence[str | bytes]
    below: Sequence[str] = ()
    strong: Sequence[bool] = ()


class Span(NamedTuple):
    """A box over some columns of a grid.

    Args:
        start: Its first column.
        end: The column after its last.
        text: The text in it.
        is_strong: Whether it is dark.
    """

    start: int
    end: int
    text: str
    is_strong: bool = False


class SpanRow(NamedTuple):
    """A row of boxes with a label.

    Args:
        label: The text above the row.
        spans: The boxes, from left to right.
    """

    label: str
    spans: Sequence[Span]


def token_rows(rows: Sequence[TokenRow], title: str) -> str:
    """Draw rows of coloured tokens.

    Args:
        rows: The rows.
        title: What the picture shows.

    Returns:
        The text of an SVG file.

    Example:
        >>> svg = token_rows([TokenRow("2 tokens", [" low", "est"], ["268", "257"])], "Tokens of a text")
        >>> "<title>Tokens of a text</title>" in svg, "·low" in svg
        (True, True)
    """
    canvas = _Canvas()
    y = float(_MARGIN)
    for row in rows:
        if row.label:
            canvas.text(_MARGIN, y + 12, row.label, "h")
            y += 20
        fills = [_COLOURS[number % len(_COLOURS)] for number in range(len(row.tokens))]
        if row.strong:
            fills = [_STRONG if is_strong else _LEARNED for is_strong in row.strong]
        y = canvas.boxes(row.tokens, fills, y, below=row.below) + 8
    described = (f"{row.label}: {_listed(row.tokens, row.below)}" for row in rows)
    return canvas.svg(y - 8 + _MARGIN, title, described)


def span_rows(rows: Sequence[SpanRow], title: str) -> str:
    """Draw rows of boxes on one grid, so that the boxes of a column are below each other.

    Args:
        rows: The rows.
        title: What the picture shows.

    Returns:
        The text of an SVG file.

    Example:
        >>> two_bytes = SpanRow("bytes", [Span(0, 1, "c3"), Span(1, 2, "a9")])
        >>> rows = [two_bytes, SpanRow("text", [Span(0, 2, "é")])]
        >>> "bytes: c3, a9. text: é" in span_rows(rows, "Two bytes, one character")
        True
    """
    canvas = _Canvas()
    columns = max(span.end for row in rows for span in row.spans)
    cell = min(56.0, (_RIGHT - _MARGIN + _GAP) / columns)
    y = float(_MARGIN)
    for number, row in enumerate(rows):
        canvas.text(_MARGIN, y + 12, row.label, "s")
        y += 18
        for span in row.spans:
            x, width = _MARGIN + span.start * cell, (span.end - span.start) * cell - _GAP
            fill = _STRONG if span.is_strong else _COLOURS[number % len(_COLOURS)]
            canvas.rect(x, y, width, _BOX_HEIGHT, fill, _EDGE)
            canvas.text(x + width / 2, y + 16.5, span.text, "w" if span.is_strong else "", "middle")
        y += _BOX_HEIGHT + 10
    described = (f"{row.label}: {', '.join(span.text for span in row.spans)}" for row in rows)
    return canvas.svg(y - 10 + _MARGIN, title, described)


def training_steps(trace: TrainingTrace, title: str, steps: int = 3, pairs: int = 5) -> str:
    """Draw the first steps of a training: the pairs with their counts, and the words after the merge.

    Args:
        trace: The trace.
        title: What the picture shows.
        steps: How many steps to draw.
        pairs: How many pairs of each table to draw.

    Returns:
        The text of an SVG file.

    Example:
        >>> from bpe_tokenizer.reference import NaiveBPETokenizer
        >>> trace = NaiveBPETokenizer().trace_training("aaabdaaabac", 258)
        >>> "1. a + a → aa, id 256" in training_steps(trace, "Two merges", steps=2)
        True
    """
    canvas = _Canvas()
    described = []
    y = float(_MARGIN)
    learned: set[bytes | str] = set()
    for step in trace.steps[:steps]:
        heading = f"{step.number}. {_plus(step.pair)} → {_shown(step.token)}, id {step.token_id}"
        canvas.text(_MARGIN, y + 12, heading, "h")
        y += 22
        most = step.table[0][1]
        left = _MARGIN + 16 + max(_text_width(_plus(pair)) for pair, _ in step.table[:pairs])
        for number, (pair, count) in enumerate(step.table[:pairs]):
            is_best = number == 0
            canvas.text(_MARGIN, y + 13, _plus(pair), "")
            length = max(2.0, 120 * count / most)
            canvas.rect(left, y + 3, length, 12, _STRONG if is_best else _EDGE, "")
            canvas.text(left + length + 6, y + 13, str(count), "")
            y += 19
        rest = len(step.table) - pairs
        if rest > 0:
            canvas.text(_MARGIN, y + 13, f"and {rest} more {'pair' if rest == 1 else 'pairs'}", "s")
            y += 19
        y += 5
        for tokens, times in step.words:
            fills = [
                _STRONG if token == step.token else _LEARNED if token in learned else _PLAIN
                for token in tokens
            ]
            suffix = f"× {times}" if times > 1 else ""
            y = canvas.boxes(tokens, fills, y, suffix=suffix) + 1
        learned.add(step.token)
        y += 16
        words = "; ".join(f"{_listed(tokens)}, {times} times" for tokens, times in step.words)
        described.append(f"{heading}, {step.count} times. After the merge: {words}")
    return canvas.svg(y - 16 + _MARGIN - 4, title, described)


def encoding_steps(trace: EncodeTrace, title: str) -> str:
    """Draw the merges of an encoding, piece by piece; the token that a merge makes is dark.

    Args:
        trace: The trace.
        title: What the picture shows.

    Returns:
        The text of an SVG file.

    Example:
        >>> from bpe_tokenizer.reference import NaiveBPETokenizer
        >>> tokenizer = NaiveBPETokenizer().train("aaabdaaabac", 258)
        >>> "ids: 257, 98, 100" in encoding_steps(tokenizer.trace("aaabd"), "Encoding aaabd")
        True
    """
    canvas = _Canvas()
    described = []
    y = float(_MARGIN)
    for piece in trace.pieces:
        rows: list[tuple[str, Sequence[bytes | str], bytes | str | None]] = []
        if len(trace.pieces) > 1:
            canvas.text(_MARGIN, y + 12, f"piece {_shown(piece.piece)}", "h")
            y += 22
        if piece.tokens:
            rows.append(("merging begins", piece.tokens, None))
        for number, step in enumerate(piece.steps, 1):
            rows.append((f"{number}. {_plus(step.pair)}, rank {step.rank}", step.result, _made(step)))
        for label, tokens, made in rows:
            canvas.text(_MARGIN, y + 12, label, "s")
            fills = [
                _STRONG if token == made else _LEARNED if _is_long(token) else _PLAIN for token in tokens
            ]
            y = canvas.boxes(tokens, fills, y + 18) + 6
            described.append(f"{label}: {_listed(tokens)}")
        ids = f"ids: {', '.join(map(str, piece.ids))}"
        canvas.text(_MARGIN, y + 12, ids, "")
        described.append(ids)
        y += 30
    return canvas.svg(y - 30 + 16 + _MARGIN, title, described)


def merge_tree(tree: MergeTree, title: str) -> str:
    """Draw the merges that a token is made of, as a tree; the bytes are its leaves.

    Args:
        tree: The tree.
        title: What the picture shows.

    Returns:
        The text of an SVG file.

    Example:
        >>> from bpe_tokenizer.reference import NaiveBPETokenizer
        >>> tokenizer = NaiveBPETokenizer().train("aaabdaaabac", 258)
        >>> svg = merge_tree(tokenizer.merge_tree(257), "The token aaa")
        >>> svg.count("<rect"), "aaa: aa and a" in svg
        (6, True)
    """
    canvas = _Canvas()
    leaves: list[float] = []
    left = [float(_MARGIN)]
    lines: list[tuple[float, float, float, float]] = []
    nodes: list[tuple[float, float, MergeTree]] = []
    described: list[str] = []

    def place(node: MergeTree, depth: int) -> float:
        """Return the middle of a node, after its children are placed."""
        y = _MARGIN + depth * 62.0
        if node.left is None or node.right is None:
            width = _node_width(node)
            middle = left[0] + width / 2
            left[0] += width + 8
            leaves.append(middle)
        else:
            described.append(
                f"{_shown(node.token)}: {_shown(node.left.token)} and {_shown(node.right.token)}"
            )
            start = left[0]
            below = (place(node.left, depth + 1), place(node.right, depth + 1))
            middle = sum(below) / 2
            # A node is never left of its children's room.
            middle = max(middle, start + _node_width(node) / 2)
            left[0] = max(left[0], middle + _node_width(node) / 2 + 8)
            lines.extend((middle, y + 40, child, y + 62) for child in below)
        nodes.append((middle, y, node))
        return middle

    place(tree, 0)
    width = max(float(_WIDTH), left[0] - 8 + _MARGIN)
    shift = (width - (left[0] - 8 + _MARGIN)) / 2
    for x1, y1, x2, y2 in lines:
        canvas.line(x1 + shift, y1, x2 + shift, y2)
    for middle, y, node in nodes:
        size = _node_width(node)
        fill = _PLAIN if node.left is None else _LEARNED
        canvas.rect(middle + shift - size / 2, y, size, 40, fill, _EDGE)
        canvas.text(middle + shift, y + 17, _shown(node.token), "", "middle")
        canvas.text(middle + shift, y + 33, str(node.token_id), "s", "middle")
    height = max(y for _, y, _ in nodes) + 40 + _MARGIN
    return canvas.svg(height, title, described, width)


class _Canvas:
    """Collects the elements of a picture."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, kind: str, anchor: str = "start") -> None:
        """Write a text; the kinds are "" (a token), "s" (small), "h" (a heading) and "w" (white)."""
        style = f' class="{kind}"' if kind else ""
        end = f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._parts.append(f'<text x="{_fixed(x)}" y="{_fixed(y)}"{style}{end}>{escape(text, False)}</text>')

    def rect(self, x: float, y: float, width: float, height: float, fill: str, stroke: str) -> None:
        edge = f' stroke="{stroke}"' if stroke else ""
        self._parts.append(
            f'<rect x="{_fixed(x)}" y="{_fixed(y)}" width="{_fixed(width)}" height="{_fixed(height)}" '
            f'rx="3" fill="{fill}"{edge}/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = _EDGE) -> None:
        self._parts.append(
            f'<path d="M{_fixed(x1)} {_fixed(y1)}L{_fixed(x2)} {_fixed(y2)}" stroke="{stroke}"/>'
        )

    def boxes(
        self,
        tokens: Sequence[str | bytes],
        fills: Sequence[str],
        y: float,
        below: Sequence[str] = (),
        suffix: str = "",
    ) -> float:
        """Draw tokens in lines, with texts below them; return the y of the end."""
        height = _BOX_HEIGHT + (16 if below else 0)
        x = float(_MARGIN)
        for number, (token, fill) in enumerate(zip(tokens, fills, strict=True)):
            shown = _shown(token)
            under = below[number] if below else ""
            width = max(_text_width(shown) + 2 * _BOX_PADDING, 7.0 * len(under) + 4)
            if x + width > _RIGHT and x > _MARGIN:
                x, y = float(_MARGIN), y + height + _GAP
            self.rect(x, y, width, _BOX_HEIGHT, fill, _EDGE)
            self.text(x + width / 2, y + 16.5, shown, "w" if fill == _STRONG else "", "middle")
            if under:
                self.text(x + width / 2, y + _BOX_HEIGHT + 13, under, "s", "middle")
            x += width + _GAP
        if suffix:
            self.text(x + 4, y + 16.5, suffix, "")
        return y + height + _GAP

    def svg(self, height: float, title: str, described: Iterable[str], width: float = _WIDTH) -> str:
        """Return the picture with its background."""
        across, down = _fixed(math.ceil(width)), _fixed(math.ceil(height))
        description = ". ".join(described)
        note = " A dot in a token is a space." if any("·" in part for part in self._parts) else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}" width="{across}" '
            f'height="{down}" role="img">\n<title>{escape(title, False)}</title>\n'
            f"<desc>{escape(description, False)}.{note}</desc>\n<style>{_STYLE}</style>\n"
            f'<rect width="{across}" height="{down}" rx="6" fill="{_PAPER}"/>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )


def _made(step: MergeStep) -> bytes | str:
    """Return the token that a merge makes."""
    left, right = step.pair
    return left + right  # type: ignore[operator]  # Both are bytes, or both strings.


def _shown(token: str | bytes) -> str:
    """Return a token as it is drawn: a space is a dot."""
    data = token.encode("utf-8", "surrogatepass") if isinstance(token, str) else token
    return printable(data).replace(" ", "·")


def _is_long(token: str | bytes) -> bool:
    return len(token) > 1


def _plus(pair: tuple[bytes | str, bytes | str]) -> str:
    return " + ".join(map(_shown, pair))


def _listed(tokens: Sequence[str | bytes], below: Sequence[str] = ()) -> str:
    shown = list(map(_shown, tokens))
    if below:
        shown = [f"{token} ({under})" for token, under in zip(shown, below, strict=True)]
    return ", ".join(shown)


def _node_width(node: MergeTree) -> float:
    return max(30.0, _text_width(_shown(node.token)) + 2 * _BOX_PADDING, 7.0 * len(str(node.token_id)) + 8)


def _text_width(text: str) -> float:
    """Return the room of a text in a monospaced font."""
    return _CELL * sum(map(_cells, text))


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _fixed(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")
