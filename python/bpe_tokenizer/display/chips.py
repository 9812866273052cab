"""Tokens as chips in HTML: one box each, which is not broken and whose direction is its own."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib import resources

from bpe_tokenizer.display.text import printable

__all__ = ["COLOURS", "STYLE", "chip", "chip_with_id", "direction"]

# The style sheet of chips and cards. Each chip has its ink and its background, so it is readable on light and
# on dark pages; everything else is in the colour of the page's text.
STYLE = resources.files(__package__).joinpath("chips.css").read_text(encoding="utf-8")
# Neighbours cycle through the colours.
COLOURS = 6
# Characters of a token. A longer one is cut.
_MAX_TEXT = 200


def chip(token: bytes, kind: str = "", attributes: str = "") -> str:
    r"""Return a token as a chip.

    Bytes that are not whole characters are hexadecimal. A token of spaces alone shows a dot for each, as it
    would look empty. A token of more than 200 characters is cut.

    Args:
        token: The bytes.
        kind: Classes of the chip: `bpe-0` to `bpe-5` for a colour, `bpe-added` for an added token.
        attributes: More attributes, escaped.

    Example:
        >>> chip(b" <b>", "bpe-0")
        '<span class="bpe-chip bpe-0"> &lt;b&gt;</span>'
        >>> chip("é".encode()[:1])
        '<span class="bpe-chip bpe-bytes">C3</span>'
        >>> chip(b"  ")
        '<span class="bpe-chip"><span class="bpe-space">··</span></span>'
    """
    text, is_bytes = _text(token)
    classes = " ".join(filter(None, ("bpe-chip", kind, "bpe-bytes" * is_bytes)))
    shown = escape(text) or "&nbsp;"
    if token and not token.strip(b" "):
        shown = f'<span class="bpe-space">{text.replace(" ", "·")}</span>'
    return f'<span class="{classes}"{attributes and f" {attributes}"}>{shown}</span>'


def chip_with_id(token: bytes, below: str, kind: str = "", attributes: str = "") -> str:
    """Return a chip with a text below it, such as its id.

    Args:
        token: The bytes.
        below: The text below.
        kind: As in `chip`; `bpe-padding` is for the pair.
        attributes: As in `chip`, of the pair.
    """
    outer = "bpe-pair bpe-padding" if kind == "bpe-padding" else "bpe-pair"
    inner = chip(token, "" if kind == "bpe-padding" else kind)
    return (
        f'<span class="{outer}"{attributes and f" {attributes}"}>{inner}'
        f'<span class="bpe-id">{escape(below)}</span></span>'
    )


def direction(text: str) -> str:
    """Return the direction in which the chips of a text follow each other: that of its first letter.

    Example:
        >>> direction("(שלום)"), direction("one שלום"), direction("12")
        ('rtl', 'ltr', 'ltr')
    """
    import unicodedata

    for character in text[:1000]:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return "ltr"


def _text(token: bytes) -> tuple[str, bool]:
    """Return what a chip shows, and whether all of it is hexadecimal."""
    parts: list[str] = []
    has_text = False
    for text, data in _runs(token[: 4 * _MAX_TEXT]):
        has_text = has_text or bool(text)
        parts.append(printable(text.encode()) if text else data.hex(" ").upper())
    shown = "\u200a".join(parts)
    return (shown if len(shown) <= _MAX_TEXT else f"{shown[:_MAX_TEXT]}…"), bool(parts) and not has_text


def _runs(token: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the runs of whole characters, and the bytes between them that are parts of characters."""
    at = 0
    while at < len(token):
        try:
            yield token[at:].decode("utf-8"), b""
            return
        except UnicodeDecodeError as error:
            if error.start:
                yield token[at : at + error.start].decode("utf-8"), b""
            yield "", token[at + error.start : at + error.end]
            at += error.end
