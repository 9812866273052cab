"""tokenizer.json files as Hugging Face's own tools write them, made from parts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_tokenizer import _core

__all__ = [
    "BYTE_LEVEL",
    "LLAMA3_REGEX",
    "added_token",
    "byte_level",
    "bytes_vocab",
    "sequence",
    "split",
    "template",
    "tokenizer_json",
    "write",
]

LLAMA3_REGEX = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level(add_prefix_space: bool = False, trim_offsets: bool = False, use_regex: bool = True) -> Any:
    return {
        "type": "ByteLevel",
        "add_prefix_space": add_prefix_space,
        "trim_offsets": trim_offsets,
        "use_regex": use_regex,
    }


BYTE_LEVEL = byte_level()


def split(pattern: str, kind: str = "Regex", behavior: str = "Isolated", invert: bool = False) -> Any:
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps: Any) -> Any:
    return {"type": "Sequence", "pretokenizers": [*steps, byte_level(use_regex=False)]}


def template(*pieces: str, ids: Mapping[str, Sequence[int]]) -> Any:
    """`$A` is the text, everything else a special token of `ids`."""
    single = [
        {"Sequence": {"id": "A", "type_id": 0}}
        if piece == "$A"
        else {"SpecialToken": {"id": piece, "type_id": 0}}
        for piece in pieces
    ]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            name: {"id": name, "ids": list(values), "tokens": [name] * len(values)}
            for name, values in ids.items()
        },
    }


def added_token(token_id: int, content: str, special: bool = True, **flags: bool) -> Any:
    return {
        "id": token_id,
        "content": content,
        "single_word": flags.get("single_word", False),
        "lstrip": flags.get("lstrip", False),
        "rstrip": flags.get("rstrip", False),
        "normalized": flags.get("normalized", False),
        "special": special,
    }


def bytes_vocab(*tokens: str) -> dict[str, int]:
    """The 256 bytes, then these token strings."""
    vocab = {_core.to_printable(bytes([byte])): byte for byte in range(256)}
    return vocab | {token: 256 + index for index, token in enumerate(tokens)}


def tokenizer_json(
    vocab: Mapping[str, int],
    merges: Sequence[Any] = (),
    *,
    added: Sequence[Any] = (),
    pre_tokenizer: Any = BYTE_LEVEL,
    normalizer: Any = None,
    post_processor: Any = None,
    decoder: Any = BYTE_LEVEL,
    **model: Any,
) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(added),
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor,
        "decoder": decoder,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": dict(vocab),
            "merges": list(merges),
        }
        | model,
    }


def write(directory: Path, document: Mapping[str, Any]) -> Path:
    """Write it as the tokenizer.json of a directory, which is returned."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, ensure_ascii=False)
    (directory / "tokenizer.json").write_text(text, encoding="utf-8")
    return directory
