"""Writes what `crates/formats` knows about published tokenizers, from the package: run this file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bpe_tokenizer.formats.huggingface.pre_tokenizer import COVERING, PUNCTUATION
from bpe_tokenizer.formats.tiktoken.published import PUBLISHED
from bpe_tokenizer.formats.tiktoken.special_tokens import to_added_tokens
from bpe_tokenizer.patterns import GPT2_SPLIT_PATTERN

__all__ = ["FILE", "published"]

FILE = Path(__file__).parents[2] / "crates" / "formats" / "src" / "published.json"


def published() -> dict[str, Any]:
    """Return the split patterns and special tokens of the published encodings, from the package."""
    encodings = {
        name: {
            "pattern": encoding.split_pattern,
            "special_tokens": {
                token.content: token.id for token in to_added_tokens({b"": 0}, encoding.special_tokens or {})
            },
        }
        for name, encoding in PUBLISHED.items()
    }
    return {
        "encodings": encodings,
        "gpt2": GPT2_SPLIT_PATTERN,
        "covering": sorted(COVERING),
        "punctuation": PUNCTUATION,
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(published(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
