"""A visualization as HTML: static, without a script, every text in it escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib import resources

from bpe_tokenizer.view.chips import printable
from bpe_tokenizer.view.merging import Merge, Merging
from bpe_tokenizer.view.tokens import Piece, Token, Visualization, counted

__all__ = ["LONGEST", "STYLE", "fragment"]

# What `fragment` needs of a page's style.
STYLE = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")

# The merges of pieces of more symbols are not shown: every merge is a line that shows what is left of them.
LONGEST = 64

_COLOURS = 6


def fragment(shown: Visualization) -> str:
    """Return the tokens as chips, and below them the merges of each piece, as HTML without its `STYLE`.

    A chip says under the pointer, in focus and to a screen reader what it is: id, bytes, place. Its
    `data-piece` is the number of its piece among the merges.

    Args:
        shown: The tokens.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> "<b>" in fragment(tokenizer.visualize("<b>")), "&lt;" in fragment(tokenizer.visualize("<b>"))
        (False, True)
    """
    numbers: dict[bytes, int] = {}
    for piece in shown.pieces:
        if piece.merging is not None:
            numbers.setdefault(piece.bytes, len(numbers))
    return (
        f'<div class="bpe"><p class="bpe-counts">{escape(shown.counts)}</p>'
        f'<div class="bpe-tokens" role="listbox" aria-label="Tokens" aria-orientation="horizontal">'
        f"{''.join(_chips(shown, numbers))}</div>"
        f'<details class="bpe-merges"><summary>Merges of {counted(len(numbers), "piece")}</summary>'
        f"{''.join(_merges(shown, numbers))}</details></div>"
    )


def _chips(shown: Visualization, numbers: dict[bytes, int]) -> Iterator[str]:
    index = 0
    count = len(shown.tokens)
    for piece in shown.pieces:
        for place, token in enumerate(piece.tokens):
            number = f' data-piece="{numbers[piece.bytes]}"' if piece.merging is not None else ""
            classes = f"bpe-{index % _COLOURS}{' bpe-added' * token.is_added}{' bpe-first' * (not place)}"
            label = escape(f"Token {index + 1} of {count}: {_describe(token)}")
            yield (
                f'<span class="{classes}" role="option" tabindex="0" aria-selected="false"{number} '
                f'aria-label="{label}">{escape(printable(token.bytes)) or "&nbsp;"}</span>'
            )
            if b"\n" in token.bytes:
                yield "<br>"
            index += 1


def _describe(token: Token) -> str:
    kind = "\nadded token, found before merging" if token.is_added else ""
    return (
        f"{_quoted(token.bytes)}\nid {token.id}\nbytes {token.bytes.hex(' ') or 'none'}\n"
        f"{_span('character', token.characters)}, {_span('byte', token.text_bytes)} of the text{kind}"
    )


def _span(noun: str, span: tuple[int, int]) -> str:
    """Say which characters or bytes a span is, counted from 0; an empty one is between two."""
    start, end = span
    if start == end:
        return f"before {noun} {start}"
    return f"{noun} {start}" if end - start == 1 else f"{noun}s {start} to {end - 1}"


def _quoted(token: bytes) -> str:
    return f"“{printable(token)}”"


def _merges(shown: Visualization, numbers: dict[bytes, int]) -> Iterator[str]:
    done = set()
    for piece in shown.pieces:
        if piece.merging is not None and piece.bytes not in done:
            done.add(piece.bytes)
            heading = f"Piece {escape(_short(piece.bytes))}"
            body = _steps(shown, piece, piece.merging)
            yield f'<section data-piece="{numbers[piece.bytes]}"><h4>{heading}</h4>{body}</section>'


def _short(piece: bytes) -> str:
    return _quoted(piece) if len(piece) <= 4 * LONGEST else f"{_quoted(piece[: 4 * LONGEST])}…"


def _steps(shown: Visualization, piece: Piece, merging: Merging) -> str:
    note = f"<p>{escape(_note(piece, merging))}</p>"
    if len(merging.symbols) > LONGEST:
        return note
    rows = merging.rows()
    lines = [f"<li>Merging begins: {_row(shown, next(rows), None)}</li>"]
    for merge, before, row in zip(merging.merges, merging.rows(), rows, strict=False):
        left, right = (_symbol(shown, before[index], "i") for index in (merge.left, merge.right))
        lines.append(
            f"<li>rank {merge.rank:,}: {left} + {right} → {_symbol(shown, merge.token_id, 'b')}, "
            f"id {merge.token_id}<br>{_row(shown, row, merge)}</li>"
        )
    return f'{note}<ol start="0">{"".join(lines)}</ol>'


def _note(piece: Piece, merging: Merging) -> str:
    symbols, merges = counted(len(merging.symbols), "symbol"), counted(len(merging.merges), "merge")
    if len(merging.symbols) > LONGEST:
        return (
            f"This piece is too long to be stepped through: {symbols}, {merges}. "
            f"They are shown for pieces of at most {LONGEST} symbols."
        )
    if merging.is_whole:
        return "The whole piece is a token, so the encoder takes it at once. The merges would be these:"
    return f"{symbols}, {merges}, {counted(len(piece.tokens), 'token')}."


def _row(shown: Visualization, row: dict[int, int | None], merge: Merge | None) -> str:
    made = merge.left if merge is not None else None
    return " ".join(
        _symbol(shown, token_id, "b" if index == made else "i") for index, token_id in row.items()
    )


def _symbol(shown: Visualization, token_id: int | None, tag: str) -> str:
    text = "(no token)" if token_id is None else printable(shown.token_bytes(token_id))
    return f"<{tag}>{escape(text)}</{tag}>"
