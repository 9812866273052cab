"""Documents, and a tokenizer of characters, for the tests of reports."""

from __future__ import annotations

from pathlib import Path

from bpe_tokenizer import BPETokenizer, Model
from bpe_tokenizer.view.reports.documents import Document
from small_tokenizers import characters_model

__all__ = ["document", "sentencepiece_style"]


def document(path: Path, text: str | bytes) -> Document:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Document(path.name, path)


def sentencepiece_style() -> BPETokenizer:
    """Characters with byte fallback, and a token that no merge makes."""
    return BPETokenizer.from_model(Model(characters_model("ж", "ba")))
