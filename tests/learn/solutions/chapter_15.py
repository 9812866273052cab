"""Right answers to the exercises of chapter 15."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bpe_tokenizer.reference import RegexBPETokenizer


def decode_stream(vocab: dict[int, bytes], ids: list[int]) -> list[str]:
    texts = []
    kept = b""
    for token in ids:
        kept += vocab[token]
        try:
            text, kept = kept.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            text, kept = kept[: error.start].decode("utf-8"), kept[error.start :]
        texts.append(text)
    return texts


def label_row(ids: list[int], length: int) -> list[int]:
    return ids[:length] + [-100] * (length - len(ids))


def bits_per_byte(probabilities: list[float], text: str) -> float:
    bits = -sum(math.log2(probability) for probability in probabilities)
    return bits / len(text.encode("utf-8"))


def first_difference(encode: Callable[[str], list[int]], recorded: dict[str, list[int]]) -> str | None:
    for text, ids in recorded.items():
        if encode(text) != ids:
            return text
    return None


def encode_chat(tokenizer: RegexBPETokenizer, messages: list[dict[str, str]]) -> list[int]:
    start = tokenizer.special_tokens["<|im_start|>"]
    end = tokenizer.special_tokens["<|im_end|>"]
    line = tokenizer.encode("\n")
    ids: list[int] = []
    for message in messages:
        ids += [start, *tokenizer.encode(message["role"]), *line]
        ids += [*tokenizer.encode(message["content"]), end, *line]
    return ids
