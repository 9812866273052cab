"""A tokenizer as HTML for a notebook: its main facts, and an example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from bpe_tokenizer.display.chips import COLOURS, STYLE, chip_with_id
from bpe_tokenizer.display.text import printable
from bpe_tokenizer.patterns import pattern_name

if TYPE_CHECKING:
    from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["tokenizer_html"]

_EXAMPLE = "Hello, world! Größe, привет, 你好, مرحبا 🙂 x = 1234567"
# A tokenizer may have thousands of special tokens.
_MAX_SPECIAL = 12
_MAX_PATTERN = 400


def tokenizer_html(tokenizer: BPETokenizer) -> str:
    """Return a card with the main facts of a tokenizer, with its style: self-contained, without a script.

    Args:
        tokenizer: The tokenizer.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> "<dt>Vocabulary</dt><dd>258 ids, 2 merges</dd>" in tokenizer_html(tokenizer)
        True
    """
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in _rows(tokenizer))
    return (
        f'<style>{STYLE}</style><div class="bpe-card"><p class="bpe-title">{escape(type(tokenizer).__name__)}'
        f"{'' if tokenizer.n_vocab else '<span>untrained</span>'}</p><dl>{rows}</dl></div>"
    )


def _rows(tokenizer: BPETokenizer) -> Iterator[tuple[str, str]]:
    if tokenizer.n_vocab:
        size = f"{tokenizer.vocab_size:,} ids, {len(tokenizer.merges):,} merges"
        if tokenizer.n_vocab != tokenizer.vocab_size:
            size += f"; {tokenizer.n_vocab:,} ids with gaps"
        yield "Vocabulary", size
    yield "Split pattern", _pattern(tokenizer.split_pattern)
    yield "Normalization", escape(tokenizer.normalization or "none")
    if not tokenizer.n_vocab:
        return
    yield "Special tokens", _special(tokenizer.special_tokens)
    ids = tokenizer.encode(_EXAMPLE)
    core = tokenizer.model.core
    yield (
        "Example",
        "".join(
            chip_with_id(core.token(each) or b"", str(each), f"bpe-{k % COLOURS}")
            for k, each in enumerate(ids)
        ),
    )


def _pattern(pattern: str | Sequence[str]) -> str:
    patterns = [pattern] if isinstance(pattern, str) else list(pattern)
    if not patterns:
        return "none"
    name = pattern_name(patterns)
    shown = " ".join(f"<code>{escape(_shortened(each))}</code>" for each in patterns)
    return shown if name == "custom" else f"{escape(name)}<br>{shown}"


def _shortened(pattern: str) -> str:
    shown = printable(pattern.encode(errors="replace"))
    return shown if len(shown) <= _MAX_PATTERN else f"{shown[:_MAX_PATTERN]}…"


def _special(special: dict[str, int]) -> str:
    if not special:
        return "none"
    shown = "".join(
        chip_with_id(content.encode(errors="replace"), str(token_id), "bpe-added")
        for content, token_id in list(special.items())[:_MAX_SPECIAL]
    )
    rest = len(special) - _MAX_SPECIAL
    return f"{shown} and {rest:,} more" if rest > 0 else shown
