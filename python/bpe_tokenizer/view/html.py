"""A visualization as static HTML for notebooks: no script, all text escaped, its size bounded."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from bpe_tokenizer.console import count_noun
from bpe_tokenizer.display.chips import COLOURS, chip, direction
from bpe_tokenizer.display.chips import STYLE as CHIPS_STYLE
from bpe_tokenizer.display.text import printable

if TYPE_CHECKING:
    from bpe_tokenizer.view.visualization import Merge, Merging, Piece, Token, Visualization

__all__ = ["MAX_STEP_SYMBOLS", "STYLE", "visualization_html"]

# The style sheet that `visualization_html` needs. It applies to nothing else.
STYLE = CHIPS_STYLE + resources.files(__package__).joinpath("tokens.css").read_text(encoding="utf-8")

# Longer pieces show no merges: each merge is a line with all symbols, so the HTML grows quadratically.
MAX_STEP_SYMBOLS = 64
# Symbols in the merges of all pieces together.
_MAX_SYMBOLS = 20_000
# Bytes of a token that its label shows.
_MAX_LABEL = 64


def visualization_html(
    shown: Visualization, check: Callable[[], None] | None = None, max_tokens: int | None = None
) -> str:
    """Return coloured tokens, and the merges of each piece below them, as HTML without its `STYLE`.

    Each token has a label with its id, bytes and spans for the pointer, the keyboard focus and screen
    readers. `data-piece` links a token to the merges of its piece.

    Args:
        shown: The tokens.
        check: Called for each token; it raises an exception to stop the work.
        max_tokens: How many tokens to show; None for all. A note tells how many follow.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> html = visualization_html(tokenizer.visualize("<b>"))
        >>> "<b>" in html, "&lt;" in html
        (False, True)
    """
    # Equal pieces share one list of merges.
    numbers: dict[bytes, int] = {}
    count = 0
    for piece in shown.pieces:
        if max_tokens is not None and count >= max_tokens:
            break
        count += len(piece.tokens)
        if piece.merging is not None:
            numbers.setdefault(piece.bytes, len(numbers))
    tokens = itertools.islice(_tokens(shown, numbers, check), max_tokens)
    rest = len(shown.tokens) - (max_tokens or len(shown.tokens))
    note = f'<p class="bpe-note">and {count_noun(rest, "more token")}</p>' if rest > 0 else ""
    return (
        f'<div class="bpe"><p class="bpe-counts">{escape(shown.counts)}</p>'
        f'<div class="bpe-tokens" role="group" aria-label="Tokens" dir="{direction(shown.text)}">'
        f"{''.join(tokens)}</div>{note}"
        f'<details class="bpe-merges"><summary>Merges of {count_noun(len(numbers), "piece")}</summary>'
        f"{''.join(_merges(shown, numbers))}</details></div>"
    )


def _tokens(
    shown: Visualization, numbers: dict[bytes, int], check: Callable[[], None] | None
) -> Iterator[str]:
    index = 0
    count = len(shown.tokens)
    for piece in shown.pieces:
        for position, token in enumerate(piece.tokens):
            if check is not None:
                check()
            number = ""
            if piece.merging is not None and piece.bytes in numbers:
                number = f' data-piece="{numbers[piece.bytes]}"'
            kind = f"bpe-{index % COLOURS}{' bpe-added' * token.is_added}{' bpe-first' * (not position)}"
            label = escape(f"Token {index + 1} of {count}: {_describe(token)}")
            shown_token = chip(token.bytes, kind, f'role="img" tabindex="0"{number} aria-label="{label}"')
            # A line feed ends the line, as in the text.
            yield f"{shown_token}<br>" if b"\n" in token.bytes else shown_token
            index += 1


def _describe(token: Token) -> str:
    kind = "\nadded token, found before merging" if token.is_added else ""
    data = token.bytes[:_MAX_LABEL].hex(" ") or "none"
    more = f" and {len(token.bytes) - _MAX_LABEL} more" if len(token.bytes) > _MAX_LABEL else ""
    return (
        f"{_shortened(token.bytes)}\nid {token.id}\nbytes {data}{more}\n"
        f"{_span('character', token.characters)}, {_span('byte', token.text_bytes)} of the text{kind}"
    )


def _span(noun: str, span: tuple[int, int]) -> str:
    """Name the characters or bytes of a span, counted from 0; an empty span lies between two."""
    start, end = span
    if start == end:
        return f"before {noun} {start}"
    return f"{noun} {start}" if end - start == 1 else f"{noun}s {start} to {end - 1}"


def _quoted(token: bytes) -> str:
    return f"“{printable(token)}”"


def _merges(shown: Visualization, numbers: dict[bytes, int]) -> Iterator[str]:
    done: set[bytes] = set()
    symbols = 0
    for piece in shown.pieces:
        if piece.merging is None or piece.bytes in done or piece.bytes not in numbers:
            continue
        size = len(piece.merging.symbols)
        if symbols and symbols + size * size > _MAX_SYMBOLS:
            yield f'<p class="bpe-note">and {count_noun(len(numbers) - len(done), "more piece")}</p>'
            return
        symbols += size * size if size <= MAX_STEP_SYMBOLS else 0
        done.add(piece.bytes)
        heading = f"Piece {escape(_shortened(piece.bytes))}"
        body = _steps(shown, piece, piece.merging)
        yield f'<section data-piece="{numbers[piece.bytes]}"><h4>{heading}</h4>{body}</section>'


def _shortened(piece: bytes) -> str:
    limit = 4 * MAX_STEP_SYMBOLS
    return _quoted(piece) if len(piece) <= limit else f"{_quoted(piece[:limit])}…"


def _steps(shown: Visualization, piece: Piece, merging: Merging) -> str:
    note = f"<p>{escape(_note(piece, merging))}</p>"
    if len(merging.symbols) > MAX_STEP_SYMBOLS:
        return note
    rows = merging.rows()
    lines = [f"<li>Merging begins: {_row(shown, next(rows), None)}</li>"]
    for merge, before, row in zip(merging.merges, merging.rows(), rows, strict=False):
        left, right = (_symbol(shown, before[position], "i") for position in (merge.left, merge.right))
        lines.append(
            f"<li>rank {merge.rank:,}: {left} + {right} → {_symbol(shown, merge.token_id, 'b')}, "
            f"id {merge.token_id}<br>{_row(shown, row, merge)}</li>"
        )
    return f'{note}<ol start="0">{"".join(lines)}</ol>'


def _note(piece: Piece, merging: Merging) -> str:
    symbols, merges = count_noun(len(merging.symbols), "symbol"), count_noun(len(merging.merges), "merge")
    if len(merging.symbols) > MAX_STEP_SYMBOLS:
        return (
            f"This piece is too long to be stepped through: {symbols}, {merges}. "
            f"They are shown for pieces of at most {MAX_STEP_SYMBOLS} symbols."
        )
    if merging.is_whole:
        return "The whole piece is a token, so the encoder skips merging. Merging would do this:"
    return f"{symbols}, {merges}, {count_noun(len(piece.tokens), 'token')}."


def _row(shown: Visualization, row: dict[int, int | None], merge: Merge | None) -> str:
    made = merge.left if merge is not None else None
    return " ".join(
        _symbol(shown, token_id, "b" if position == made else "i") for position, token_id in row.items()
    )


def _symbol(shown: Visualization, token_id: int | None, tag: str) -> str:
    text = "(no token)" if token_id is None else printable(shown.token_bytes(token_id))
    return f"<{tag}>{escape(text)}</{tag}>"
