"""Tokens as printable text."""

from __future__ import annotations

from bpe_tokenizer.display.text import printable

__all__ = ["printable"]
