"""GPT-2's pair of files, made from parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_files import bytes_vocab

VOCAB = bytes_vocab("lo", "low", "Ġlow", "<|endoftext|>")


MERGES = ["#version: 0.2", "l o", "lo w", "Ġ low"]


def write(
    directory: Path, vocab: Mapping[str, Any] = VOCAB, merges: Sequence[str] = MERGES, **beside: Any
) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    text = "".join(f"{line}\n" for line in merges)
    (directory / "merges.txt").write_text(text, encoding="utf-8", newline="")
    for name, value in beside.items():
        (directory / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return directory
