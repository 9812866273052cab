"""A `tekken.json` of a few tokens."""

from __future__ import annotations

import base64
from typing import Any

__all__ = ["tekken_document"]


def tekken_document() -> dict[str, Any]:
    """Four special tokens, the bytes, and two tokens more."""
    tokens = [*(bytes([byte]) for byte in range(256)), b"lo", b"low"]
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(tokens)
    ]
    special = [
        {"rank": rank, "token_str": text, "is_control": True}
        for rank, text in enumerate(("<unk>", "<s>", "</s>", "[INST]"))
    ]
    config = {
        "pattern": r"\p{L}+|\P{L}+",
        "num_vocab_tokens": len(vocab),
        "default_vocab_size": len(vocab) + len(special),
        "default_num_special_tokens": len(special),
        "version": "v7",
    }
    return {"config": config, "vocab": vocab, "special_tokens": special}
