"""A `tekken.json` of a few tokens."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

SPECIAL = ("<unk>", "<s>", "</s>", "[INST]")


def tekken_document(
    tokens: Sequence[bytes] = (b"lo", b"low"),
    special: Sequence[str] | None = SPECIAL,
    count: int = len(SPECIAL),
    **config: Any,
) -> dict[str, Any]:
    """The bytes and some tokens behind `count` special tokens, the last of which is no control token."""
    vocab = [
        {"rank": rank, "token_bytes": b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), *tokens])
    ]
    sizes = {"num_vocab_tokens": len(vocab), "default_vocab_size": len(vocab) + count}
    sizes["default_num_special_tokens"] = count
    settings: dict[str, Any] = {"pattern": r"\p{L}+|\P{L}+", "version": "v13" if special else "v3"}
    made: dict[str, Any] = {"config": settings | sizes | config, "vocab": vocab}
    if special is not None:
        listed = enumerate(special)
        made["special_tokens"] = [
            {"rank": rank, "token_str": text, "is_control": text != special[-1]} for rank, text in listed
        ]
    return made
