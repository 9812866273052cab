"""Documents, and a tokenizer of characters, for the tests of reports."""

from __future__ import annotations

from pathlib import Path

from bpe_tokenizer import BPETokenizer, Model, _core
from bpe_tokenizer.formats import registry
from bpe_tokenizer.model import AddedToken, Decoder, Prepend, Replace
from bpe_tokenizer.view.reports.documents import Document

__all__ = ["BYTES", "document", "sentencepiece_style"]

BYTES = {byte: bytes([byte]) for byte in range(256)}


def document(path: Path, text: str | bytes) -> Document:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Document(path.name, path)


def sentencepiece_style(path: Path) -> BPETokenizer:
    """Characters with byte fallback, spaces as `▁`."""
    tokens = [
        "<unk>",
        "<s>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "a",
        "b",
        "ж",
        "▁a",
        "ab",
        "ba",
    ]
    core = _core.Model(
        {token_id: token.encode() for token_id, token in enumerate(tokens)},
        [("▁".encode(), b"a"), (b"a", b"b")],
        normalizers=[Prepend(prepend="▁"), Replace(pattern=" ", content="▁")],
        alphabet="characters",
        byte_fallback=True,
        unk_id=0,
        decoder=Decoder("▁", True, "one"),
        added_tokens=[AddedToken("<s>", 1)],
    )
    registry.save(Model(core), path, "base64-json")
    return BPETokenizer.load(path)
